//! Timeouts of connections: unused ones, and those whose client sends its headers slowly.
//!
//! hyper has one time for both (`header_read_timeout`): a time short enough for clients that send their headers a byte at a
//! time is too short for clients that keep a connection to use it again, and those meet a closed one. hyper asks for that time
//! from a timer, so each connection gets a timer of its own, [`IdleTimer`], that learns from the socket whether a request has begun.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use http::{HeaderMap, HeaderValue, Version, header};
use hyper::rt::Timer;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep},
};

/// Time that a connection is kept beyond what it announces: for a request that is on its way when the time is over.
const ON_ITS_WAY: Duration = Duration::from_secs(1);

const KEEP_ALIVE: header::HeaderName = header::HeaderName::from_static("keep-alive");

/// Timeouts of every connection.
#[derive(Debug, Clone)]
pub(crate) struct Times {
    idle: Duration,
    head: Duration,
    write: Duration,
    said: HeaderValue,
}

impl Times {
    /// `idle` between two requests; `head` for the headers of one, from its first byte on, or from the start of the connection;
    /// `write` until the client takes the next bytes of an answer.
    pub(crate) fn new(idle: Duration, head: Duration, write: Duration) -> Self {
        let said = HeaderValue::try_from(format!("timeout={}", idle.as_secs()));
        Self { idle, head, write, said: said.expect("digits may stand in a header") }
    }

    /// Longest wait for the headers of a request, and for a TLS handshake.
    pub(crate) fn head(&self) -> Duration {
        self.head
    }

    /// Longest wait until a client takes the next bytes of an answer.
    pub(crate) fn write(&self) -> Duration {
        self.write
    }

    /// hyper's timeout for headers: the longer time, which [`IdleTimer`] shortens.
    pub(crate) fn longest(&self) -> Duration {
        self.idle + ON_ITS_WAY
    }

    /// Says in a response how long the connection is kept, so that clients stop to use it in time. Not in one that ends it.
    pub(crate) fn say(&self, headers: &mut HeaderMap) {
        // The field is one of this connection, and is named as such (RFC 9110 §7.6.1).
        if let header::Entry::Vacant(connection) = headers.entry(header::CONNECTION) {
            connection.insert(HeaderValue::from_static("keep-alive"));
            headers.insert(KEEP_ALIVE, self.said.clone());
        }
    }
}

/// Returns `true` if the client of a request with these headers may use the connection again.
pub(crate) fn is_kept(version: Version, headers: &HeaderMap) -> bool {
    let mut options = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    version == Version::HTTP_11
        && !options.any(|value| value.split(',').any(|option| option.trim().eq_ignore_ascii_case("close")))
}

struct TimerState {
    head: Duration,
    /// A head was waited for before: until then the client has to send one, it is not idle.
    used: AtomicBool,
    /// Bytes came since hyper last began to wait for a head.
    begun: AtomicBool,
    /// The socket had nothing to read since the last request, so that other connections had their turn.
    waited: AtomicBool,
    /// One for all waits of the connection. It rings too early rather than being set for each request.
    alarm: Mutex<Pin<Box<Sleep>>>,
}

/// The timer of one connection.
#[derive(Clone)]
pub(crate) struct IdleTimer(Arc<TimerState>);

impl IdleTimer {
    pub(crate) fn new(times: &Times) -> Self {
        Self(Arc::new(TimerState {
            head: times.head,
            used: AtomicBool::new(false),
            begun: AtomicBool::new(false),
            waited: AtomicBool::new(true),
            alarm: Mutex::new(Box::pin(tokio::time::sleep(times.head.min(times.longest())))),
        }))
    }

    /// Returns `false` for a request that was there already when the one before it was answered.
    pub(crate) fn was_waited_for(&self) -> bool {
        self.0.waited.swap(false, Ordering::Relaxed)
    }

    /// The connection's socket, which tells when a request begins.
    pub(crate) fn over<S>(&self, socket: S) -> TimedSocket<S> {
        TimedSocket { socket, watch: self.0.clone() }
    }
}

impl Timer for IdleTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        self.0.begun.store(false, Ordering::Relaxed);
        let is_first = !self.0.used.swap(true, Ordering::Relaxed);
        let mut wait = Wait { watch: self.0.clone(), deadline: deadline.into(), reading: false };
        if is_first {
            wait.read();
        }
        Box::pin(wait)
    }

    fn now(&self) -> std::time::Instant {
        Instant::now().into()
    }
}

/// A wait for a head.
struct Wait {
    watch: Arc<TimerState>,
    deadline: Instant,
    reading: bool,
}

impl Wait {
    fn read(&mut self) {
        self.reading = true;
        self.deadline = Instant::now() + self.watch.head;
    }
}

impl Future for Wait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !self.reading && self.watch.begun.load(Ordering::Relaxed) {
            self.read();
        }
        let deadline = self.deadline;
        // Nothing panics while it holds the lock.
        let mut alarm = self.watch.alarm.lock().unwrap_or_else(PoisonError::into_inner);
        if alarm.deadline() > deadline {
            alarm.as_mut().reset(deadline);
        }
        loop {
            ready!(alarm.as_mut().poll(cx));
            if alarm.deadline() >= deadline {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(deadline);
        }
    }
}

impl hyper::rt::Sleep for Wait {}

/// A socket that tells its [`IdleTimer`] when bytes come.
pub(crate) struct TimedSocket<S> {
    socket: S,
    watch: Arc<TimerState>,
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let Poll::Ready(read) = Pin::new(&mut self.socket).poll_read(cx, buffer) else {
            self.watch.waited.store(true, Ordering::Relaxed);
            return Poll::Pending;
        };
        if buffer.filled().len() > before {
            self.watch.begun.store(true, Ordering::Relaxed);
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedSocket<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use bytes::Bytes;
    use http_body_util::Full;
    use hyper::{Response, server::conn::http1, service::service_fn};
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

    use super::*;

    const S: Duration = Duration::from_secs(1);
    const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: h\r\n\r\n";

    /// A connection to a server with these times.
    fn connect(idle: Duration, head: Duration) -> DuplexStream {
        let (client, server) = tokio::io::duplex(4096);
        let times = Times::new(idle, head, 30 * S);
        let watch = IdleTimer::new(&times);
        tokio::spawn(async move {
            let service = service_fn(async |_| Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("ok"))));
            let mut http = http1::Builder::new();
            http.timer(watch.clone()).header_read_timeout(times.longest());
            http.serve_connection(TokioIo::new(watch.over(server)), service).await
        });
        client
    }

    async fn ask(client: &mut DuplexStream) {
        client.write_all(GET).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"ok") {
            assert_ne!(client.read_buf(&mut answer).await.unwrap(), 0, "closed");
        }
        assert!(answer.starts_with(b"HTTP/1.1 200"));
    }

    /// Time that the connection lives from now on.
    async fn lives(client: &mut DuplexStream) -> Duration {
        let start = Instant::now();
        client.read_to_end(&mut Vec::new()).await.unwrap();
        start.elapsed()
    }

    /// A timer rings within the millisecond after its time.
    fn about(time: Duration, expected: Duration) -> bool {
        time >= expected && time < expected + Duration::from_millis(5)
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_used_again_after_a_pause_longer_than_headers_may_take() {
        let mut client = connect(75 * S, 30 * S);
        for pause in [35, 74, 1, 60, 29] {
            ask(&mut client).await;
            tokio::time::sleep(pause * S).await;
        }
        ask(&mut client).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_used_no_more_ends_a_second_after_the_time_it_announces() {
        for idle in [2 * S, 75 * S] {
            let mut client = connect(idle, 30 * S);
            ask(&mut client).await;
            tokio::time::sleep(S).await;
            ask(&mut client).await;
            let time = lives(&mut client).await;
            assert!(about(time, idle + S), "{time:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_never_sends_a_request_ends_after_the_time_for_headers() {
        let mut client = connect(75 * S, 30 * S);
        let time = lives(&mut client).await;
        assert!(about(time, 30 * S), "{time:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn headers_that_trickle_end_the_connection_counted_from_their_first_byte() {
        for pause in [0, 1, 60] {
            let mut client = connect(75 * S, 30 * S);
            ask(&mut client).await;
            tokio::time::sleep(pause * S).await;
            let (mut reading, mut writing) = tokio::io::split(client);
            let start = Instant::now();
            let drip = async {
                for byte in GET.iter().cycle() {
                    if writing.write_all(&[*byte]).await.is_err() {
                        break;
                    }
                    tokio::time::sleep(2 * S).await;
                }
            };
            let end = async {
                reading.read_to_end(&mut Vec::new()).await.unwrap();
                start.elapsed()
            };
            let time = tokio::select! {
                time = end => time,
                () = drip => panic!("the connection was not ended by its server"),
            };
            assert!(about(time, 30 * S), "after a pause of {pause} s: {time:?}");
        }
    }

    #[test]
    fn a_response_that_ends_its_connection_announces_no_time() {
        let times = Times::new(75 * S, 30 * S, 30 * S);
        let mut headers = HeaderMap::new();
        times.say(&mut headers);
        assert_eq!(
            (&headers["connection"], &headers["keep-alive"]),
            (&"keep-alive".parse().unwrap(), &"timeout=75".parse().unwrap())
        );
        let mut headers = HeaderMap::from_iter([(header::CONNECTION, HeaderValue::from_static("close"))]);
        times.say(&mut headers);
        assert_eq!((headers.len(), &headers["connection"]), (1, &"close".parse().unwrap()));
    }

    #[test]
    fn only_a_client_that_keeps_its_connection_is_told() {
        let kept = |version, values: &[&'static str]| {
            let values = values.iter().map(|value| (header::CONNECTION, HeaderValue::from_static(value)));
            is_kept(version, &values.collect())
        };
        assert!(kept(Version::HTTP_11, &[]));
        assert!(kept(Version::HTTP_11, &["keep-alive"]));
        assert!(!kept(Version::HTTP_11, &["x", "upgrade, Close"]));
        assert!(!kept(Version::HTTP_10, &[]));
    }
}
