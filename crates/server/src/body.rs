//! Bodies: read whole under a limit, or sent with something that lives as long as they do.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Body;
use bytes::{Buf, Bytes};
use futures::future::BoxFuture;
use gatewright_core::NoShare;
use http::Request;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;

use crate::request_memory::{Pieces, Room};

/// A body that was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyError {
    TooLong,
    TooSlow,
    Broken,
    NoRoom(NoShare),
}

/// Reads a body of at most `most` bytes within `time`, as far as there is `room`.
///
/// Of a body that turns out to be too long, as much again is read and dropped, so that its sender receives the answer.
pub(crate) async fn read(
    body: &mut Body,
    most: usize,
    time: Duration,
    room: &mut Room,
) -> Result<Bytes, BodyError> {
    tokio::time::timeout(time, collect(body, most, room)).await.unwrap_or(Err(BodyError::TooSlow))
}

/// Returns `true` if the body's declared length (`Content-Length`) is over `most` bytes.
pub(crate) fn is_declared_too_long(body: &Body, most: usize) -> bool {
    http_body::Body::size_hint(body).lower() > most as u64
}

/// Longest time a refused body is read on while its answer is sent.
const LINGER_TIME: Duration = Duration::from_secs(1);
/// Most bytes read of such a body.
const LINGER_BYTES: usize = 4 << 20;

/// Reads and drops a body that was refused already, within a time and a length: a connection that is closed while its client
/// still sends is reset, and the client may lose the answer (RFC 9112 §9.6).
pub(crate) async fn linger(mut body: Body) {
    let drain = async {
        let mut left = LINGER_BYTES;
        while let Some(Ok(frame)) = body.frame().await {
            let read = frame.data_ref().map_or(0, Buf::remaining);
            let Some(rest) = left.checked_sub(read) else { return };
            left = rest;
        }
    };
    let _ = tokio::time::timeout(LINGER_TIME, drain).await;
}

/// Tells whether the body of a request was read to its end.
pub(crate) struct Unfinished(Option<Arc<AtomicBool>>);

impl Unfinished {
    /// Returns `true` if part of the body may still arrive: the connection cannot be used for another request.
    pub(crate) fn is_left(&self) -> bool {
        self.0.as_ref().is_some_and(|read| !read.load(Ordering::Relaxed))
    }
}

/// The request, with its body watched.
pub(crate) fn watched(request: Request<Body>) -> (Request<Body>, Unfinished) {
    if http_body::Body::is_end_stream(request.body()) {
        return (request, Unfinished(None));
    }
    let read = Arc::new(AtomicBool::new(false));
    let request = request.map(|inner| Body::new(Watched { inner, read: read.clone() }));
    (request, Unfinished(Some(read)))
}

struct Watched {
    inner: Body,
    read: Arc<AtomicBool>,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(context));
        if frame.is_none() || http_body::Body::is_end_stream(&self.inner) {
            self.read.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        http_body::Body::is_end_stream(&self.inner)
    }

    fn size_hint(&self) -> SizeHint {
        http_body::Body::size_hint(&self.inner)
    }
}

/// Longest body of a caller that is not let in that is looked at, in bytes.
const MOST_PEEKED: usize = 64 * 1024;
/// Longest wait for such a body.
const PEEK_TIME: Duration = Duration::from_secs(1);

/// The body of a caller that is not let in; empty when it says no length, is too long or takes too long.
pub(crate) async fn peek(body: &mut Body, room: &mut Room) -> Bytes {
    let length = http_body::Body::size_hint(body).exact();
    match length.is_some_and(|length| length <= MOST_PEEKED as u64) {
        true => read(body, MOST_PEEKED, PEEK_TIME, room).await.unwrap_or_default(),
        false => Bytes::new(),
    }
}

async fn collect(body: &mut Body, most: usize, room: &mut Room) -> Result<Bytes, BodyError> {
    let mut pieces = Pieces::new(most, room);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        match pieces.add(data) {
            Err(BodyError::TooLong) if pieces.length() <= most.saturating_mul(2) => {}
            added => added?,
        }
    }
    pieces.whole()
}

/// A body with a guard that is dropped once it is sent; it may be ended early.
pub(crate) struct GuardedBody<H> {
    body: Body,
    guard: Option<Arc<H>>,
    end: Option<BoxFuture<'static, ()>>,
}

impl<H: Send + Sync + 'static> GuardedBody<H> {
    /// Keeps `guard` until the last byte of the body is written to the client's socket, or dropped.
    pub(crate) fn new(body: Body, guard: H) -> Self {
        Self { body, guard: Some(Arc::new(guard)), end: None }
    }

    /// Ends the body when `end` is done.
    pub(crate) fn until(mut self, end: impl Future<Output = ()> + Send + 'static) -> Self {
        self.end = Some(Box::pin(end));
        self
    }

    pub(crate) fn into_body(self) -> Body {
        Body::new(self)
    }
}

/// Bytes of a body on their way to the socket. hyper drops them when they are written.
struct Unsent<H> {
    bytes: Bytes,
    _guard: Arc<H>,
}

impl<H> AsRef<[u8]> for Unsent<H> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<H: Send + Sync + 'static> http_body::Body for GuardedBody<H> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        let polled = match (&mut this.end, polled) {
            (Some(end), Poll::Pending) => end.as_mut().poll(cx).map(|()| None),
            (_, polled) => polled,
        };
        let guard = this.guard.clone();
        if matches!(polled, Poll::Ready(None)) {
            this.guard = None;
        }
        polled.map_ok(|frame| match guard {
            Some(guard) => frame.map_data(|bytes| Bytes::from_owner(Unsent { bytes, _guard: guard })),
            None => frame,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
