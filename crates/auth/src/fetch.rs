//! Outgoing requests to addresses that strangers choose: filtered where the connection is made.
//!
//! Core's `AddressFilter` checks the URL, and resolves names for the connector. Redirects are not followed, no proxy is used, the whole
//! exchange has a deadline and the body a size.

use std::{
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gatewright_core::{AddressError, AddressFilter, ConnectionThread, read_json};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::{sync::Semaphore, time::timeout};
use url::Url;

use crate::endpoint::EndpointUrl;

const DEADLINE: Duration = Duration::from_secs(5);
/// Longer answers that refuse are not looked into.
const MOST_ERROR: usize = 16 * 1024;

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("the address is not a public https address")]
    Refused,
    #[error("the answer has status {0}")]
    Status(u16),
    /// The answer is an OAuth error (RFC 6749 §5.2) with this code.
    #[error("the answer has status {0} and says `{1}`")]
    OAuth(u16, String),
    #[error("the answer is too large")]
    TooLarge,
    #[error("no answer came in time, or the connection failed")]
    Failed,
}

impl FetchError {
    /// Returns whether a token endpoint refuses the grant, rather than the request or its own state.
    pub(crate) fn ends_grant(&self) -> bool {
        match self {
            Self::OAuth(_, code) => matches!(
                code.as_str(),
                "invalid_grant"
                    // GitHub has a name of its own.
                    | "bad_refresh_token"
                    | "access_denied"
                    | "login_required"
                    | "interaction_required"
                    | "consent_required"
            ),
            Self::Status(status) => matches!(status, 400 | 401 | 403),
            Self::Refused | Self::TooLarge | Self::Failed => false,
        }
    }

    /// Returns whether the same request may succeed in a moment.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::Failed => true,
            Self::OAuth(status, _) | Self::Status(status) => *status == 429 || *status >= 500,
            Self::Refused | Self::TooLarge => false,
        }
    }
}

/// A client for outgoing requests.
#[derive(Clone)]
pub(crate) struct Fetcher {
    client: reqwest::Client,
    threads: Arc<[Thread; THREADS]>,
    room: Arc<Semaphore>,
    filter: AddressFilter,
}

/// Threads of a client that drive its connections.
const THREADS: usize = 8;
/// Requests at once: each takes a file descriptor.
const MOST_REQUESTS: usize = 256;

/// A thread that is started when it is needed, and the requests on it.
#[derive(Default)]
struct Thread {
    started: OnceLock<ConnectionThread>,
    requests: AtomicUsize,
}

/// A request on the thread that had the fewest: a server that sends without end keeps one of them alone, until the timeout.
struct OnThread<'t>(&'t Thread);

impl<'t> OnThread<'t> {
    fn new(threads: &'t [Thread]) -> Option<Self> {
        let least = threads.iter().min_by_key(|thread| thread.requests.load(Ordering::Relaxed))?;
        least.requests.fetch_add(1, Ordering::Relaxed);
        Some(Self(least))
    }

    fn connections(&self) -> io::Result<&ConnectionThread> {
        if let Some(started) = self.0.started.get() {
            return Ok(started);
        }
        let started = ConnectionThread::start()?;
        Ok(self.0.started.get_or_init(|| started))
    }
}

impl Drop for OnThread<'_> {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Filtered(AddressFilter);

impl Resolve for Filtered {
    fn resolve(&self, name: Name) -> Resolving {
        let filter = self.0.clone();
        Box::pin(async move {
            let addrs: Addrs = Box::new(filter.resolve(name.as_str()).await?.into_iter());
            Ok(addrs)
        })
    }
}

/// A response.
pub(crate) struct Fetched {
    pub(crate) body: Vec<u8>,
    /// `Cache-Control: max-age`, or `Some(0)` for `no-store` and `no-cache`.
    pub(crate) max_age_s: Option<u64>,
    /// It is served as JSON: `application/json`, or a type that ends in `+json`.
    pub(crate) is_json: bool,
}

impl Fetcher {
    pub(crate) fn new(private: bool) -> Result<Self, String> {
        Self::with_filter(AddressFilter::new(private))
    }

    pub(crate) fn with_filter(filter: AddressFilter) -> Result<Self, String> {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let filtered = Arc::new(Filtered(filter.clone()));
        let builder = || {
            reqwest::Client::builder()
                .dns_resolver(filtered.clone())
                .redirect(reqwest::redirect::Policy::none())
                .no_proxy()
                // A connection that is kept would stay on its thread, which another server may keep busy by then.
                .pool_max_idle_per_host(0)
                .timeout(DEADLINE)
        };
        let client = builder().build().or_else(|error| {
            // Small images have no CA certificates. What does not ask an https host works all the same.
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::warn!(
                target: "gatewright::auth",
                why = cause.unwrap_or_else(|| error.to_string()),
                "no https host can be asked: install `ca-certificates`, or name a file with SSL_CERT_FILE"
            );
            builder().tls_certs_only([]).build().map_err(|error| error.to_string())
        })?;
        let room = Arc::new(Semaphore::new(MOST_REQUESTS));
        Ok(Self { client, threads: Arc::default(), room, filter })
    }

    /// Refuses an address that must not be requested.
    async fn check(&self, url: &Url) -> Result<(), FetchError> {
        self.filter.check(url).await.map_err(|why| match why {
            AddressError::Refused => FetchError::Refused,
            AddressError::Unknown => FetchError::Failed,
        })
    }

    /// Refuses endpoints that neither a browser nor a request may be sent to from here.
    pub(crate) async fn allows<'e>(
        &self,
        endpoints: impl Iterator<Item = &'e EndpointUrl>,
    ) -> Result<(), FetchError> {
        for endpoint in endpoints {
            self.check(&Url::parse(endpoint).map_err(|_| FetchError::Refused)?).await?;
        }
        Ok(())
    }

    /// Gets at most `most` bytes from `url`.
    pub(crate) async fn get(&self, url: &str, most: usize) -> Result<Fetched, FetchError> {
        let url = Url::parse(url).map_err(|_| FetchError::Refused)?;
        self.check(&url).await?;
        let request = self.client.get(url).header("accept", "application/json");
        self.read(request, most, &[200]).await
    }

    /// Posts a form, with Basic credentials when there are some.
    pub(crate) async fn post_form(
        &self,
        url: &str,
        pairs: &[(&str, &str)],
        basic: Option<(&str, &str)>,
        most: usize,
    ) -> Result<Fetched, FetchError> {
        let url = Url::parse(url).map_err(|_| FetchError::Refused)?;
        self.check(&url).await?;
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        let mut request = self
            .client
            .post(url)
            .header("content-type", "application/x-www-form-urlencoded")
            .header("accept", "application/json");
        if let Some((id, secret)) = basic {
            let encode =
                |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            request = request.basic_auth(encode(id), Some(encode(secret)));
        }
        self.read(request.body(body), most, &[200]).await
    }

    /// Posts JSON.
    pub(crate) async fn post_json(
        &self,
        url: &str,
        body: &serde_json::Value,
        most: usize,
    ) -> Result<Fetched, FetchError> {
        let url = Url::parse(url).map_err(|_| FetchError::Refused)?;
        self.check(&url).await?;
        let request = self
            .client
            .post(url)
            .header("content-type", "application/json")
            .header("accept", "application/json")
            .body(body.to_string());
        self.read(request, most, &[200, 201]).await
    }

    async fn read(
        &self,
        request: reqwest::RequestBuilder,
        most: usize,
        accepted: &[u16],
    ) -> Result<Fetched, FetchError> {
        let room = timeout(DEADLINE, self.room.acquire()).await;
        let _room = room.ok().and_then(Result::ok).ok_or(FetchError::Failed)?;
        // Its timeout begins here, and not on the thread of the connection.
        let sending = request.send();
        let on_thread = OnThread::new(&*self.threads).ok_or(FetchError::Failed)?;
        let connections = on_thread.connections().map_err(|_| FetchError::Failed)?;
        let mut response = connections.drive(sending).await.map_err(|_| FetchError::Failed)?;
        let status = response.status().as_u16();
        if !accepted.contains(&status) {
            return Err(match error_code(response).await {
                Some(code) => FetchError::OAuth(status, code),
                None => FetchError::Status(status),
            });
        }
        let control = response
            .headers()
            .get("cache-control")
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default()
            .to_ascii_lowercase();
        let mut max_age_s = None;
        for word in control.split(',').map(str::trim) {
            match word.split_once('=') {
                Some(("max-age", seconds)) => max_age_s = seconds.parse().ok(),
                None if word == "no-store" || word == "no-cache" => {
                    max_age_s = Some(0);
                    break;
                }
                _ => {}
            }
        }
        let kind = response.headers().get("content-type").and_then(|value| value.to_str().ok());
        let kind =
            kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim().to_ascii_lowercase();
        let is_json =
            kind == "application/json" || kind.starts_with("application/") && kind.ends_with("+json");
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|_| FetchError::Failed)? {
            if body.len() + chunk.len() > most {
                return Err(FetchError::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Fetched { body, max_age_s, is_json })
    }
}

/// The `error` member of an answer that refuses, when it is one word of the kind RFC 6749 §5.2 allows.
async fn error_code(mut response: reqwest::Response) -> Option<String> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        if body.len() + chunk.len() > MOST_ERROR {
            return None;
        }
        body.extend_from_slice(&chunk);
    }
    oauth_error(&body)
}

/// Returns the code of a body that is an OAuth error.
pub(crate) fn oauth_error(body: &[u8]) -> Option<String> {
    let body: serde_json::Value = read_json(body).ok()?;
    let code = body.get("error")?.as_str()?;
    let plain = |c: u8| c.is_ascii_lowercase() || c == b'_';
    (code.len() <= 64 && !code.is_empty() && code.bytes().all(plain)).then(|| code.to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use gatewright_core::Lookup;

    use super::*;

    #[tokio::test]
    async fn h15_literal_addresses_are_refused_before_any_connection() {
        let fetcher = Fetcher::new(false).unwrap();
        for host in [
            "127.0.0.1",
            "10.0.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "240.0.0.1",
            "198.18.0.1",
            "192.168.0.1",
            "[::1]",
            "[fc00::1]",
            "[fe80::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "2130706433",
            "0x7f000001",
            "017700000001",
            "127.1",
            "localhost",
            "a.localhost",
        ] {
            let got = fetcher.get(&format!("https://{host}/c"), 100).await.map(|_| ());
            assert_eq!(got, Err(FetchError::Refused), "{host}");
        }
        assert!(
            matches!(fetcher.get("http://example.com/c", 100).await, Err(FetchError::Refused)),
            "plain http"
        );
    }

    #[tokio::test]
    async fn plain_http_reaches_private_and_loopback_hosts_only_even_where_they_are_allowed() {
        let lookup: Lookup = Arc::new(|name| {
            let addresses: &[&str] = match &*name {
                "idp.internal" => &["10.0.0.7", "fd00::7"],
                "public.example" => &["93.184.215.14"],
                "both.example" => &["10.0.0.7", "93.184.215.14"],
                _ => &[],
            };
            let addresses = addresses.iter().map(|ip| ip.parse().unwrap()).collect();
            Box::pin(async move { Ok(addresses) })
        });
        let fetcher = Fetcher::with_filter(AddressFilter::with_lookup(true, lookup)).unwrap();
        for (url, allowed) in [
            ("http://127.0.0.1:9000/a", Ok(())),
            ("http://[::1]/a", Ok(())),
            ("http://192.168.0.1/a", Ok(())),
            ("http://localhost/a", Ok(())),
            ("http://idp.internal/a", Ok(())),
            ("https://public.example/a", Ok(())),
            ("https://93.184.215.14/a", Ok(())),
            ("http://public.example/a", Err(FetchError::Refused)),
            ("http://both.example/a", Err(FetchError::Refused)),
            ("http://93.184.215.14/a", Err(FetchError::Refused)),
            ("http://[2606:2800:21f::1]/a", Err(FetchError::Refused)),
            ("http://unknown.example/a", Err(FetchError::Failed)),
        ] {
            let endpoint = EndpointUrl::try_from(url.to_owned()).unwrap();
            assert_eq!(fetcher.allows([&endpoint].into_iter()).await, allowed, "{url}");
        }
        let got = fetcher.get("http://93.184.215.14/a", 100).await.map(|_| ());
        assert_eq!(got, Err(FetchError::Refused));
    }

    #[tokio::test]
    async fn a_server_that_sends_interim_responses_without_end_keeps_no_thread_of_the_gateway() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/a", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            // A response before the request ends the connection.
            std::io::Read::read(&mut socket, &mut [0; 4_096]).unwrap();
            let interim = b"HTTP/1.1 103 \r\n\r\n".repeat(4_096);
            while std::io::Write::write_all(&mut socket, &interim).is_ok() {}
        });
        let fetcher = Fetcher::new(true).unwrap();
        // The runtime of this test has one thread. If the connection were on it, this task would have a turn or two.
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = turns.clone();
        let other = tokio::spawn(async move {
            let mut every = tokio::time::interval(DEADLINE / 500);
            loop {
                every.tick().await;
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        let got = fetcher.get(&url, 100).await.map(|_| ());
        other.abort();
        assert_eq!(got, Err(FetchError::Failed));
        assert!(turns.load(Ordering::SeqCst) > 20, "{turns:?} turns");
    }

    #[tokio::test]
    async fn a_document_is_there_while_another_server_sends_interim_responses_without_end() {
        let serve = |answer: fn(&mut std::net::TcpStream)| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}/a", listener.local_addr().unwrap());
            std::thread::spawn(move || {
                let (mut socket, _) = listener.accept().unwrap();
                std::io::Read::read(&mut socket, &mut [0; 4_096]).unwrap();
                answer(&mut socket);
            });
            url
        };
        let endless = serve(|socket| {
            let interim = b"HTTP/1.1 103 \r\n\r\n".repeat(4_096);
            while std::io::Write::write_all(socket, &interim).is_ok() {}
        });
        let honest = serve(|socket| {
            std::io::Write::write_all(socket, b"HTTP/1.1 200 \r\ncontent-length: 2\r\n\r\n{}").unwrap();
        });
        let fetcher = Fetcher::new(true).unwrap();
        let (refused, got) = (fetcher.get(&endless, 100), fetcher.get(&honest, 100));
        tokio::pin!(refused);
        tokio::select! {
            biased;
            _ = &mut refused => panic!("the document did not come before the timeout of the other"),
            got = got => assert_eq!(got.unwrap().body, b"{}"),
        }
    }

    #[tokio::test]
    async fn h16_the_resolver_of_the_connection_refuses_private_answers_however_they_change() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let lookup: Lookup = Arc::new(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { Ok(vec!["127.0.0.1".parse().unwrap()]) })
        });
        let fetcher = Fetcher::with_filter(AddressFilter::with_lookup(false, lookup)).unwrap();
        let got = fetcher.get(&format!("https://rebound.example:{port}/c"), 100).await.map(|_| ());
        assert_eq!(got, Err(FetchError::Failed));
        assert!(asked.load(Ordering::SeqCst) >= 1, "our resolver was asked by the connector");
        let nobody = futures::FutureExt::now_or_never(listener.accept());
        assert!(nobody.is_none(), "no connection was made");
    }
}
