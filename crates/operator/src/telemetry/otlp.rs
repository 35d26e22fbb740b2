//! Traces over OTLP: HTTP with protobuf, in batches, beside the calls and never in their way.
//!
//! A request's spans are written as protobuf when it is over, into the batch that is open ([`Queue`]): no messages are built for
//! them, and nobody is woken until the batch is full or a second old.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use gatewright_core::{Execution, Observer, Operation, TraceContext};
use reqwest::header::CONTENT_TYPE;
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, sleep_until},
};
use url::Url;

use super::{
    config::OtlpConfig,
    queue::{Batch, Queue},
    spans,
    wire::Wire,
};

/// Seconds between two warnings of the same kind.
const SAY_AGAIN: u64 = 30;
/// Longest time that the first request of a batch waits for more.
const GATHER: Duration = Duration::from_secs(1);
/// Time limit for a collector's answer.
const ANSWER: Duration = Duration::from_secs(10);

/// Bytes that a thread keeps for the next request's spans; those of a long script were more.
const MOST_KEPT: usize = 64 * 1024;

thread_local! {
    /// Buffer for the spans of one request before they join a batch.
    static SPANS: RefCell<Wire> = RefCell::default();
}

/// Sends requests as traces. Put it on the gateway as an observer.
#[derive(Debug)]
pub struct Traces {
    /// Traces begun here are sent when the last 8 bytes of their id are at most this.
    most: u64,
    queue: Arc<Queue>,
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
        let queue = Arc::new(Queue::default());
        let sender = Sender { client, url: config.traces(), version: version.into(), queue: queue.clone() };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of the largest number is one of its kind; casts of floats saturate"
        )]
        let most = (config.sample_ratio * u64::MAX as f64) as u64;
        let traces = Self::to(most, queue);
        let (stop, stopped) = oneshot::channel();
        Ok((traces, Sending { task: tokio::spawn(sender.run(stopped)), stop }))
    }

    /// Requests that were not sent because too many waited.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    fn to(most: u64, queue: Arc<Queue>) -> Self {
        let (dropped, quiet_until) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { most, queue, dropped, began: Instant::now(), quiet_until }
    }

    /// Keeps the spans of one request that `write` writes, when its trace is recorded and there is room.
    fn keep(&self, trace: Option<&TraceContext>, count: usize, write: impl FnOnce(&mut Wire, &TraceContext)) {
        let Some(trace) = trace.filter(|trace| trace.sampled) else { return };
        let is_kept = self.queue.has_room(count)
            && SPANS.with_borrow_mut(|spans| {
                spans.clear();
                write(spans, trace);
                let is_kept = self.queue.push(spans.as_bytes(), count);
                if spans.as_bytes().len() > MOST_KEPT {
                    *spans = Wire::default();
                }
                is_kept
            });
        if !is_kept {
            self.drop_one();
        }
    }

    fn drop_one(&self) {
        let dropped = self.dropped.fetch_add(1, Relaxed) + 1;
        let (now, quiet) = (self.began.elapsed().as_secs(), self.quiet_until.load(Relaxed));
        // A collector that is down must not fill the log.
        if now >= quiet && self.quiet_until.compare_exchange(quiet, now + SAY_AGAIN, Relaxed, Relaxed).is_ok()
        {
            let cause = match self.queue.is_closed() {
                true => "these requests ended after the server stopped",
                false => "the collector is too slow or down",
            };
            tracing::warn!(dropped, "traces are dropped: {cause}");
        }
    }
}

impl Observer for Traces {
    fn finished(&self, execution: &Execution) {
        let count = 1 + execution.calls.len();
        self.keep(execution.trace.as_ref(), count, |wire, trace| spans::execution(wire, execution, trace));
    }

    fn operated(&self, operation: &Operation) {
        self.keep(operation.trace.as_ref(), 1, |wire, trace| spans::operation(wire, operation, trace));
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
    version: Box<str>,
    queue: Arc<Queue>,
}

impl Sender {
    async fn run(self, mut stopped: oneshot::Receiver<()>) {
        let mut stopping = false;
        let (mut fails, mut quiet_until) = (false, Instant::now());
        loop {
            // The first is waited for without end, the others until the batch is due.
            let mut due = None;
            while !stopping && !self.queue.has_full() {
                if !self.queue.is_empty() {
                    due.get_or_insert_with(|| Instant::now() + GATHER);
                }
                tokio::select! {
                    () = self.queue.changed() => {}
                    () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => break,
                    _ = &mut stopped => {
                        stopping = true;
                        self.queue.close();
                    }
                }
            }
            let Some(batch) = self.queue.take() else {
                match stopping {
                    true => return,
                    false => continue,
                }
            };
            let problem = self.send(batch).await.err();
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

    async fn send(&self, batch: Batch) -> Result<(), String> {
        let body = spans::request(&self.version, batch.spans());
        let request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/x-protobuf");
        // An address may hold a password.
        let answer = request.body(body).send().await.map_err(|error| error.without_url().to_string())?;
        if answer.status().is_success() { Ok(()) } else { Err(format!("status {}", answer.status())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_traces_begun_here_is_recorded() {
        let recorded = |ratio: f64| {
            let traces = Traces::to((ratio * u64::MAX as f64) as u64, Arc::default());
            (0..1_000).filter(|_| traces.records(&TraceContext::below(None).trace_id)).count()
        };
        assert_eq!((recorded(0.0), recorded(1.0)), (0, 1_000));
        assert!((150..350).contains(&recorded(0.25)));
    }
}
