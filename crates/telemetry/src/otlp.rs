//! Traces over OTLP: HTTP with protobuf, in batches, beside the calls and never in their way.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use gatewright_core::{Execution, Observer, TraceContext};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans, Span},
};
use prost::Message as _;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use schemars::JsonSchema;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::{Instant, sleep_until},
};
use url::Url;

use crate::spans;

/// Executions that wait to be sent; more are dropped.
const WAITING: usize = 2_048;
/// Executions sent at once.
const BATCH: usize = 256;
/// How long the first of a batch waits for more.
const GATHER: Duration = Duration::from_secs(1);
/// How long a collector may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// Where traces go.
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
    /// To this collector, every trace.
    pub fn new(endpoint: Url) -> Self {
        Self { endpoint, headers: BTreeMap::new(), sample_ratio: all() }
    }

    /// Everything that keeps it from starting: the field, and the problem.
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

    fn header_map(&self) -> Option<HeaderMap> {
        let mut map = HeaderMap::new();
        for (name, value) in &self.headers {
            let mut value = HeaderValue::from_str(value.expose_secret()).ok()?;
            value.set_sensitive(true);
            map.insert(HeaderName::from_bytes(name.as_bytes()).ok()?, value);
        }
        Some(map)
    }

    fn traces(&self) -> Url {
        let mut url = self.endpoint.clone();
        url.set_path(&format!("{}/v1/traces", self.endpoint.path().trim_end_matches('/')));
        url
    }
}

/// Sends executions as traces. Put it on the gateway as an observer.
#[derive(Debug)]
pub struct Traces {
    /// Traces begun here are sent when the first 8 bytes of their id are at most this.
    most: u64,
    queue: mpsc::Sender<Vec<Span>>,
    dropped: AtomicU64,
}

/// The task that sends, until this is dropped; call [`Sending::finish`] when the gateway has stopped.
#[derive(Debug)]
pub struct Sending {
    task: JoinHandle<()>,
    stop: oneshot::Sender<()>,
}

impl Sending {
    /// Sends what waits, and ends: after 10 seconds a batch at most, where the collector does not answer.
    pub async fn finish(self) {
        drop(self.stop);
        if let Err(error) = self.task.await {
            tracing::error!(%error, "traces were lost: the task that sends them ended");
        }
    }
}

impl Traces {
    /// Begins to send, in the Tokio runtime this is called in. `version` is the service's own.
    ///
    /// # Errors
    /// An HTTP client that cannot be built: no TLS roots.
    pub fn start(config: &OtlpConfig, version: &str) -> Result<(Self, Sending), reqwest::Error> {
        let client = reqwest::Client::builder()
            .default_headers(config.header_map().unwrap_or_default())
            .redirect(reqwest::redirect::Policy::none())
            .timeout(ANSWER)
            .build()?;
        let (queue, spans) = mpsc::channel(WAITING);
        let resource = Resource {
            attributes: vec![
                spans::text("service.name", "gatewright"),
                spans::text("service.version", version),
            ],
            ..Resource::default()
        };
        let sender = Sender { client, url: config.traces(), resource };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of the largest number is one of its kind; casts of floats saturate"
        )]
        let most = (config.sample_ratio * u64::MAX as f64) as u64;
        let traces = Self { most, queue, dropped: AtomicU64::new(0) };
        let (stop, stopped) = oneshot::channel();
        Ok((traces, Sending { task: tokio::spawn(sender.run(spans, stopped)), stop }))
    }

    /// Executions that were not sent because too many waited.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    fn is_sent(&self, trace: &TraceContext) -> bool {
        if trace.parent_id.is_some() {
            return trace.sampled;
        }
        let mut first = [0; 8];
        first.copy_from_slice(&trace.trace_id[..8]);
        self.most > 0 && u64::from_be_bytes(first) <= self.most
    }
}

impl Observer for Traces {
    fn finished(&self, execution: &Execution) {
        let Some(trace) = execution.trace.as_ref().filter(|trace| self.is_sent(trace)) else { return };
        if self.queue.try_send(spans::of(execution, trace)).is_err() {
            let before = self.dropped.fetch_add(1, Relaxed);
            // The first, then every thousandth: a collector that is down must not fill the log.
            if before.is_multiple_of(1_000) {
                tracing::warn!(dropped = before + 1, "traces are dropped: the collector is too slow or down");
            }
        }
    }

    fn wants_traces(&self) -> bool {
        true
    }
}

struct Sender {
    client: reqwest::Client,
    url: Url,
    resource: Resource,
}

impl Sender {
    async fn run(self, mut queue: mpsc::Receiver<Vec<Span>>, mut stopped: oneshot::Receiver<()>) {
        let (mut batch, mut stopping, mut fails) = (Vec::new(), false, false);
        loop {
            // The first is waited for without end, the others until the batch is due.
            let mut due = None;
            while batch.len() < BATCH {
                let room = BATCH - batch.len();
                tokio::select! {
                    taken = queue.recv_many(&mut batch, room) => {
                        if taken == 0 {
                            break;
                        }
                        due.get_or_insert_with(|| Instant::now() + GATHER);
                    }
                    () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() && !stopping => break,
                    _ = &mut stopped, if !stopping => {
                        stopping = true;
                        queue.close();
                    }
                }
            }
            if batch.is_empty() {
                return;
            }
            let problem = self.send(batch.drain(..).flatten().collect()).await.err();
            match &problem {
                Some(error) if !fails => {
                    tracing::warn!(
                        error,
                        "traces were not taken by the collector; said again once it took some"
                    );
                }
                None if fails => tracing::info!("the collector takes traces again"),
                _ => {}
            }
            fails = problem.is_some();
        }
    }

    async fn send(&self, spans: Vec<Span>) -> Result<(), String> {
        let scope = ScopeSpans { spans, ..ScopeSpans::default() };
        let resource = ResourceSpans {
            resource: Some(self.resource.clone()),
            scope_spans: vec![scope],
            ..ResourceSpans::default()
        };
        let body = ExportTraceServiceRequest { resource_spans: vec![resource] }.encode_to_vec();
        let request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/x-protobuf");
        // An address may hold a password.
        let answer = request.body(body).send().await.map_err(|error| error.without_url().to_string())?;
        if answer.status().is_success() { Ok(()) } else { Err(format!("status {}", answer.status())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traces(sample_ratio: f64) -> Traces {
        let most = (sample_ratio * u64::MAX as f64) as u64;
        Traces { most, queue: mpsc::channel(1).0, dropped: AtomicU64::new(0) }
    }

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

    #[test]
    fn a_share_of_the_traces_begun_here_is_sent_and_the_client_decides_for_its_own() {
        let sent = |ratio: f64| {
            let traces = traces(ratio);
            (0..1_000).filter(|_| traces.is_sent(&TraceContext::below(None))).count()
        };
        assert_eq!((sent(0.0), sent(1.0)), (0, 1_000));
        assert!((150..350).contains(&sent(0.25)));
        let above = |flags: &str| format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}");
        assert!(traces(0.0).is_sent(&TraceContext::below(Some(&above("01")))));
        assert!(!traces(1.0).is_sent(&TraceContext::below(Some(&above("00")))));
    }
}
