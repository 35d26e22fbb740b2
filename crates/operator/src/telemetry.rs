//! Counts what the gateway does, for Prometheus, and sends traces over OTLP.
//!
//! [`Metrics`] is an [`Observer`](gatewright_core::Observer): put it on the gateway, and [`Metrics::render`] gives the text of
//! `/metrics`. Names and attributes follow the OpenTelemetry conventions for MCP (`mcp.server.operation.duration`); label
//! values come from bounded sets: tools and prompts that are served (at most [`MOST_TOOLS`] and [`MOST_PROMPTS`]), statuses of the
//! contract.
//!
//! [`HttpMetrics`] counts what the port for clients answers: also what is refused before a method of MCP is known.
//!
//! [`Traces`] is another observer: one span for each request (`tools/call codecall:execute`, `resources/read`), one below it for each call of a
//! tool that came of it.

mod config;
mod http;
mod labels;
mod metrics;
mod otlp;
mod process;
mod queue;
mod spans;
mod text;
mod wire;

pub use config::OtlpConfig;
pub use http::{HttpMetrics, OpenCounts};
pub use labels::{MOST_PROMPTS, MOST_TOOLS};
pub use metrics::{Metrics, WorkerCounts};
pub use otlp::{Sending, Traces};
pub use process::process_metrics;
pub use text::{counter, gauge};
