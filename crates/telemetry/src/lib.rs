//! Counts what the gateway does, for Prometheus, and sends traces over OTLP.
//!
//! [`Metrics`] is an [`Observer`](gatewright_core::Observer): put it on the gateway, and [`Metrics::render`] gives the text of
//! `/metrics`. Names and attributes follow the OpenTelemetry conventions for MCP (`mcp.server.operation.duration`); label
//! values come from bounded sets: tools that are served (at most [`MOST_TOOLS`]), statuses of the contract.
//!
//! [`Traces`] is another: one span for each `tools/call` (`tools/call codecall:execute`), one below it for each call it made.
#![forbid(unsafe_code)]

mod labels;
mod metrics;
mod otlp;
mod spans;

pub use labels::MOST_TOOLS;
pub use metrics::{Metrics, WorkerCounts};
pub use otlp::{OtlpConfig, Sending, Traces};
