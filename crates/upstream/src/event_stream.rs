//! Event streams of servers (Server-Sent Events), whose events are bounded while they arrive.

use std::io;

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream::BoxStream};
use gatewright_core::{ConnectionThread, LineRoom as _};
use http::{
    StatusCode,
    header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER},
};
use reqwest::Response;
use rmcp::transport::streamable_http_client::{HttpStatusError, StreamableHttpError};
use sse_stream::{Error as SseError, Sse, SseStream};

use crate::{
    arriving::Arriving,
    http_error::{Failed, HttpError, RequestError},
    post::{Headers, SESSION, challenge, header},
};

pub(crate) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// An event longer than the limit.
pub(crate) const TOO_LONG: &str = "the event exceeded the maximum size";
/// An event for which there is no memory.
pub(crate) const NO_ROOM: &str = "the event found no memory";

/// A request for an event stream.
#[derive(Debug, Default)]
pub(crate) struct StreamRequest<'r> {
    pub(crate) uri: &'r str,
    pub(crate) session: Option<&'r str>,
    /// Id of the last event that arrived.
    pub(crate) last: Option<&'r str>,
    pub(crate) token: Option<&'r str>,
}

impl StreamRequest<'_> {
    /// Opens the stream. Its events have at most `longest` bytes each.
    pub(crate) async fn open(
        &self,
        (client, connections): (&reqwest::Client, &ConnectionThread),
        headers: &Headers,
        longest: usize,
        arriving: Arriving,
    ) -> Result<Events, Failed> {
        let mut request = client.get(self.uri).header(ACCEPT, "text/event-stream, application/json");
        request = headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        for (name, value) in [(SESSION, self.session), ("last-event-id", self.last)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        if let Some(token) = self.token {
            request = request.bearer_auth(token);
        }
        let response = connections.drive(request.send()).await.map_err(RequestError::from)?;
        let status = response.status();
        if let Some(challenge) = challenge(&response) {
            return Err(challenge);
        }
        match status {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            _ if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() => {
                let retry_after = header(&response, RETRY_AFTER.as_str());
                Err(HttpStatusError::new(status.as_u16(), retry_after).into())
            }
            _ if !status.is_success() => Err(Failed::Client(HttpError::Status(status, String::new()))),
            _ => match header(&response, CONTENT_TYPE.as_str()) {
                Some(kind)
                    if ["text/event-stream", "application/json"]
                        .iter()
                        .any(|known| kind.starts_with(known)) =>
                {
                    Ok(events(response, longest, arriving))
                }
                kind => Err(StreamableHttpError::UnexpectedContentType(kind)),
            },
        }
    }
}

/// The events of a response, each of at most `longest` bytes, as far as there is memory for those that are `arriving`.
pub(crate) fn events(response: Response, longest: usize, mut arriving: Arriving) -> Events {
    let mut size = EventSize::default();
    let chunks = response.bytes_stream().then(async |chunk| {
        // Line ends alone are no event.
        give_way(chunk.as_ref().map_or(0, Bytes::len)).await;
        chunk
    });
    let bytes = chunks.map(move |chunk| {
        let chunk = chunk.map_err(|error| io::Error::other(RequestError::from(error)))?;
        match size.add(&chunk) {
            most if most > longest => Err(io::Error::other(TOO_LONG)),
            most if !arriving.set(most) => Err(io::Error::other(NO_ROOM)),
            _ => Ok(chunk),
        }
    });
    giving_way(SseStream::from_bytes_stream(bytes))
}

/// Bytes of a piece or message after which other work has its turn: to read more than a hundred of them takes long.
const LONG: usize = 4 << 10;

/// Lets other work on the thread have its turn: after each `bytes` that are many, and after some that are few.
pub(crate) async fn give_way(bytes: usize) {
    if bytes > LONG {
        tokio::task::yield_now().await;
    } else {
        tokio::task::coop::consume_budget().await;
    }
}

/// The same events. Between them, other work on the thread gets its turn: thousands of small ones arrive in one piece.
pub(crate) fn giving_way<E: Send + 'static>(
    events: impl Stream<Item = Result<Sse, E>> + Send + 'static,
) -> BoxStream<'static, Result<Sse, E>> {
    let each = async |event: Result<Sse, E>| {
        give_way(event.as_ref().ok().and_then(|event| event.data.as_ref()).map_or(0, String::len)).await;
        event
    };
    events.then(each).boxed()
}

/// Counts the bytes of the event under way.
#[derive(Debug, Default)]
struct EventSize {
    bytes: usize,
    /// The line under way is not empty.
    has_text: bool,
}

impl EventSize {
    /// Adds a chunk. Returns the bytes of the longest event of which it has a part.
    fn add(&mut self, chunk: &[u8]) -> usize {
        let mut most = 0;
        for line in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.bytes = self.bytes.saturating_add(line.len());
            most = most.max(self.bytes);
            self.has_text |= line.iter().any(|byte| !matches!(byte, b'\r' | b'\n'));
            if line.ends_with(b"\n") {
                if !self.has_text {
                    self.bytes = 0;
                }
                self.has_text = false;
            }
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };

    use super::*;

    #[tokio::test]
    async fn other_work_gets_its_turn_between_events() {
        let turns = Arc::new(AtomicU64::new(0));
        let other = tokio::spawn({
            let turns = turns.clone();
            async move {
                loop {
                    turns.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            }
        });
        let small = (0..50_000).map(|_| Ok::<_, SseError>(Sse::default()));
        let read = giving_way(futures::stream::iter(small)).count().await;
        let turns = turns.load(Ordering::Relaxed);
        assert!(read == 50_000 && turns >= 100, "{turns} turns");
        other.abort();
    }

    #[test]
    fn the_size_of_an_event_is_counted_over_chunks_and_ends_with_an_empty_line() {
        let mut size = EventSize::default();
        assert_eq!(size.add(b"data: a\ndata"), 12);
        assert_eq!(size.add(b": b\r"), 16);
        assert_eq!(size.add(b"\n\r\ndata: c\n\ndata"), 19);
        assert_eq!(size.add(b": d"), 7);
    }
}
