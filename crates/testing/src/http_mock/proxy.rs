//! The proxy: plain requests, CONNECT with TLS or without, and TLS without CONNECT (for clients whose sockets are redirected).
//!
//! A TLS-intercepting proxy library would do most of this, but passes on what is plain HTTP inside CONNECT, which is how
//! undici calls `http://` URLs; here nothing leaves unless a test allows it.

use std::sync::{Arc, Weak};

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
    net::TcpListener,
};
use tokio_util::sync::CancellationToken;

use super::{HttpCall, HttpResponse, Inner, http_response};
use crate::{lock, wire::http::direct_client};

/// First byte of a TLS handshake.
const HANDSHAKE: u8 = 0x16;

type Answer = Response<UnsyncBoxBody<Bytes, Broken>>;
/// The connection is to break.
type Broken = std::io::Error;

pub(super) fn serve(listener: TcpListener, inner: &Arc<Inner>, stop: CancellationToken) {
    let inner = Arc::downgrade(inner);
    tokio::spawn(async move {
        loop {
            let stream = tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(_) => continue,
                },
                () = stop.cancelled() => return,
            };
            let _ = stream.set_nodelay(true);
            let (inner, stop) = (inner.clone(), stop.clone());
            tokio::spawn(async move {
                let serving = first(BufReader::new(stream), inner);
                tokio::select! { () = serving => {}, () = stop.cancelled() => {} }
            });
        }
    });
}

/// A connection from a client: TLS at once, or HTTP to a proxy.
async fn first(mut stream: BufReader<tokio::net::TcpStream>, inner: Weak<Inner>) {
    if starts_with_tls(&mut stream).await {
        return tls(stream, inner, None).await;
    }
    let service = service_fn(move |request| proxied(request, inner.clone()));
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}

async fn starts_with_tls<S: AsyncRead + Unpin>(stream: &mut BufReader<S>) -> bool {
    stream.fill_buf().await.is_ok_and(|bytes| bytes.first() == Some(&HANDSHAKE))
}

async fn proxied(request: Request<Incoming>, inner: Weak<Inner>) -> Result<Answer, Broken> {
    if request.method() != Method::CONNECT {
        return handle(request, &inner, "http", None).await;
    }
    let Some(authority) = request.uri().authority().map(ToString::to_string) else {
        return Ok(shown(http_response::error(400, "CONNECT without a host")));
    };
    tokio::spawn(async move {
        let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
        let mut stream = BufReader::new(TokioIo::new(upgraded));
        if starts_with_tls(&mut stream).await {
            tls(stream, inner, Some(authority)).await;
        } else {
            serve_inner(stream, inner, "http", Some(authority)).await;
        }
    });
    Ok(shown(HttpResponse::default()))
}

async fn tls<S>(stream: S, inner: Weak<Inner>, authority: Option<String>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let Some(acceptor) = inner.upgrade().map(|inner| {
        let host =
            authority.as_deref().and_then(|authority| authority.rsplit_once(':')).map(|(host, _)| host);
        inner.authority.acceptor(host.unwrap_or("localhost").trim_matches(['[', ']']))
    }) else {
        return;
    };
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let asked = stream.get_ref().1.server_name().map(str::to_owned);
    serve_inner(stream, inner, "https", authority.or(asked)).await;
}

async fn serve_inner<S>(stream: S, inner: Weak<Inner>, scheme: &'static str, authority: Option<String>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(move |request| {
        let (inner, authority) = (inner.clone(), authority.clone());
        async move { handle(request, &inner, scheme, authority).await }
    });
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// The URL a request is for.
fn url_of(request: &Request<Incoming>, scheme: &str, authority: Option<String>) -> String {
    if request.uri().scheme().is_some() {
        return url::Url::parse(&request.uri().to_string())
            .map_or_else(|_| request.uri().to_string(), Into::into);
    }
    let host = request.headers().get("host").and_then(|host| host.to_str().ok()).map(str::to_owned);
    let authority = host.or(authority).unwrap_or_else(|| "unknown".into());
    let url =
        format!("{scheme}://{authority}{}", request.uri().path_and_query().map_or("/", |path| path.as_str()));
    // Takes away the port when it is the scheme's own.
    url::Url::parse(&url).map_or(url, Into::into)
}

async fn handle(
    request: Request<Incoming>,
    inner: &Weak<Inner>,
    scheme: &str,
    authority: Option<String>,
) -> Result<Answer, Broken> {
    let Some(inner) = inner.upgrade() else { return Err(Broken::other("the test is over")) };
    let url = url_of(&request, scheme, authority);
    let method = request.method().to_string();
    let headers: Vec<(String, String)> = request
        .headers()
        .iter()
        // Meant for this proxy, not for the one who is called.
        .filter(|(name, _)| *name != "proxy-connection" && *name != "proxy-authorization")
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let bytes = request.into_body().collect().await.map_err(Broken::other)?.to_bytes();
    let body = (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned());
    let call = HttpCall { url, method, headers, body };
    let response = match inner.answer(&call, bytes).await {
        Reply::Whole(response) => response,
        Reply::Passed(answer) => return Ok(answer),
    };
    if !response.delay.is_zero() {
        tokio::time::sleep(response.delay).await;
    }
    if response.broken {
        return Err(Broken::other("broken on purpose"));
    }
    Ok(shown(response))
}

/// An answer of the test, or one of the network on its way through.
enum Reply {
    Whole(HttpResponse),
    Passed(Answer),
}

impl Inner {
    async fn answer(&self, call: &HttpCall, body: Bytes) -> Reply {
        if call.is_websocket() {
            lock(&self.state).calls.push(call.clone());
            lock(&self.state).unmatched.push(call.clone());
            return Reply::Whole(
                http_response::text(format!("the HTTP mock does not speak WebSocket: {call}")).status(501),
            );
        }
        let (recording, passthrough) = {
            let mut state = lock(&self.state);
            state.calls.push(call.clone());
            if let Some(response) = state.entries.iter().find_map(|entry| entry.answer(call)) {
                return Reply::Whole(response);
            }
            if let Some(response) = state.cassette.as_mut().and_then(|cassette| cassette.replay_http(call)) {
                return Reply::Whole(response);
            }
            let recording = state.cassette.as_ref().is_some_and(|cassette| cassette.is_recording());
            if !recording && !state.passthrough {
                state.unmatched.push(call.clone());
            }
            (recording, state.passthrough)
        };
        if !recording && !passthrough {
            let text = http_response::text(format!(
                "no HTTP mock wants this request: {call}\nadd one with `http_mock.any(...)`, or `allow_passthrough(true)`"
            ));
            return Reply::Whole(text.status(599).status_text("No HTTP Mock Matches"));
        }
        let answered = match self.forward(call, body).await {
            // What streams goes on streaming.
            Ok(response) if !recording => return Reply::Passed(passed(response)),
            Ok(response) => whole(response).await,
            Err(error) => Err(error),
        };
        match answered {
            Ok(response) => {
                if let Some(cassette) = &mut lock(&self.state).cassette {
                    cassette.keep_http(call, &response);
                }
                Reply::Whole(response)
            }
            // The network failed, not the one who was called: nothing to replay.
            Err(error) => {
                let problem = format!("{call} was let through and cannot be reached: {error}");
                lock(&self.state).unreachable.push(problem.clone());
                Reply::Whole(http_response::error(502, &problem))
            }
        }
    }

    /// Asks the network.
    async fn forward(&self, call: &HttpCall, body: Bytes) -> Result<reqwest::Response, String> {
        let method = Method::from_bytes(call.method.as_bytes()).unwrap_or_default();
        let network = match self.network.get() {
            Some(network) => network,
            None => {
                let client = direct_client("https://").map_err(|error| error.to_string())?;
                self.network.get_or_init(|| client)
            }
        };
        let mut request = network.request(method, &call.url).body(body);
        for (name, value) in &call.headers {
            if name != "host" && !OF_CONNECTION.contains(&name.as_str()) {
                request = request.header(name, value);
            }
        }
        request.send().await.map_err(|error| last_cause(&error))
    }
}

/// Headers that belong to one connection, not to a request or an answer (RFC 9110 §7.6.1), and the length, which is counted anew.
const OF_CONNECTION: [&str; 7] =
    ["connection", "content-length", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"];

/// What went wrong in the end: the outer errors only say that something did.
fn last_cause(error: &reqwest::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}

async fn whole(response: reqwest::Response) -> Result<HttpResponse, String> {
    let mut answer = HttpResponse { status: response.status().as_u16(), ..HttpResponse::default() };
    for (name, value) in response.headers() {
        if !OF_CONNECTION.contains(&name.as_str()) {
            answer = answer.header(name.as_str(), String::from_utf8_lossy(value.as_bytes()));
        }
    }
    answer.body = response.bytes().await.map_err(|error| last_cause(&error))?.to_vec();
    Ok(answer)
}

fn passed(response: reqwest::Response) -> Answer {
    let (mut parts, body) = http::Response::from(response).into_parts();
    for name in OF_CONNECTION {
        parts.headers.remove(name);
    }
    parts.version = hyper::Version::HTTP_11;
    Response::from_parts(parts, body.map_err(Broken::other).boxed_unsync())
}

fn shown(response: HttpResponse) -> Answer {
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
