//! The HTTP client of an app: filtered addresses, redirects that carry no credentials elsewhere, and retries.

use std::time::{Duration, Instant, SystemTime};

use gatewright_core::{AddressError, AddressFilter, ConnectionThread, ExchangeNote, HttpTrail};
use http::{
    HeaderMap, HeaderValue, Method, Request, StatusCode,
    header::{ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, LOCATION, RETRY_AFTER, USER_AGENT},
};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper_util::{
    client::legacy::{Client, Error, connect::capture_connection},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::ClientConfig;
use url::Url;

use super::{
    connector::{Connector, tls},
    failure::{CallError, is_unprocessed, reason},
    response::Response,
};
use crate::certificate::ClientCertificate;

/// Redirects that are followed in a row.
const MOST_REDIRECTS: usize = 5;
/// Longest wait before a request is sent again. An API that asks for more is not asked again.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// The first wait where the API names none; it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Idle connections that are kept for one host.
const IDLE_CONNECTIONS: usize = 16;
const IDLE: Duration = Duration::from_secs(60);
const NAME: HeaderValue = HeaderValue::from_static(concat!("gatewright/", env!("CARGO_PKG_VERSION")));
/// Bytes of an answer over HTTP/2 that arrive before somebody reads it.
const STREAM_WINDOW: u32 = 256 * 1024;
/// Bytes of all answers of one connection that arrive before somebody reads them.
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Bytes of the headers of a response over HTTP/2.
const HEADERS: u32 = 64 * 1024;
/// Time without a frame after which an HTTP/2 connection is asked for one, so that calls are not sent into one that is gone.
const ASK_AFTER: Duration = Duration::from_secs(20);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Vec<u8>>,
    /// The server may ask for the client certificate.
    pub(crate) shows_certificate: bool,
    /// Notes the request.
    pub(crate) trail: Option<HttpTrail>,
}

/// The limits on sending a request again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retries {
    /// Requests beside the first.
    pub(crate) most: u32,
    /// The request may be sent again after it may have arrived.
    pub(crate) is_idempotent: bool,
    /// No wait goes beyond this.
    pub(crate) until: Instant,
}

/// Sends requests of one app.
#[derive(Debug, Clone)]
pub(crate) struct HttpClient {
    /// For servers that the operator chose.
    own: Filter,
    /// For the same servers, with the client certificate.
    certified: Option<Filter>,
    /// For redirects to other origins, which the API chose.
    elsewhere: Filter,
}

#[derive(Debug, Clone)]
struct Filter {
    client: Client<Connector, Full<Bytes>>,
    connections: ConnectionThread,
    filter: AddressFilter,
}

/// A client that follows no redirects and uses no proxy.
fn client(connector: Connector) -> Client<Connector, Full<Bytes>> {
    let mut client = Client::builder(TokioExecutor::new());
    client
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .pool_idle_timeout(IDLE)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .http2_max_header_list_size(HEADERS)
        .http2_keep_alive_interval(ASK_AFTER)
        .http2_keep_alive_timeout(ANSWER_WITHIN)
        // A server that reads nothing would keep a connection for good.
        .http2_keep_alive_while_idle(true);
    client.build(connector)
}

/// The request as it goes out.
///
/// # Errors
/// Its URL is too long.
fn written(request: &Outgoing, headers: HeaderMap) -> Result<Request<Full<Bytes>>, SendError> {
    let mut url = request.url.clone();
    // Credentials are those of the configuration.
    if !url.username().is_empty() || url.password().is_some() {
        let _ = url.set_username("");
        let _ = url.set_password(None);
    }
    let body = Full::from(request.body.clone().unwrap_or_default());
    let mut written = Request::new(body);
    *written.uri_mut() = url.as_str().parse().map_err(|_| SendError::Address(AddressError::Refused))?;
    *written.method_mut() = request.method.clone();
    *written.headers_mut() = headers;
    written.headers_mut().entry(USER_AGENT).or_insert(NAME);
    Ok(written)
}

impl Filter {
    fn new(
        allow_private: bool,
        connect_timeout: Duration,
        tls: ClientConfig,
        connections: &ConnectionThread,
    ) -> Self {
        let filter = AddressFilter::new(allow_private);
        let client = client(Connector::new(filter.clone(), tls, connect_timeout));
        Self { client, connections: connections.clone(), filter }
    }

    /// Sends a request, for which `sent` requests were sent before.
    async fn send(&self, request: &Outgoing, sent: &mut u32) -> Result<Response, SendError> {
        self.filter.check(&request.url).await.map_err(SendError::Address)?;
        let mut headers = request.headers.clone();
        let note = request.trail.as_ref().map(|trail| {
            let host = request.url.host_str().unwrap_or_default();
            trail.begin(&request.method, host, request.url.port_or_known_default(), *sent)
        });
        *sent += 1;
        for (name, value) in note.iter().flat_map(ExchangeNote::headers) {
            if let (false, Ok(value)) = (headers.contains_key(name), HeaderValue::try_from(value)) {
                headers.insert(name, value);
            }
        }
        let mut written = written(request, headers)?;
        let connection = capture_connection(&mut written);
        let sending = self.client.request(written);
        let answer = self.connections.drive(sending).await.map(Response::new);
        if let Some(note) = note {
            note.end(match &answer {
                Ok(response) => Ok(response.status().as_u16()),
                Err(error) if error.is_connect() => Err("connect"),
                Err(_) => Err("connection"),
            });
        }
        // The rest would be taken for the response of another request.
        if answer.as_ref().is_ok_and(Response::has_forbidden_body)
            && let Some(connection) = &*connection.connection_metadata()
        {
            connection.poison();
        }
        answer.map_err(SendError::Connection)
    }
}

#[derive(Debug)]
enum SendError {
    Address(AddressError),
    Connection(Error),
    Redirect(&'static str),
}

impl From<SendError> for CallError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Address(AddressError::Refused) => Self::Refused(AddressError::Refused.to_string()),
            SendError::Address(AddressError::Unknown) => Self::Unreachable(AddressError::Unknown.to_string()),
            SendError::Connection(error) => Self::Unreachable(reason(&error, error.is_connect())),
            SendError::Redirect(why) => Self::BadAnswer(why.to_owned()),
        }
    }
}

impl HttpClient {
    pub(crate) fn new(
        allow_private: bool,
        connect_timeout: Duration,
        certificate: Option<&ClientCertificate>,
    ) -> Result<Self, String> {
        let tls = tls().map_err(|error| error.to_string())?;
        Self::with_tls(allow_private, connect_timeout, certificate, tls)
    }

    /// A client with these settings of TLS.
    pub(super) fn with_tls(
        allow_private: bool,
        connect_timeout: Duration,
        certificate: Option<&ClientCertificate>,
        tls: ClientConfig,
    ) -> Result<Self, String> {
        let connections =
            ConnectionThread::start().map_err(|error| format!("a thread cannot be started: {error}"))?;
        let filter = |allow_private, tls| Filter::new(allow_private, connect_timeout, tls, &connections);
        Ok(Self {
            certified: certificate.map(|certificate| filter(allow_private, certificate.shown_by(&tls))),
            elsewhere: filter(false, tls.clone()),
            own: filter(allow_private, tls),
        })
    }

    /// Sends a request to a server that the operator chose.
    async fn send_own(&self, request: &Outgoing, sent: &mut u32) -> Result<Response, SendError> {
        let filter = self.certified.as_ref().filter(|_| request.shows_certificate);
        filter.unwrap_or(&self.own).send(request, sent).await
    }

    /// Sends a request without following redirects.
    ///
    /// # Errors
    /// The address is refused, or there is no answer.
    pub(crate) async fn send_once(&self, request: &Outgoing) -> Result<Response, CallError> {
        Ok(self.send_own(request, &mut 0).await?)
    }

    /// Sends a request, follows redirects, and sends it again where that may help.
    ///
    /// # Errors
    /// The address is refused, there is no answer, or redirects do not end.
    pub(crate) async fn send(&self, request: &Outgoing, retries: Retries) -> Result<Response, CallError> {
        let (mut attempt, mut sent) = (0, 0);
        loop {
            let answer = self.follow(request, &mut sent).await;
            let asked = match &answer {
                Ok(response) if is_busy(response.status()) && retries.is_idempotent => {
                    retry_after(response.headers())
                }
                Err(SendError::Connection(error))
                    if error.is_connect() || retries.is_idempotent || is_unprocessed(error) =>
                {
                    None
                }
                _ => return Ok(answer?),
            };
            let wait = wait(asked, attempt, random());
            if attempt >= retries.most || wait > LONGEST_WAIT || Instant::now() + wait >= retries.until {
                return Ok(answer?);
            }
            attempt += 1;
            drop(answer);
            tokio::time::sleep(wait).await;
        }
    }

    async fn follow(&self, request: &Outgoing, sent: &mut u32) -> Result<Response, SendError> {
        let response = self.send_own(request, sent).await?;
        let Some(mut next) = redirected(request, &response)? else { return Ok(response) };
        for _ in 1..MOST_REDIRECTS {
            let is_own = next.url.origin() == request.url.origin();
            let response = match is_own {
                true => self.send_own(&next, sent).await?,
                false => self.elsewhere.send(&next, sent).await?,
            };
            match redirected(&next, &response)? {
                Some(after) => next = after,
                None => return Ok(response),
            }
        }
        Err(SendError::Redirect("it redirects too often"))
    }
}

/// The request to which `response` redirects. None where the response is the answer.
fn redirected(request: &Outgoing, response: &Response) -> Result<Option<Outgoing>, SendError> {
    next(request, response.status(), response.headers().get(LOCATION))
}

fn next(
    request: &Outgoing,
    status: StatusCode,
    location: Option<&HeaderValue>,
) -> Result<Option<Outgoing>, SendError> {
    let (true, Some(location)) = (matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308), location) else {
        return Ok(None);
    };
    let location = location.to_str().ok().and_then(|location| request.url.join(location).ok());
    let mut url = location.ok_or(SendError::Redirect("it redirects to what is no address"))?;
    url.set_fragment(None);
    if request.url.scheme() == "https" && url.scheme() != "https" {
        return Err(SendError::Redirect("it redirects to an address without TLS"));
    }
    let is_read = matches!(request.method, Method::GET | Method::HEAD);
    let is_own = url.origin() == request.url.origin();
    let (method, body) = match status.as_u16() {
        303 if request.method != Method::HEAD => (Method::GET, None),
        _ if is_read => (request.method.clone(), None),
        // Browsers change the method here; an API that means a new address for it says 308.
        301 | 302 => return Err(SendError::Redirect("it redirects a request that changes something")),
        _ if is_own => (request.method.clone(), request.body.clone()),
        _ => {
            return Err(SendError::Redirect("it redirects a request that changes something to another host"));
        }
    };
    let mut headers = request.headers.clone();
    if !is_own {
        // Credentials, cookies and arguments are for the API alone.
        let kept = [ACCEPT, ACCEPT_LANGUAGE, USER_AGENT];
        headers = headers
            .into_iter()
            .filter_map(|(name, value)| Some((name?, value)))
            .filter(|(name, _)| kept.contains(name))
            .collect();
    }
    if body.is_none() {
        headers.remove(CONTENT_TYPE);
    }
    let shows_certificate = is_own && request.shows_certificate;
    // Others hear of no trace.
    let trail = request.trail.clone().filter(|_| is_own);
    Ok(Some(Outgoing { method, url, headers, body, shows_certificate, trail }))
}

fn is_busy(status: StatusCode) -> bool {
    matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
}

/// The wait that a response asks for (RFC 9110 §10.2.3): seconds, or a time.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    match text.parse::<u64>() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => {
            let time = httpdate::parse_http_date(text).ok()?;
            Some(time.duration_since(SystemTime::now()).unwrap_or_default())
        }
    }
}

/// The wait before the request is sent again: what the server asked for and a little more, or twice as long each time with a random part.
fn wait(asked: Option<Duration>, attempt: u32, random: f64) -> Duration {
    match asked {
        Some(asked) => asked.saturating_add(FIRST_WAIT.mul_f64(random)),
        None => (FIRST_WAIT * 2_u32.saturating_pow(attempt)).mul_f64(1.0 - 0.5 * random),
    }
}

/// A number in 0..1 from the operating system.
fn random() -> f64 {
    getrandom::u32().map_or(0.5, |number| f64::from(number) / (f64::from(u32::MAX) + 1.0))
}

#[cfg(test)]
mod tests {
    use http::header::{AUTHORIZATION, COOKIE};

    use super::*;

    fn request(method: Method) -> Outgoing {
        let mut headers = HeaderMap::new();
        for (name, value) in
            [(AUTHORIZATION, "Bearer t"), (COOKIE, "a=b"), (ACCEPT, "*/*"), (CONTENT_TYPE, "text/plain")]
        {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert("x-api-key", HeaderValue::from_static("key"));
        Outgoing {
            method,
            url: Url::parse("https://api.example/v1/a?key=k").unwrap(),
            headers,
            body: Some(b"x".to_vec()),
            shows_certificate: false,
            trail: None,
        }
    }

    fn to(method: Method, status: u16, location: &str) -> Result<Outgoing, &'static str> {
        let location = HeaderValue::from_str(location).unwrap();
        match next(&request(method), StatusCode::from_u16(status).unwrap(), Some(&location)) {
            Ok(Some(next)) => Ok(next),
            Ok(None) => Err("no redirect"),
            Err(SendError::Redirect(why)) => Err(why),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn credentials_stay_with_their_origin_when_a_response_redirects() {
        for same in ["/v2/b", "https://api.example:443/v2/b"] {
            let next = to(Method::GET, 302, same).unwrap();
            assert_eq!(next.url.as_str(), "https://api.example/v2/b");
            assert!(next.headers.contains_key(AUTHORIZATION) && next.headers.contains_key("x-api-key"));
        }
        for other in ["https://evil.example/b", "https://api.example:8443/b", "//cdn.example/b"] {
            let next = to(Method::GET, 302, other).unwrap();
            assert_eq!(next.headers.keys().collect::<Vec<_>>(), [&ACCEPT], "{other}");
            assert!(next.body.is_none() && next.url.query().is_none());
        }
        assert!(to(Method::GET, 302, "http://api.example/b").unwrap_err().contains("TLS"));
        assert!(
            to(Method::POST, 302, "/b").is_err() && to(Method::POST, 308, "https://evil.example/b").is_err()
        );
        assert_eq!(to(Method::POST, 308, "/b").unwrap().body.as_deref(), Some(&b"x"[..]));
        let seen = to(Method::POST, 303, "/b").unwrap();
        assert!(
            seen.method == Method::GET && seen.body.is_none() && !seen.headers.contains_key(CONTENT_TYPE)
        );
        assert_eq!(to(Method::GET, 304, "/b").unwrap_err(), "no redirect");
    }

    #[test]
    fn waits_are_those_of_the_server_or_double_with_a_random_part() {
        let asked = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_str(text).unwrap());
            retry_after(&headers)
        };
        assert_eq!(asked("7"), Some(Duration::from_secs(7)));
        assert_eq!(asked("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        assert_eq!(asked("soon"), None);
        assert_eq!(wait(Some(Duration::from_secs(7)), 3, 0.0), Duration::from_secs(7));
        let waits = [0, 1, 2].map(|attempt| wait(None, attempt, 0.0).as_millis());
        assert_eq!(waits, [250, 500, 1000]);
        assert_eq!(wait(None, 1, 1.0).as_millis(), 250);
        assert_eq!(wait(Some(Duration::MAX), 40, 0.5), Duration::MAX);
    }
}
