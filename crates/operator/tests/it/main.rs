//! The audit file, metrics and traces from outside.

#[cfg(test)]
mod audit;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod otlp;
