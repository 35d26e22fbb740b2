//! The `telemetry.otlp` section: the collector of traces.

use std::collections::BTreeMap;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use url::Url;

/// The collector that traces are sent to.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OtlpConfig {
    /// Base address of an OTLP collector over HTTP, such as `http://127.0.0.1:4318`; `/v1/traces` is added.
    #[schemars(with = "String")]
    pub endpoint: Url,
    /// Headers for the collector, such as an API key.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub headers: BTreeMap<String, SecretString>,
    /// Share of the traces begun here that are sent, 0 to 1. Default 1. A trace that a client began is sent when the client
    /// records it.
    #[serde(default = "all")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub sample_ratio: f64,
}

fn all() -> f64 {
    1.0
}

impl OtlpConfig {
    /// Sends every trace to this collector.
    pub fn new(endpoint: Url) -> Self {
        Self { endpoint, headers: BTreeMap::new(), sample_ratio: all() }
    }

    /// Returns everything that keeps traces from being sent: the field, and the problem.
    pub fn problems(&self) -> Vec<(&'static str, &'static str)> {
        let mut found = Vec::new();
        if !matches!(self.endpoint.scheme(), "http" | "https") {
            found.push(("endpoint", "must be an http or https address"));
        }
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            found.push(("sampleRatio", "must be 0 to 1"));
        }
        if self.header_map().is_none() {
            found.push(("headers", "must be names and values that HTTP allows"));
        }
        found
    }

    pub(crate) fn header_map(&self) -> Option<HeaderMap> {
        let mut map = HeaderMap::new();
        for (name, value) in &self.headers {
            let mut value = HeaderValue::from_str(value.expose_secret()).ok()?;
            value.set_sensitive(true);
            map.insert(HeaderName::from_bytes(name.as_bytes()).ok()?, value);
        }
        Some(map)
    }

    /// The address that takes traces.
    pub(crate) fn traces(&self) -> Url {
        let mut url = self.endpoint.clone();
        url.set_path(&format!("{}/v1/traces", self.endpoint.path().trim_end_matches('/')));
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> OtlpConfig {
        OtlpConfig::new(Url::parse(text).unwrap())
    }

    #[test]
    fn the_path_of_traces_is_added_to_the_base_address() {
        assert_eq!(config("http://127.0.0.1:4318").traces().as_str(), "http://127.0.0.1:4318/v1/traces");
        assert_eq!(config("http://127.0.0.1/otlp/").traces().as_str(), "http://127.0.0.1/otlp/v1/traces");
    }

    #[test]
    fn what_cannot_be_sent_to_is_told() {
        assert_eq!(config("ftp://127.0.0.1").problems()[0].0, "endpoint");
        let mut bad = config("http://127.0.0.1");
        bad.sample_ratio = f64::NAN;
        bad.headers.insert("a b".to_owned(), "x".to_owned().into());
        let fields: Vec<_> = bad.problems().into_iter().map(|(field, _)| field).collect();
        assert_eq!(fields, ["sampleRatio", "headers"]);
        assert!(config("https://127.0.0.1").problems().is_empty());
    }
}
