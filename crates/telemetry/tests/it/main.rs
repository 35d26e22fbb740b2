//! Traces as a collector gets them.

#[cfg(test)]
mod otlp;
