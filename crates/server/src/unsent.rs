//! A budget for bytes of answers that clients have not taken yet: in all, and a share of it for each caller.
//!
//! Whatever leaves the server is a [`CountedBody`], which [`UnsentBudget::count`] alone makes. The number of answers is bounded elsewhere, so those
//! of up to [`UNCOUNTED`] bytes are not counted.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use axum::body::Body;
use bytes::Bytes;
use futures::FutureExt as _;
use gatewright_core::{Claimant, NoShare, Portion, Share, Shares};
use http::{HeaderValue, Response, header};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use serde::{
    Deserializer as _,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

use crate::{body::GuardedBody, refusal};

/// Bytes of an answer that may wait uncounted.
pub(crate) const UNCOUNTED: usize = 16 * 1024;

/// Bytes that wait for clients to take them.
#[derive(Debug)]
pub(crate) struct UnsentBudget {
    shares: Arc<Shares>,
}

impl UnsentBudget {
    /// A budget of `mib` MiB.
    pub(crate) fn new(mib: usize) -> Arc<Self> {
        Arc::new(Self { shares: Shares::of_memory(mib << 20, Portion::QuarterOfFree) })
    }

    /// Bytes that are counted now.
    pub(crate) fn taken(&self) -> usize {
        self.shares.taken()
    }

    /// Takes room for `bytes`. What is longer than the whole budget takes all of it.
    ///
    /// # Errors
    /// As those of [`Shares::take`].
    pub(crate) fn take(&self, claimant: &Claimant, bytes: usize) -> Result<Share, NoShare> {
        self.shares.take(claimant.clone(), bytes.min(self.shares.most()))
    }

    /// Returns `true` if `claimant` has so many answers to take that it gets no more.
    pub(crate) fn is_used_up_by(&self, claimant: &Claimant) -> bool {
        self.shares.over(claimant, 0).is_some()
    }

    /// The response as it leaves the server, counted for the claimant that [`for_caller`] noted on it, or for `other`. An answer that finds no room is
    /// replaced by an error. An event stream that nobody noted comes from another instance, which counts it.
    pub(crate) fn count(
        self: &Arc<Self>,
        mut response: Response<Body>,
        other: impl FnOnce() -> Claimant,
    ) -> Response<CountedBody> {
        let caller = response.extensions_mut().remove::<ForCaller>().map(|ForCaller(claimant)| claimant);
        let length = http_body::Body::size_hint(response.body()).exact();
        let Some(length) = length else {
            let tally = caller.filter(|_| is_events(&response)).map(|claimant| Tally {
                budget: self.clone(),
                claimant,
                waiting: Arc::default(),
            });
            return response.map(|body| CountedBody { body, tally });
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length <= UNCOUNTED {
            return response.map(|body| CountedBody { body, tally: None });
        }
        let claimant = caller.unwrap_or_else(|| Arc::new(other()));
        let response = match self.take(&claimant, length) {
            Ok(room) => response.map(|body| GuardedBody::new(body, room).into_body()),
            Err(why) => instead(response, length, why),
        };
        response.map(|body| CountedBody { body, tally: None })
    }
}

#[derive(Clone)]
struct ForCaller(Arc<Claimant>);

/// Notes on a response whose answer it is.
pub(crate) fn for_caller(response: &mut Response<Body>, claimant: Arc<Claimant>) {
    response.extensions_mut().insert(ForCaller(claimant));
}

fn is_events(response: &Response<Body>) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// The reason that a client gets in place of an answer of `bytes` bytes.
pub(crate) fn reason(bytes: usize, why: NoShare) -> String {
    let whose = match why {
        NoShare::Share => "this caller, or its network, has its share of the answers that are not read yet",
        NoShare::Room => "clients have too many answers that they do not read",
    };
    format!(
        "an answer of {bytes} bytes was dropped: {whose}. What was asked may have been done. Read the answers to open requests before you send more, \
         and ask for less at once; `http.maxUnsentMib` is the limit"
    )
}

/// The response to send in place of one that finds no room. A request that was answered is not one for proxies to send again: its error has the status 200.
fn instead(response: Response<Body>, length: usize, why: NoShare) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    // Bodies of a known length are there whole.
    let whole = body.collect().now_or_never().and_then(Result::ok).map(|body| body.to_bytes());
    let reason = reason(length, why);
    let Some(id) = whole.as_deref().and_then(answered_id) else { return refusal::busy(&reason) };
    let made = refusal::dropped(id, &reason);
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(parts, Body::from(made.to_string()))
}

/// A body on its way to a client.
pub(crate) struct CountedBody {
    body: Body,
    tally: Option<Tally>,
}

/// The events of one stream that wait for a client to take them.
struct Tally {
    budget: Arc<UnsentBudget>,
    claimant: Arc<Claimant>,
    waiting: Arc<AtomicUsize>,
}

/// An event on its way to the socket. hyper drops it when it is written.
struct Waiting {
    bytes: Bytes,
    waiting: Arc<AtomicUsize>,
    _room: Option<Share>,
}

impl AsRef<[u8]> for Waiting {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

impl Tally {
    /// The event, counted once more than [`UNCOUNTED`] bytes wait. An answer that finds no room is replaced by an error.
    ///
    /// # Errors
    /// Something else than an answer finds no room.
    fn count(&self, event: Bytes) -> Result<Bytes, axum::Error> {
        let length = event.len();
        let before = self.waiting.load(Ordering::Relaxed);
        let room = match before + length > UNCOUNTED {
            true => self.budget.take(&self.claimant, length).map(Some),
            false => Ok(None),
        };
        let (bytes, room) = match room {
            Ok(room) => (event, room),
            Err(why) => {
                let instead = error_event(&event, &reason(length, why));
                (instead.ok_or_else(|| axum::Error::new(NoRoom))?, None)
            }
        };
        self.waiting.fetch_add(bytes.len(), Ordering::Relaxed);
        Ok(Bytes::from_owner(Waiting { bytes, waiting: self.waiting.clone(), _room: room }))
    }
}

/// An event that is no answer found no room. Its stream ends, so that the client learns that something is missing.
#[derive(Debug)]
struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a stream whose client does not read it was ended; `http.maxUnsentMib` is the limit")
    }
}

impl std::error::Error for NoRoom {}

impl http_body::Body for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(match (polled, &self.tally) {
            (Some(Ok(frame)), Some(tally)) => Some(match frame.into_data() {
                Ok(event) => tally.count(event).map(Frame::data),
                Err(trailers) => Ok(trailers),
            }),
            (polled, _) => polled,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The event of an error in place of an event that answers a request, with what stands before its data.
fn error_event(event: &[u8], reason: &str) -> Option<Bytes> {
    const DATA: &[u8] = b"data:";
    let lines = event.split_inclusive(|byte| *byte == b'\n');
    let at = lines.take_while(|line| !line.starts_with(DATA)).map(<[u8]>::len).sum();
    let (before, data) = event.split_at(at);
    let error = refusal::dropped(answered_id(data.strip_prefix(DATA)?)?, reason);
    Some([before, DATA, b" ", error.to_string().as_bytes(), b"\n\n"].concat().into())
}

/// The id of the request that a message answers. Reads it to its `result` or `error`, which `rmcp` writes last.
fn answered_id(message: &[u8]) -> Option<Value> {
    struct Head<'a>(&'a mut Option<Value>);

    impl<'de> Visitor<'de> for Head<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an answer")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            let mut id = None;
            while let Some(key) = map.next_key::<String>()? {
                match key.as_str() {
                    "id" => id = Some(map.next_value()?),
                    "result" | "error" => {
                        *self.0 = id;
                        return Ok(());
                    }
                    "method" => return Ok(()),
                    _ => drop(map.next_value::<IgnoredAny>()?),
                }
            }
            Ok(())
        }
    }

    let mut id = None;
    // It stops before the end, which is an error to the parser.
    let _ = serde_json::Deserializer::from_slice(message).deserialize_map(Head(&mut id));
    id
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[test]
    fn the_id_of_an_answer_is_found_without_its_end() {
        let id = |text: &str| answered_id(text.as_bytes());
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":7,"result":{"a""#), Some(7.into()));
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":"a","error":{}}"#), Some("a".into()));
        for other in [
            r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","method":"x"}"#,
            r#"{"jsonrpc":"2.0","result":{},"id":1}"#,
            "[]",
            "<html>",
            "",
        ] {
            assert_eq!(id(other), None, "{other}");
        }
    }

    #[test]
    fn an_event_keeps_its_id_and_name_when_an_error_takes_its_place() {
        for head in ["", "event: message\n", "id: 1/7\nretry: 1000\n"] {
            let event = format!("{head}data: {{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{}}}}\n\n");
            let made = error_event(event.as_bytes(), "why").unwrap();
            let text = std::str::from_utf8(&made).unwrap();
            let data = text.strip_prefix(head).and_then(|rest| rest.strip_prefix("data: ")).unwrap();
            let error: Value = serde_json::from_str(data.strip_suffix("\n\n").unwrap()).unwrap();
            assert_eq!((&error["id"], &error["error"]["message"]), (&7.into(), &"why".into()));
        }
        assert_eq!(error_event(b"data: {\"method\":\"x\"}\n\n", "why"), None);
        assert_eq!(error_event(b": still here\n\n", "why"), None);
    }

    #[tokio::test]
    async fn events_that_wait_are_counted_beyond_what_every_answer_may_have_and_given_back_when_written() {
        let budget = UnsentBudget::new(1);
        let event = |bytes: usize| format!("data: {{\"id\":1,\"result\":\"{}\"}}\n\n", "x".repeat(bytes));
        let events = [event(100), event(20_000), event(100_000), event(300_000)];
        let stream = futures::stream::iter(events.clone().map(Ok::<_, std::convert::Infallible>));
        let mut response = Response::new(Body::from_stream(stream));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        let caller = Claimant::new(Some("ada".into()), None, &[]);
        for_caller(&mut response, Arc::new(caller));
        let mut body = budget.count(response, Claimant::default).into_body();
        let mut written = Vec::new();
        for _ in &events {
            written.push(body.frame().await.unwrap().unwrap().into_data().unwrap());
        }
        assert_eq!(written[..3], events[..3]);
        assert!(written[3].len() < 1000, "it would be more than a quarter of what it leaves free");
        assert_eq!(budget.taken(), events[1].len() + events[2].len());
        drop(written);
        assert_eq!(budget.taken(), 0);
    }

    #[tokio::test]
    async fn what_is_longer_than_the_budget_is_sent_where_nothing_else_waits() {
        let budget = UnsentBudget::new(1);
        let long = || Response::new(Body::from(vec![b' '; 2 << 20]));
        let first = budget.count(long(), Claimant::default);
        assert_eq!((first.status(), budget.taken()), (StatusCode::OK, 1 << 20));
        let second = budget.count(long(), Claimant::default);
        assert_eq!((second.status(), budget.taken()), (StatusCode::SERVICE_UNAVAILABLE, 1 << 20));
        assert_eq!(first.into_body().collect().await.unwrap().to_bytes().len(), 2 << 20);
        assert_eq!(budget.taken(), 0);
    }
}
