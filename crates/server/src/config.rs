//! The `http` section of the configuration.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use gatewright_core::{InvalidField, Network};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::{ClusterConfig, TlsConfig, host_and_origin::AllowedSources, request_memory};

/// The HTTP server: address, limits and timeouts. Durations are texts such as `"5m"` or `"30s"`. Each instance counts its own connections, requests,
/// streams and sessions: n instances take n times as many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HttpConfig {
    /// Address to listen on, or `localhost`. Default `127.0.0.1`.
    #[serde(deserialize_with = "address")]
    #[schemars(with = "String")]
    pub host: IpAddr,
    /// Port to listen on; 0 takes a free one. Default 3000.
    pub port: u16,
    /// Path of the MCP endpoint; begins with `/`. Not below `/oauth` or `/.well-known`, and not one of the server's own (`/healthz`, `/readyz`,
    /// `/sse`, `/messages`). Default `/mcp`.
    pub path: String,
    /// Serves HTTPS. Both files are read again when they change; open connections go on. Default: none, plain HTTP.
    pub tls: Option<TlsConfig>,
    /// The URL under which clients reach the server, without the path. Its host and origin are allowed. With an `https` address and
    /// authentication, requests over plain HTTP get 403, unless one of `trustedProxies` says in `X-Forwarded-Proto` or `Forwarded` that the
    /// caller used HTTPS; `/healthz` and `/readyz` answer all the same. Default: none.
    #[schemars(with = "Option<String>")]
    pub public_url: Option<Url>,
    /// Hosts a request may name, besides loopback and the host of `publicUrl`: `name` for any port, or `name:port`.
    /// `*` allows every host and gives up the protection against DNS rebinding. Default: none.
    pub allowed_hosts: Vec<String>,
    /// Origins a browser's request may come from, besides loopback and `publicUrl`: `scheme://host` for the scheme's own
    /// port, `scheme://host:port`, `scheme://host:*` for any port, or `null`. `*` allows every origin. Pages of these origins
    /// may also read answers (CORS); pages on loopback only when listed. Default: none.
    pub allowed_origins: Vec<String>,
    /// Addresses or networks (`10.0.0.0/8`) of proxies whose `X-Forwarded-For`, `X-Forwarded-Proto` and `Forwarded` are believed: rate limits, the audit and traces
    /// then see the caller's address and not the proxy's. Those of `auth.trustedProxies` count too. Default: none.
    pub trusted_proxies: Vec<String>,
    /// Longest request body, in bytes, 1 to 64 MiB. Default 4 MiB. Longer ones get 413, at once where `Content-Length` says so.
    /// So do bodies of more than one key or value for 16 of these bytes (262,144 by default), and messages of more than 10,000 besides the
    /// arguments of a tool call.
    pub max_body_bytes: usize,
    /// Open connections, TLS handshakes included, 1 to 1,000,000; more are closed at once. Default 20,000, and never more than three
    /// quarters of the files the process may open, or than one for each 256 KiB of the container's or machine's memory. One network (an IPv4 address, or 64 bits of IPv6) may hold a quarter of what is
    /// free, alone a fifth of all; 56 bits of IPv6 twice that and 48 bits four times, alone half of all; loopback and `trustedProxies` may hold
    /// all.
    pub max_connections: usize,
    /// Requests worked on at the same time; more get 503 with `Retry-After`. Default 1,024. A request counts until its
    /// answer is sent, also while its client is away. Streams that only wait for notifications are counted by `maxStreams`. A caller (see `maxSessionsPerCaller`) may have as many
    /// as are free, alone half of all; then it gets 429.
    pub max_concurrency: usize,
    /// Memory for requests that are worked on, in MiB, 16 to 1,048,576: the text of each and the values that are read from it, which can take 70 times as
    /// much. Default 512. A request counts from its first byte until its call ends. Those of up to 16 KiB are not counted. A caller (see `maxSessionsPerCaller`)
    /// may have a quarter of what is free, alone a fifth of all, or one request of any length for which there is room; then it gets 429. Where there is no room, requests
    /// get 503.
    pub max_request_mib: usize,
    /// Room for answers that clients do not take as fast as they get them, in MiB, 16 to 1,048,576. Default 256. Answers of up to 16 KiB are not counted.
    /// A caller (see `maxSessionsPerCaller`) may have a quarter of what is free, alone a fifth of all, or one answer of any length for which there is
    /// room. A caller that has more gets 429 until it reads them, and an error in place of each answer that is ready then. Answers of apps of more than
    /// 4 KiB have as much again in memory while they are read: of that, a caller may have as much as is free, alone a half of all, or one answer of any
    /// length for which there is room, and gets an error in place of an answer that is more. (Those to scripts count in `codecall.vm.hostMemoryMib`.)
    pub max_unsent_mib: usize,
    /// Open notification streams: `GET` of the older era, `subscriptions/listen`, `/sse`. More get 503. Default 10,000. A caller (see
    /// `maxSessionsPerCaller`) may have a quarter of what is free, alone a fifth of all; then it gets 429.
    pub max_streams: usize,
    /// Serves the older era (up to 2025-11-25) with sessions. `false` serves it request by request: no elicitation,
    /// sampling or change notifications there. Default true. The 2026-07-28 era has no sessions either way.
    pub sessions: bool,
    /// Sessions held at the same time; more get 503. Default 10,000.
    pub max_sessions: usize,
    /// Sessions of one caller, 1 to 1,000,000; more get 429. A caller is a subject with all its clients, and a network: an IPv4 address or
    /// 64 bits of IPv6. 56 bits of IPv6 may have twice as many and 48 bits four times, but no more than are free. Anonymous callers count by network alone; loopback and `trustedProxies` are not counted as one caller.
    /// Default: a quarter of what `maxSessions` has free, alone a fifth of it.
    pub max_sessions_per_caller: Option<usize>,
    /// A session nobody uses ends after this time, 1 s to 24 h. Default 5 min.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub session_idle: Duration,
    /// Lets several instances behind one load balancer serve each other's sessions. Default: none, a session is known to the
    /// instance that opened it only.
    pub cluster: Option<ClusterConfig>,
    /// Serves the HTTP+SSE transport of 2024-11-05 too, at `/sse` and `/messages`. Default false.
    pub legacy_sse: bool,
    /// Answers with plain JSON where a stream is not needed. Default true. `false` always streams. Requests inside a
    /// session of the older era are answered by streams either way.
    pub json_response: bool,
    /// Longest time from the stop signal to the end of [`serve`](crate::Bound::serve), 100 ms to 10 min. Default 10 s.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub drain_timeout: Duration,
    /// Longest wait for the headers of a request, from its first byte on, 100 ms to 24 h; for the first request of a connection
    /// from the connection's start. Default 30 s. Then the connection is closed. A TLS handshake has as long. Bytes that came before the last answer do not count
    /// as a first byte: a connection on which a request was begun early and nothing follows ends as an unused one does.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub header_read_timeout: Duration,
    /// Time that a connection is kept between two requests, 1 s to 24 h, in whole seconds. Default 75 s. Announced as `Keep-Alive: timeout=`;
    /// closed one second later, for a request that is on its way. Make it longer than your load balancer keeps a connection to
    /// this server (many: 60 s; some: 10 min), or it will now and then use one that was just closed.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub connection_idle: Duration,
    /// Longest wait for the body of a request, those to the authorization server included. Default 30 s; then 408.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub body_read_timeout: Duration,
    /// Longest wait until a client takes the next bytes of an answer, 1 s to 24 h. Default 2 min; then its connection is closed. The system
    /// reports what was taken in steps of up to a third of its send buffer, which can be 2 MB: a client that is slower than that in this time is
    /// cut off. Until an answer is written, its request counts for `maxConcurrency`, or its stream for `maxStreams`.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub write_timeout: Duration,
    /// Time between two comments that keep an idle stream open. Default 15 s.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub keep_alive: Duration,
    /// Shows a page at `/` that says what is served and how to connect. Default: only when `host` is a loopback address.
    pub landing: Option<bool>,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            host: IpAddr::from([127, 0, 0, 1]),
            port: 3000,
            path: "/mcp".to_owned(),
            tls: None,
            public_url: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            max_body_bytes: 4 * 1024 * 1024,
            max_connections: 20_000,
            max_concurrency: 1024,
            max_request_mib: request_memory::DEFAULT_MIB,
            max_unsent_mib: 256,
            max_streams: 10_000,
            sessions: true,
            max_sessions: 10_000,
            max_sessions_per_caller: None,
            session_idle: Duration::from_secs(300),
            cluster: None,
            legacy_sse: false,
            json_response: true,
            drain_timeout: Duration::from_secs(10),
            header_read_timeout: Duration::from_secs(30),
            connection_idle: Duration::from_secs(75),
            body_read_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(120),
            keep_alive: Duration::from_secs(15),
            landing: None,
        }
    }
}

fn address<'de, D: serde::Deserializer<'de>>(from: D) -> Result<IpAddr, D::Error> {
    let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
    match &*text {
        "localhost" => Ok(IpAddr::from([127, 0, 0, 1])),
        text => text.parse().map_err(|_| {
            serde::de::Error::custom(format!(
                "`{text}` is not an IP address such as `127.0.0.1` or `0.0.0.0`"
            ))
        }),
    }
}

/// Paths of the server itself.
const OWN_PATHS: [&str; 4] = ["/healthz", "/readyz", "/sse", "/messages"];
/// Roots of the authorization server's endpoints, and of the metadata of it and of the resource (RFC 8414, RFC 9728).
const AUTHORIZATION_ROOTS: [&str; 2] = ["/oauth", "/.well-known"];

/// Returns the reason why `path` cannot be that of the MCP endpoint.
fn path_problem(path: &str) -> Option<&'static str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.~".contains(c);
    let segments = path.strip_prefix('/').filter(|rest| !rest.is_empty() && rest.chars().all(plain));
    let Some(segments) = segments else { return Some("is not a path such as `/mcp`") };
    let below =
        |root: &&str| path.strip_prefix(*root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if segments
        .strip_suffix('/')
        .unwrap_or(segments)
        .split('/')
        .any(|segment| matches!(segment, "" | "." | ".."))
    {
        Some(
            "has a segment that is empty, `.` or `..`, which clients remove before they send a request; write the path without it, such as \
             `/mcp`",
        )
    } else if OWN_PATHS.contains(&path) {
        Some("is taken by the server itself; choose another path, such as `/mcp`")
    } else if AUTHORIZATION_ROOTS.iter().any(below) {
        Some(
            "is an address of the authorization server or of its metadata; choose another path, such as `/mcp`",
        )
    } else {
        None
    }
}

const DAY: Duration = Duration::from_secs(24 * 3600);

impl HttpConfig {
    /// Every field that cannot be used.
    pub fn problems(&self) -> Vec<InvalidField> {
        let mut problems = Vec::new();
        let mut wrong =
            |field: &'static str, problem: String| problems.push(InvalidField::new(field, problem));
        if let Some(problem) = path_problem(&self.path) {
            wrong("path", format!("`{}` {problem}", self.path));
        }
        if let Some(url) = &self.public_url
            && url.password().is_none()
            && (!matches!(url.scheme(), "http" | "https") || url.host_str().is_none() || url.path() != "/")
        {
            wrong("publicUrl", format!("`{url}` must be `https://host` or `http://host`, without a path"));
        }
        if self.public_url.as_ref().is_some_and(|url| !url.username().is_empty() || url.password().is_some())
        {
            let problem =
                "has a user name or a password, which every client and the log would be told; leave it out";
            wrong("publicUrl", problem.to_owned());
        }
        for (field, path) in self.tls.iter().flat_map(|tls| [("tls.cert", &tls.cert), ("tls.key", &tls.key)])
        {
            if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
                wrong(field, format!("{} is not a regular file", path.display()));
            }
        }
        for (field, value, least, most) in [
            ("maxBodyBytes", self.max_body_bytes, 1, 64 << 20),
            ("maxConnections", self.max_connections, 1, 1_000_000),
            ("maxConcurrency", self.max_concurrency, 1, 1_000_000),
            ("maxRequestMib", self.max_request_mib, 16, 1 << 20),
            ("maxUnsentMib", self.max_unsent_mib, 16, 1 << 20),
            ("maxStreams", self.max_streams, 1, 1_000_000),
            ("maxSessions", self.max_sessions, 1, 1_000_000),
            ("maxSessionsPerCaller", self.max_sessions_per_caller.unwrap_or(1), 1, 1_000_000),
        ] {
            if !(least..=most).contains(&value) {
                wrong(field, format!("{value} is not between {least} and {most}"));
            }
        }
        for (field, value, least, most) in [
            ("sessionIdle", self.session_idle, 1_000, DAY),
            ("drainTimeout", self.drain_timeout, 100, Duration::from_secs(600)),
            ("headerReadTimeout", self.header_read_timeout, 100, DAY),
            ("connectionIdle", self.connection_idle, 1_000, DAY),
            ("bodyReadTimeout", self.body_read_timeout, 100, DAY),
            ("writeTimeout", self.write_timeout, 1_000, DAY),
            ("keepAlive", self.keep_alive, 1_000, DAY),
        ] {
            if value < Duration::from_millis(least) || value > most {
                wrong(field, format!("{value:?} is not between {least} ms and {most:?}"));
            }
        }
        if let Some(bad) = self.trusted_proxies.iter().find(|text| Network::parse(text).is_none()) {
            let problem = format!("`{bad}` is not an address or a network such as 10.0.0.0/8");
            wrong("trustedProxies", problem);
        }
        if self.cluster.as_ref().is_some_and(|cluster| cluster.advertise.is_some()) {
            let problem = "was removed: instances reach each other through the Redis of `auth.tokenStorage` or `http.cluster.redis`; \
                           delete this key";
            wrong("cluster.advertise", problem.to_owned());
        }
        problems.extend(AllowedSources::new(self).1);
        problems
    }

    /// The base of addresses that reach the server directly when it listens at `address`.
    pub fn origin_at(&self, address: SocketAddr) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{address}")
    }

    /// Returns `true` if the page at `/` is shown.
    pub(crate) fn shows_landing(&self) -> bool {
        self.landing.unwrap_or(self.host.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_section_is_the_default_and_a_misspelt_key_is_refused() {
        let config: HttpConfig = serde_json::from_str("{}").unwrap();
        assert_eq!(config, HttpConfig::default());
        assert_eq!(config.problems(), []);
        let error = serde_json::from_str::<HttpConfig>(r#"{"prot": 1}"#).unwrap_err();
        assert!(error.to_string().contains("unknown field `prot`"), "{error}");
    }

    #[test]
    fn durations_are_texts_with_units() {
        let config: HttpConfig =
            serde_json::from_str(r#"{"sessionIdle": "2m", "drainTimeout": "250ms"}"#).unwrap();
        assert_eq!(config.session_idle, Duration::from_secs(120));
        assert_eq!(config.drain_timeout, Duration::from_millis(250));
    }

    #[test]
    fn the_endpoint_is_at_no_address_of_the_authorization_server_and_at_none_that_clients_rewrite() {
        for path in [
            "/healthz",
            "/messages",
            "/oauth",
            "/oauth/token",
            "/.well-known/jwks.json",
            "/.well-known/oauth-protected-resource/mcp",
            "/mcp/../healthz",
            "/./mcp",
            "/mcp/..",
            "//mcp",
            "/mcp//tools",
            "/mcp//",
            "//",
        ] {
            let problems = HttpConfig { path: path.to_owned(), ..HttpConfig::default() }.problems();
            assert!(
                problems.len() == 1 && problems[0].problem.contains("such as `/mcp`"),
                "{path}: {problems:?}"
            );
        }
        for path in ["/mcp", "/mcp/", "/oauth2/mcp", "/a/.well-known", "/v1.2/~me/..mcp"] {
            assert_eq!(
                HttpConfig { path: path.to_owned(), ..HttpConfig::default() }.problems(),
                [],
                "{path}"
            );
        }
    }

    #[test]
    fn names_every_field_that_is_out_of_range() {
        let fields = |json: &str| {
            let problems = serde_json::from_str::<HttpConfig>(json).unwrap().problems().into_iter();
            problems.map(|problem| problem.path.into_owned()).collect::<Vec<_>>()
        };
        let field = |json: &str| fields(json).concat();
        assert_eq!(field(r#"{"path": "mcp"}"#), "path");
        assert_eq!(field(r#"{"publicUrl": "https://a.example/x"}"#), "publicUrl");
        assert_eq!(field(r#"{"maxSessions": 0}"#), "maxSessions");
        assert_eq!(field(r#"{"maxSessionsPerCaller": 0}"#), "maxSessionsPerCaller");
        assert_eq!(field(r#"{"maxConnections": 0}"#), "maxConnections");
        assert_eq!(field(r#"{"maxRequestMib": 15}"#), "maxRequestMib");
        assert_eq!(field(r#"{"maxUnsentMib": 15}"#), "maxUnsentMib");
        assert_eq!(field(r#"{"sessionIdle": "10ms"}"#), "sessionIdle");
        assert_eq!(field(r#"{"connectionIdle": "900ms"}"#), "connectionIdle");
        assert_eq!(field(r#"{"allowedOrigins": ["app.example"]}"#), "allowedOrigins");
        let key = "k".repeat(32);
        let advertise = format!(r#"{{"cluster": {{"key": "{key}", "advertise": "10.0.0.5:3000"}}}}"#);
        assert_eq!(field(&advertise), "cluster.advertise");
        assert_eq!(field(r#"{"allowedHosts": ["https://app.example"]}"#), "allowedHosts");
        let many = r#"{"path": "mcp", "maxSessions": 0, "keepAlive": "1ms", "allowedHosts": ["a/b", "c/d"]}"#;
        assert_eq!(fields(many), ["path", "maxSessions", "keepAlive", "allowedHosts", "allowedHosts"]);
    }
}
