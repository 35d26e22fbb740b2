//! Admin listener, audit file, rate limits and telemetry: for the people who operate a gateway. Each module works alone.
//!
//! - [`admin`]: a listener for metrics, health and whatever else operators look at.
//! - [`audit`]: a file of events that shows when a line was changed or removed.
//! - [`limits`]: rate limits on tools.
//! - [`telemetry`]: metrics for Prometheus and traces over OTLP.
#![forbid(unsafe_code)]

pub mod admin;
pub mod audit;
pub mod limits;
pub mod telemetry;
