//! Prometheus' text format, version 0.0.4, written by the `prometheus` crate.

use prometheus::{Counter, Error, Gauge, Registry, TextEncoder, core::Collector};

/// Renders everything that `instruments` measure.
pub(super) fn render(instruments: &Registry) -> String {
    encode(TextEncoder::new().encode_to_string(&instruments.gather()))
}

/// Renders a counter that is kept elsewhere and has this value now.
pub fn counter(name: &str, help: &str, value: f64) -> String {
    encode(Counter::new(name, help).and_then(|counter| {
        counter.inc_by(value);
        TextEncoder::new().encode_to_string(&counter.collect())
    }))
}

/// Renders a gauge that is measured elsewhere and has this value now.
pub fn gauge(name: &str, help: &str, value: f64) -> String {
    encode(Gauge::new(name, help).and_then(|gauge| {
        gauge.set(value);
        TextEncoder::new().encode_to_string(&gauge.collect())
    }))
}

fn encode(text: Result<String, Error>) -> String {
    text.unwrap_or_else(|error| format!("# metrics cannot be rendered: {error}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_value_has_its_help_and_its_type() {
        assert_eq!(counter("a_total", "All", 3.0), "# HELP a_total All\n# TYPE a_total counter\na_total 3\n");
        assert_eq!(gauge("b", "Now", 0.5), "# HELP b Now\n# TYPE b gauge\nb 0.5\n");
        assert_eq!(gauge("not a name", "", 1.0).lines().count(), 1, "an error is a comment");
    }
}
