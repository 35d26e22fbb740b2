//! Traces as a collector gets them, and metrics as Prometheus does.

#[cfg(test)]
mod metrics;
#[cfg(test)]
mod otlp;
