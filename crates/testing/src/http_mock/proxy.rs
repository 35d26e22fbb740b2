//! The proxy: plain requests, CONNECT with or without TLS, and TLS without CONNECT (for clients whose sockets are redirected).
//!
//! A library for TLS-intercepting proxies would do most of this, but it forwards plain HTTP inside CONNECT, which is how undici
//! calls `http://` URLs. Here no call leaves unless a test allows it.

use std::{
    net::SocketAddr,
    os::fd::{AsFd as _, OwnedFd},
    sync::{Arc, Mutex, Weak},
};

use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    ext::ReasonPhrase,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    call::HttpCall,
    child_env,
    forward::{Network, buffered, streamed},
    recorder::{Decision, Recorder},
    response::{HttpResponse, NetworkFailure, http_response},
};
use crate::base::{lock, net::accept, tls::Authority};

/// First byte of a TLS handshake.
const TLS_HANDSHAKE: u8 = 0x16;

type Reply = Response<UnsyncBoxBody<Bytes, Broken>>;
/// Breaks the connection.
type Broken = std::io::Error;

/// The proxy of one HTTP mock.
pub(super) struct Proxy {
    pub(super) address: SocketAddr,
    pub(super) authority: Arc<Authority>,
    pub(super) recorder: Mutex<Recorder>,
    network: Network,
    /// Certificates and preloads for the server under test.
    pub(super) files: tempfile::TempDir,
    _stop: DropGuard,
}

impl Proxy {
    /// Starts a proxy on a free port. It stops when it is dropped.
    pub(super) fn start() -> std::io::Result<Arc<Self>> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let listener = TcpListener::from_std(listener)?;
        let authority = Authority::new();
        let files = tempfile::Builder::new().prefix("gatewright-http-mock").tempdir()?;
        child_env::write_files(files.path(), authority.pem())?;
        let stop = CancellationToken::new();
        let proxy = Arc::new(Self {
            address,
            authority,
            recorder: Mutex::default(),
            network: Network::default(),
            files,
            _stop: stop.clone().drop_guard(),
        });
        let weak = Arc::downgrade(&proxy);
        accept(listener, stop, move |stream| serve_connection(BufReader::new(stream), weak.clone()));
        Ok(proxy)
    }

    async fn answer(&self, call: &HttpCall, body: Bytes, socket: &Socket) -> Result<Reply, Broken> {
        let decision = lock(&self.recorder).decide(call);
        let record = match decision {
            Decision::Respond(response) => return respond(response, socket).await,
            Decision::Forward { record } => record,
        };
        let answered = match self.network.send(call, body, record).await {
            Ok(response) if !record => return Ok(streamed(response)),
            Ok(response) => buffered(response).await,
            Err(error) => Err(error),
        };
        let response = match answered {
            Ok(response) => {
                lock(&self.recorder).record(call, &response);
                response
            }
            // The network failed, so there is nothing to replay.
            Err(error) => {
                let problem = format!("{call} was let through and cannot be reached: {error}");
                lock(&self.recorder).unreachable.push(problem.clone());
                http_response::error(502, &problem)
            }
        };
        respond(response, socket).await
    }
}

/// Sends the response of a mock after its delay, or fails as it says.
async fn respond(response: HttpResponse, socket: &Socket) -> Result<Reply, Broken> {
    if !response.delay.is_zero() {
        tokio::time::sleep(response.delay).await;
    }
    match response.failure {
        None => return Ok(into_reply(response)),
        Some(NetworkFailure::Refused | NetworkFailure::Closed) => {}
        Some(NetworkFailure::Reset) => socket.reset_when_closed()?,
        // Until the client gives up, or the proxy stops.
        Some(NetworkFailure::Timeout) => std::future::pending().await,
    }
    Err(Broken::other("broken on purpose"))
}

/// The socket of a client, below TLS and HTTP.
#[derive(Clone)]
struct Socket(Arc<OwnedFd>);

impl Socket {
    /// Lets the connection end with a reset, without the rest of what was sent.
    fn reset_when_closed(&self) -> std::io::Result<()> {
        TcpStream::from_std(self.0.try_clone()?.into())?.set_zero_linger()
    }
}

/// Serves a connection of a client: TLS at once, or HTTP to a proxy.
async fn serve_connection(mut stream: BufReader<TcpStream>, proxy: Weak<Proxy>) {
    let Ok(socket) = stream.get_ref().as_fd().try_clone_to_owned() else { return };
    let socket = Socket(Arc::new(socket));
    if starts_with_tls(&mut stream).await {
        return serve_tls(stream, proxy, None, socket).await;
    }
    let service = service_fn(move |request| proxied(request, proxy.clone(), socket.clone()));
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}

async fn starts_with_tls<S: AsyncRead + Unpin>(stream: &mut BufReader<S>) -> bool {
    stream.fill_buf().await.is_ok_and(|bytes| bytes.first() == Some(&TLS_HANDSHAKE))
}

async fn proxied(request: Request<Incoming>, proxy: Weak<Proxy>, socket: Socket) -> Result<Reply, Broken> {
    if request.method() != Method::CONNECT {
        return handle(request, &proxy, "http", None, &socket).await;
    }
    let Some(authority) = request.uri().authority().map(ToString::to_string) else {
        return Ok(into_reply(http_response::error(400, "CONNECT without a host")));
    };
    if proxy.upgrade().is_some_and(|proxy| lock(&proxy.recorder).refuses(&authority)) {
        return Ok(into_reply(http_response::error(502, "connection refused")));
    }
    tokio::spawn(async move {
        let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
        let mut stream = BufReader::new(TokioIo::new(upgraded));
        if starts_with_tls(&mut stream).await {
            serve_tls(stream, proxy, Some(authority), socket).await;
        } else {
            serve_http(stream, proxy, "http", Some(authority), socket).await;
        }
    });
    Ok(into_reply(HttpResponse::default()))
}

async fn serve_tls<S>(stream: S, proxy: Weak<Proxy>, authority: Option<String>, socket: Socket)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let Some(acceptor) = proxy.upgrade().map(|proxy| {
        let host =
            authority.as_deref().and_then(|authority| authority.rsplit_once(':')).map(|(host, _)| host);
        proxy.authority.acceptor(host.unwrap_or("localhost").trim_matches(['[', ']']))
    }) else {
        return;
    };
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let server_name = stream.get_ref().1.server_name().map(str::to_owned);
    serve_http(stream, proxy, "https", authority.or(server_name), socket).await;
}

async fn serve_http<S>(
    stream: S,
    proxy: Weak<Proxy>,
    scheme: &'static str,
    authority: Option<String>,
    socket: Socket,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(move |request| {
        let (proxy, authority, socket) = (proxy.clone(), authority.clone(), socket.clone());
        async move { handle(request, &proxy, scheme, authority, &socket).await }
    });
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// The URL of a request.
fn url_of(request: &Request<Incoming>, scheme: &str, authority: Option<String>) -> String {
    if request.uri().scheme().is_some() {
        return url::Url::parse(&request.uri().to_string())
            .map_or_else(|_| request.uri().to_string(), Into::into);
    }
    let host = request.headers().get("host").and_then(|host| host.to_str().ok()).map(str::to_owned);
    let authority = host.or(authority).unwrap_or_else(|| "unknown".into());
    let url =
        format!("{scheme}://{authority}{}", request.uri().path_and_query().map_or("/", |path| path.as_str()));
    // Parsing removes the default port of the scheme.
    url::Url::parse(&url).map_or(url, Into::into)
}

async fn handle(
    request: Request<Incoming>,
    proxy: &Weak<Proxy>,
    scheme: &str,
    authority: Option<String>,
    socket: &Socket,
) -> Result<Reply, Broken> {
    let Some(proxy) = proxy.upgrade() else { return Err(Broken::other("the test is over")) };
    let url = url_of(&request, scheme, authority);
    let method = request.method().to_string();
    let headers: Vec<(String, String)> = request
        .headers()
        .iter()
        // For this proxy, not for the server that is called.
        .filter(|(name, _)| *name != "proxy-connection" && *name != "proxy-authorization")
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let bytes = request.into_body().collect().await.map_err(Broken::other)?.to_bytes();
    let body = (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned());
    let call = HttpCall { url, method, headers, body };
    proxy.answer(&call, bytes, socket).await
}

fn into_reply(response: HttpResponse) -> Reply {
    let body = Full::new(Bytes::from(response.body)).map_err(|never| match never {});
    let mut answer = Response::new(body.boxed_unsync());
    *answer.status_mut() = StatusCode::from_u16(response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in response.headers {
        if let (Ok(name), Ok(value)) =
            (hyper::header::HeaderName::try_from(name), hyper::header::HeaderValue::try_from(value))
        {
            answer.headers_mut().append(name, value);
        }
    }
    if let Some(text) = response.status_text.and_then(|text| ReasonPhrase::try_from(text.into_bytes()).ok()) {
        answer.extensions_mut().insert(text);
    }
    answer
}
