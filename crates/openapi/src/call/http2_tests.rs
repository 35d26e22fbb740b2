//! HTTP/2 at servers on loopback: calls over one connection, and servers that send what no answer needs.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

use http::{HeaderMap, Method, Request};
use http_body::{Body, Frame};
use http_body_util::{Full, combinators::BoxBody};
use hyper::{
    body::{Bytes, Incoming},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf},
    net::{TcpListener, TcpStream},
    sync::{Barrier, mpsc},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use url::Url;

use super::{
    answer::Memory,
    failure::CallError,
    http::{HttpClient, Outgoing, Retries},
    response::Response,
    traffic::MOST_UNASKED,
};

const CONNECT: Duration = Duration::from_secs(20);
/// Ends a test that hangs.
const LONGEST: Duration = Duration::from_secs(60);
/// Bytes of the connection that the system keeps between the two sides.
const BETWEEN: usize = 24 * 1024 * 1024;

type Answer = BoxBody<Bytes, Infallible>;

/// A server with a certificate of its own, and a client that trusts it.
struct Server {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    url: Url,
    client: HttpClient,
}

impl Server {
    async fn start(protocols: &[&str]) -> Self {
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let provider = || Arc::new(aws_lc_rs::default_provider());
        let key = PrivateKeyDer::try_from(pair.signing_key.serialize_der()).unwrap();
        let certificates: Vec<CertificateDer<'static>> = vec![pair.cert.der().clone()];
        let server =
            ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
        let mut server = server.with_no_client_auth().with_single_cert(certificates, key).unwrap();
        server.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let mut roots = RootCertStore::empty();
        roots.add(pair.cert.der().clone()).unwrap();
        let client =
            ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions().unwrap();
        let client = client.with_root_certificates(roots).with_no_client_auth();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}/x", listener.local_addr().unwrap().port());
        Self {
            listener,
            acceptor: TlsAcceptor::from(Arc::new(server)),
            url: Url::parse(&url).unwrap(),
            client: HttpClient::with_tls(true, CONNECT, None, client).unwrap(),
        }
    }

    /// Serves HTTP/2, or HTTP/1.1 to a client that did not agree to it. Returns the client, the URL, and the number of connections over
    /// which requests came.
    fn serve<F>(self, answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static) -> Served
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let used = Arc::new(AtomicUsize::new(0));
        let counted = used.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = self.listener.accept().await {
                let (acceptor, answer, counted) = (self.acceptor.clone(), answer.clone(), counted.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                    let requests = Arc::new(AtomicUsize::new(0));
                    let service = service_fn(move |request| {
                        if requests.fetch_add(1, Ordering::SeqCst) == 0 {
                            counted.fetch_add(1, Ordering::SeqCst);
                        }
                        let answered = answer(request);
                        async move { Ok::<_, Infallible>(http::Response::new(answered.await)) }
                    });
                    let io = TokioIo::new(stream);
                    let _ = match is_http2 {
                        true => http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await,
                        false => http1::Builder::new().serve_connection(io, service).await,
                    };
                });
            }
        });
        Served { client: self.client, url: self.url, used }
    }

    /// The next connection, after the preface and the first request.
    async fn asked(&self) -> (ReadHalf<TlsStream<TcpStream>>, WriteHalf<TlsStream<TcpStream>>, u32) {
        loop {
            let (stream, _) = self.listener.accept().await.unwrap();
            let mut stream = self.acceptor.accept(stream).await.unwrap();
            let mut preface = [0; 24];
            // A connection that lost against another one is closed.
            if stream.read_exact(&mut preface).await.is_err() {
                continue;
            }
            assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
            stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
            stream.flush().await.unwrap();
            loop {
                let (kind, id) = next_frame(&mut stream).await.expect("a request");
                if kind == HEADERS {
                    let (read, write) = tokio::io::split(stream);
                    return (read, write, id);
                }
            }
        }
    }
}

struct Served {
    client: HttpClient,
    url: Url,
    used: Arc<AtomicUsize>,
}

impl Served {
    fn connections(&self) -> usize {
        self.used.load(Ordering::SeqCst)
    }
}

fn outgoing(method: Method, url: &Url) -> Outgoing {
    let url = url.clone();
    Outgoing { method, url, headers: HeaderMap::new(), body: None, shows_certificate: false, trail: None }
}

async fn get(client: &HttpClient, url: &Url) -> Result<Response, CallError> {
    let request = outgoing(Method::GET, url);
    let sending = client.send_once(&request);
    tokio::time::timeout(LONGEST, sending).await.expect("the request ends")
}

async fn text(client: &HttpClient, url: &Url) -> Result<String, CallError> {
    let mut memory = Memory::default();
    let reading = get(client, url).await?.read(1_000, &mut memory);
    let body = tokio::time::timeout(LONGEST, reading).await.expect("the answer ends")?;
    Ok(String::from_utf8(body).unwrap())
}

fn whole(text: &'static str) -> Answer {
    BoxBody::new(Full::from(text))
}

#[tokio::test]
async fn calls_at_one_time_share_a_connection_where_the_server_speaks_http_2() {
    let together = Arc::new(Barrier::new(8));
    let served = Server::start(&["h2", "http/1.1"]).await.serve(move |request| {
        let together = together.clone();
        async move {
            assert_eq!(request.version(), http::Version::HTTP_2);
            assert_eq!(request.uri().host(), Some("localhost"));
            if request.method() == Method::PUT {
                together.wait().await;
            }
            whole("fine")
        }
    });
    assert_eq!(text(&served.client, &served.url).await.unwrap(), "fine");
    let calls = (0..8).map(|_| {
        let (client, put) = (served.client.clone(), outgoing(Method::PUT, &served.url));
        // The server answers none before it has all of them.
        tokio::spawn(async move {
            client.send_once(&put).await.unwrap().read(1_000, &mut Memory::default()).await.unwrap()
        })
    });
    for call in calls.collect::<Vec<_>>() {
        let body = tokio::time::timeout(LONGEST, call).await.expect("all are open at one time");
        assert_eq!(body.unwrap(), b"fine");
    }
    assert_eq!(served.connections(), 1);
}

#[tokio::test]
async fn a_server_that_does_not_choose_http_2_is_asked_over_http_1() {
    for protocols in [&["http/1.1"][..], &[]] {
        let served = Server::start(protocols).await.serve(|request: Request<Incoming>| async move {
            assert_eq!(request.version(), http::Version::HTTP_11);
            whole("fine")
        });
        assert_eq!(text(&served.client, &served.url).await.unwrap(), "fine");
    }
}

/// A body without end, which reports that nobody wants more of it.
struct Endless(mpsc::UnboundedSender<()>);

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; 8 * 1024])))))
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn an_answer_over_the_limit_is_given_up_and_the_connection_stays() {
    let (dropped, mut given_up) = mpsc::unbounded_channel();
    let served = Server::start(&["h2"]).await.serve(move |request| {
        let dropped = dropped.clone();
        async move {
            match request.uri().path() {
                "/endless" => BoxBody::new(Endless(dropped)),
                _ => whole("fine"),
            }
        }
    });
    let endless = served.url.join("/endless").unwrap();
    // More of them than the connection may read beside answers.
    for _ in 0..10 {
        let response = get(&served.client, &endless).await.unwrap();
        assert_eq!(
            response.read(1_000_000, &mut Memory::default()).await,
            Err(CallError::TooLarge(1_000_000))
        );
        tokio::time::timeout(LONGEST, given_up.recv()).await.expect("the server hears of it").unwrap();
        assert_eq!(text(&served.client, &served.url).await.unwrap(), "fine");
    }
    assert_eq!(served.connections(), 1);
}

#[tokio::test]
async fn an_answer_that_nobody_reads_keeps_no_other_back() {
    let (dropped, _given_up) = mpsc::unbounded_channel();
    let long: &'static str = String::leak("x".repeat(3_000_000));
    let served = Server::start(&["h2"]).await.serve(move |request| {
        let dropped = dropped.clone();
        async move {
            match request.uri().path() {
                "/endless" => BoxBody::new(Endless(dropped)),
                _ => whole(long),
            }
        }
    });
    let endless = served.url.join("/endless").unwrap();
    let unread = [get(&served.client, &endless).await.unwrap(), get(&served.client, &endless).await.unwrap()];
    let mut memory = Memory::default();
    let long = get(&served.client, &served.url).await.unwrap().read(3_000_000, &mut memory);
    assert_eq!(tokio::time::timeout(LONGEST, long).await.expect("it is read").unwrap().len(), 3_000_000);
    assert_eq!((served.connections(), unread.len()), (1, 2));
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status: 200` (RFC 7541, appendix A).
const STATUS_200: u8 = 0x88;
/// `:status: 103`, which is written out.
const STATUS_103: [u8; 5] = [0x08, 3, b'1', b'0', b'3'];

/// A frame (RFC 9113 §4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

/// The kind and the stream of the next frame.
async fn next_frame(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Option<(u8, u32)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.ok()?;
    let [a, b, c, kind, _, id @ ..] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
    stream.read_exact(&mut payload).await.ok()?;
    Some((kind, u32::from_be_bytes(id)))
}

/// Bytes that a server can send before the connection breaks: `first`, and `again` without end. It reads what the client sends.
async fn flood(
    (mut read, mut write): (ReadHalf<TlsStream<TcpStream>>, WriteHalf<TlsStream<TcpStream>>),
    first: Vec<u8>,
    again: Vec<u8>,
) -> usize {
    let reading = tokio::spawn(async move { tokio::io::copy(&mut read, &mut tokio::io::sink()).await });
    let many = again.repeat((64 * 1024 / again.len()).max(1));
    let mut sent = first.len();
    let writing = async {
        write.write_all(&first).await?;
        loop {
            write.write_all(&many).await?;
            write.flush().await?;
            sent += many.len();
        }
    };
    let ended: std::io::Result<Infallible> =
        tokio::time::timeout(LONGEST, writing).await.expect("the client ends the connection");
    assert!(ended.is_err());
    reading.abort();
    sent
}

#[tokio::test]
async fn frames_that_no_answer_needs_end_the_connection() {
    let head = |flags| frame(HEADERS, END_HEADERS | flags, 1, &[STATUS_200]);
    let cookie = [&[0x40, 1, b'a', 100][..], &[b'x'; 100]].concat();
    for (name, first, again) in [
        ("pings", vec![], frame(PING, 0, 0, &[0; 8])),
        ("settings", vec![], frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0])),
        ("window updates", vec![], frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
        ("interim responses", vec![], frame(HEADERS, END_HEADERS, 1, &STATUS_103)),
        ("continuations", frame(HEADERS, 0, 1, &[STATUS_200]), frame(CONTINUATION, 0, 1, &[])),
        ("headers", frame(HEADERS, 0, 1, &[STATUS_200]), frame(CONTINUATION, 0, 1, &cookie)),
        ("empty parts", head(0), frame(DATA, 0, 1, &[])),
        ("padding", head(0), frame(DATA, 8, 1, &[&[255_u8][..], &[0; 255]].concat())),
        ("resets", head(END_STREAM), frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])),
        ("unknown frames", vec![], frame(99, 0, 0, &[0; 100])),
    ] {
        let server = Server::start(&["h2"]).await;
        let (client, url) = (server.client.clone(), server.url.clone());
        let call = tokio::spawn(async move { text(&client, &url).await });
        let (read, write, _) = tokio::time::timeout(LONGEST, server.asked()).await.expect("a request");
        let sent = flood((read, write), first, again).await;
        assert!(sent < MOST_UNASKED + BETWEEN, "{name}: {sent} bytes");
        match call.await.unwrap() {
            // The answer was whole before.
            Ok(text) => assert_eq!((name, text), ("resets", String::new())),
            Err(error) => assert!(matches!(error, CallError::Unreachable(_)), "{name}: {error:?}"),
        }
    }
}

#[tokio::test]
async fn frames_without_end_after_an_answer_end_the_connection_and_no_other() {
    let server = Server::start(&["h2"]).await;
    let (client, url) = (server.client.clone(), server.url.clone());
    let call = tokio::spawn(async move { text(&client, &url).await });
    let (read, mut write, id) = tokio::time::timeout(LONGEST, server.asked()).await.expect("a request");
    write.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, id, &[STATUS_200])).await.unwrap();
    write.flush().await.unwrap();
    assert_eq!(call.await.unwrap(), Ok(String::new()));
    // Nobody waits for an answer now.
    let sent = flood((read, write), vec![], frame(PING, 0, 0, &[0; 8])).await;
    assert!(sent < MOST_UNASKED + BETWEEN, "{sent} bytes");
    let (client, url) = (server.client.clone(), server.url.clone());
    let call = tokio::spawn(async move { text(&client, &url).await });
    let (_read, mut write, id) = tokio::time::timeout(LONGEST, server.asked()).await.expect("a request");
    write.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, id, &[STATUS_200])).await.unwrap();
    write.flush().await.unwrap();
    assert_eq!(call.await.unwrap(), Ok(String::new()));
}

#[tokio::test]
async fn headers_over_the_limit_end_the_request() {
    let server = Server::start(&["h2"]).await;
    let (client, url) = (server.client.clone(), server.url.clone());
    let call = tokio::spawn(async move { text(&client, &url).await });
    let (mut read, mut write, id) = tokio::time::timeout(LONGEST, server.asked()).await.expect("a request");
    // A header of 100 bytes once, and then by its index in the table: 100 KB in 1 KB.
    let cookie = [&[STATUS_200, 0x40, 1, b'a', 100][..], &[b'x'; 100], &[0xbe; 1_000]].concat();
    write.write_all(&frame(HEADERS, END_HEADERS, id, &cookie)).await.unwrap();
    write.flush().await.unwrap();
    let answer = call.await.unwrap();
    assert!(matches!(answer, Err(CallError::Unreachable(_))), "{answer:?}");
    let reset = async {
        while let Some((kind, stream)) = next_frame(&mut read).await {
            if (kind, stream) == (RST_STREAM, id) {
                return true;
            }
        }
        false
    };
    assert!(tokio::time::timeout(LONGEST, reset).await.expect("a reset"));
}

#[tokio::test]
async fn a_request_that_the_server_says_it_did_not_begin_is_sent_again_whatever_its_method() {
    let server = Server::start(&["h2"]).await;
    let (client, post) = (server.client.clone(), outgoing(Method::POST, &server.url));
    let call = tokio::spawn(async move {
        let retries = Retries { most: 2, is_idempotent: false, until: Instant::now() + LONGEST };
        client.send(&post, retries).await?.read(1_000, &mut Memory::default()).await
    });
    let (_read, mut write, id) = tokio::time::timeout(LONGEST, server.asked()).await.expect("a request");
    // REFUSED_STREAM.
    write.write_all(&frame(RST_STREAM, 0, id, &[0, 0, 0, 7])).await.unwrap();
    // The last stream is 0, and the reason NO_ERROR.
    write.write_all(&frame(GOAWAY, 0, 0, &[0; 8])).await.unwrap();
    write.flush().await.unwrap();
    let (_read, mut write, id) = tokio::time::timeout(LONGEST, server.asked()).await.expect("another one");
    write.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, id, &[STATUS_200])).await.unwrap();
    write.flush().await.unwrap();
    assert_eq!(call.await.unwrap(), Ok(Vec::new()));
}

#[tokio::test]
async fn http_1_is_counted_too() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/x", listener.local_addr().unwrap())).unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert_ne!(stream.read(&mut [0; 4_096]).await.unwrap(), 0);
        let interim = b"HTTP/1.1 103 \r\n\r\n".repeat(4_096);
        let mut sent = 0;
        while stream.write_all(&interim).await.is_ok() {
            sent += interim.len();
        }
        sent
    });
    let client = HttpClient::new(true, CONNECT, None).unwrap();
    let answer = text(&client, &url).await;
    assert!(matches!(answer, Err(CallError::Unreachable(_))), "{answer:?}");
    let sent = tokio::time::timeout(LONGEST, server).await.expect("the connection ends").unwrap();
    assert!(sent < MOST_UNASKED + BETWEEN, "{sent} bytes");
}
