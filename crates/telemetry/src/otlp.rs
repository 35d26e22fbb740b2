//! Traces over OTLP: HTTP with protobuf, in batches, beside the calls and never in their way.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use gatewright_core::{Execution, Observer};
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
/// Spans that wait to be sent; executions beyond are dropped. An execution has up to 1,001.
const WAITING_SPANS: usize = 32_768;
/// Executions sent at once.
const BATCH: usize = 256;
/// Spans sent at once: some 2 MiB, half of what collectors take.
const BATCH_SPANS: usize = 4_096;
/// Seconds between two warnings of the same kind.
const SAY_AGAIN: u64 = 30;
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
    /// Traces begun here are sent when the last 8 bytes of their id are at most this.
    most: u64,
    queue: mpsc::Sender<Vec<Span>>,
    /// Spans in the queue.
    waiting: Arc<AtomicUsize>,
    dropped: AtomicU64,
    began: Instant,
    /// Seconds after `began` when a warning may be said again.
    quiet_until: AtomicU64,
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
        let mut client = reqwest::Client::builder()
            .default_headers(config.header_map().unwrap_or_default())
            .redirect(reqwest::redirect::Policy::none())
            .timeout(ANSWER);
        if config.traces().scheme() == "http" {
            // Small images have no CA certificates, and nothing here needs them.
            client = client.tls_certs_only([]);
        }
        let client = client.build()?;
        let (queue, spans) = mpsc::channel(WAITING);
        let resource = Resource {
            attributes: vec![
                spans::text("service.name", "gatewright"),
                spans::text("service.version", version),
            ],
            ..Resource::default()
        };
        let waiting = Arc::new(AtomicUsize::new(0));
        let sender = Sender { client, url: config.traces(), resource, waiting: waiting.clone() };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of the largest number is one of its kind; casts of floats saturate"
        )]
        let most = (config.sample_ratio * u64::MAX as f64) as u64;
        let traces = Self::to(most, queue, waiting);
        let (stop, stopped) = oneshot::channel();
        Ok((traces, Sending { task: tokio::spawn(sender.run(spans, stopped)), stop }))
    }

    /// Executions that were not sent because too many waited.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    fn to(most: u64, queue: mpsc::Sender<Vec<Span>>, waiting: Arc<AtomicUsize>) -> Self {
        let (dropped, quiet_until) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { most, queue, waiting, dropped, began: Instant::now(), quiet_until }
    }

    fn drop_one(&self) {
        let dropped = self.dropped.fetch_add(1, Relaxed) + 1;
        let (now, quiet) = (self.began.elapsed().as_secs(), self.quiet_until.load(Relaxed));
        // A collector that is down must not fill the log.
        if now >= quiet && self.quiet_until.compare_exchange(quiet, now + SAY_AGAIN, Relaxed, Relaxed).is_ok()
        {
            tracing::warn!(dropped, "traces are dropped: the collector is too slow or down");
        }
    }
}

impl Observer for Traces {
    fn finished(&self, execution: &Execution) {
        let Some(trace) = execution.trace.as_ref().filter(|trace| trace.sampled) else { return };
        let count = 1 + execution.calls.len();
        if self.waiting.fetch_add(count, Relaxed) + count > WAITING_SPANS
            || self.queue.try_send(spans::of(execution, trace)).is_err()
        {
            self.waiting.fetch_sub(count, Relaxed);
            self.drop_one();
        }
    }

    fn wants_traces(&self) -> bool {
        true
    }

    fn records(&self, trace_id: &[u8; 16]) -> bool {
        // The last 8 bytes are the ones that are surely random (Trace Context level 2, random trace id).
        let mut last = [0; 8];
        last.copy_from_slice(&trace_id[8..]);
        self.most > 0 && u64::from_be_bytes(last) <= self.most
    }
}

struct Sender {
    client: reqwest::Client,
    url: Url,
    resource: Resource,
    waiting: Arc<AtomicUsize>,
}

impl Sender {
    async fn run(self, mut queue: mpsc::Receiver<Vec<Span>>, mut stopped: oneshot::Receiver<()>) {
        let (mut batch, mut stopping) = (Vec::new(), false);
        let (mut fails, mut quiet_until) = (false, Instant::now());
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
            let problem = self.send_all(&mut batch).await.err();
            match &problem {
                Some(error) if Instant::now() >= quiet_until => {
                    (fails, quiet_until) = (true, Instant::now() + Duration::from_secs(SAY_AGAIN));
                    tracing::warn!(error, "traces were not taken by the collector and are lost");
                }
                None if fails => {
                    fails = false;
                    tracing::info!("the collector takes traces again");
                }
                _ => {}
            }
        }
    }

    /// Sends the batch, in parts where it is large; the first that is not taken ends it.
    async fn send_all(&self, batch: &mut Vec<Vec<Span>>) -> Result<(), String> {
        let (mut part, mut sent) = (Vec::new(), Ok(()));
        let mut rest = batch.drain(..).peekable();
        while let Some(spans) = rest.next() {
            self.waiting.fetch_sub(spans.len(), Relaxed);
            part.extend(spans);
            let next = rest.peek().map_or(usize::MAX, Vec::len);
            if sent.is_ok() && part.len().saturating_add(next) > BATCH_SPANS {
                sent = self.send(std::mem::take(&mut part)).await;
            }
        }
        sent
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
    use gatewright_core::TraceContext;

    use super::*;

    fn traces(sample_ratio: f64) -> Traces {
        let most = (sample_ratio * u64::MAX as f64) as u64;
        Traces::to(most, mpsc::channel(1).0, Arc::default())
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
    fn a_share_of_the_traces_begun_here_is_recorded() {
        let recorded = |ratio: f64| {
            let traces = traces(ratio);
            (0..1_000).filter(|_| traces.records(&TraceContext::below(None).trace_id)).count()
        };
        assert_eq!((recorded(0.0), recorded(1.0)), (0, 1_000));
        assert!((150..350).contains(&recorded(0.25)));
    }
}
