//! Checks of the headers of every request: Host and Origin, so that no page on the web makes a browser send it (DNS rebinding), and
//! headers that could be read in two ways.
//!
//! MCP 2025-11-25 and 2026-07-28, transports: servers MUST validate `Origin`.

use http::{HeaderMap, HeaderValue, Uri, header, uri::Authority};

use gatewright_core::InvalidField;

use crate::config::HttpConfig;

/// A Host or Origin that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SourceError {
    NoHost,
    Host(String),
    Origin(String),
}

/// Headers that two recipients could read in different ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// A header of one value has several.
    Repeated(&'static str),
    /// A transfer coding other than `chunked`.
    TransferCoding,
}

/// Headers of one value that are read here or by `rmcp`. `Authorization` and `DPoP` are left to whoever authenticates.
const SINGLE: [&str; 8] = [
    "host",
    "content-type",
    "transfer-encoding",
    "mcp-protocol-version",
    "mcp-session-id",
    "mcp-method",
    "mcp-name",
    "last-event-id",
];

/// Checks that the headers leave no choice: of two values the next recipient may go by the other (RFC 9110 §5.3), and a body ends where
/// its only transfer coding, `chunked`, says (RFC 9112 §6.1).
pub(crate) fn unambiguous(headers: &HeaderMap) -> Result<(), HeaderError> {
    // As a rule no header is repeated at all.
    if headers.len() != headers.keys_len()
        && let Some(name) = SINGLE.into_iter().find(|name| headers.get_all(*name).iter().nth(1).is_some())
    {
        return Err(HeaderError::Repeated(name));
    }
    match headers.get(header::TRANSFER_ENCODING) {
        Some(coding) if !coding.as_bytes().eq_ignore_ascii_case(b"chunked") => {
            Err(HeaderError::TransferCoding)
        }
        _ => Ok(()),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Origin {
    scheme: String,
    host: String,
    /// `None` is any port.
    port: Option<u16>,
}

/// The hosts and origins that may be named.
#[derive(Debug, Default)]
pub(crate) struct AllowedSources {
    any_host: bool,
    hosts: Vec<(String, Option<u16>)>,
    any_origin: bool,
    null_origin: bool,
    /// `true` for those that were configured, `false` for loopback.
    origins: Vec<(Origin, bool)>,
}

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

impl AllowedSources {
    /// The hosts and origins, and the entries of the configuration that are left out because they cannot be read.
    pub(crate) fn new(config: &HttpConfig) -> (Self, Vec<InvalidField>) {
        let (mut allowed, mut problems) = (Self::default(), Vec::new());
        for host in LOOPBACK {
            allowed.hosts.push((host.to_owned(), None));
            for scheme in ["http", "https"] {
                let origin = Origin { scheme: scheme.into(), host: host.into(), port: None };
                allowed.origins.push((origin, false));
            }
        }
        if let Some(url) = &config.public_url {
            let host = bare(url.host_str().unwrap_or_default());
            allowed.hosts.push((host.clone(), None));
            let (scheme, port) = (url.scheme().to_owned(), url.port_or_known_default());
            allowed.origins.push((Origin { scheme, host, port }, true));
        }
        for entry in &config.allowed_hosts {
            match host_and_port(entry) {
                _ if entry == "*" => allowed.any_host = true,
                Some(host) => allowed.hosts.push(host),
                None => problems.push(unreadable("allowedHosts", entry, "`name` or `name:port`")),
            }
        }
        for entry in &config.allowed_origins {
            match entry.as_str() {
                "*" => allowed.any_origin = true,
                "null" => allowed.null_origin = true,
                _ => match allowed_origin(entry) {
                    Some(origin) => allowed.origins.push((origin, true)),
                    None => problems.push(unreadable(
                        "allowedOrigins",
                        entry,
                        "`https://host`, with `:port` or `:*` if needed",
                    )),
                },
            }
        }
        (allowed, problems)
    }

    /// Checks the host a request names: every one, for whoever reads it next may go by another (RFC 9112 §3.2).
    pub(crate) fn host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), SourceError> {
        if self.any_host {
            return Ok(());
        }
        let headers = headers.get_all(header::HOST).into_iter().map(|value| value.to_str().unwrap_or("?"));
        let mut named = headers.chain(uri.authority().map(Authority::as_str)).peekable();
        if named.peek().is_none() {
            return Err(SourceError::NoHost);
        }
        let allowed = |(host, port): (String, Option<u16>)| {
            self.hosts.iter().any(|entry| entry.0 == host && (entry.1.is_none() || entry.1 == port))
        };
        match named.find(|named| !host_and_port(named).is_some_and(allowed)) {
            Some(stranger) => Err(SourceError::Host(stranger.to_owned())),
            None => Ok(()),
        }
    }

    /// Checks every origin that is named: only browsers name one, and no more than one.
    pub(crate) fn origin(&self, headers: &HeaderMap) -> Result<(), SourceError> {
        let mut named =
            headers.get_all(header::ORIGIN).into_iter().map(|value| value.to_str().unwrap_or("?"));
        match named.find(|named| !self.knows(named, |_| true)) {
            Some(stranger) => Err(SourceError::Origin(stranger.to_owned())),
            None => Ok(()),
        }
    }

    /// Returns `true` if pages of this origin may read answers: those that were configured.
    pub(crate) fn may_read(&self, origin: &HeaderValue) -> bool {
        origin.to_str().is_ok_and(|origin| self.knows(origin, |configured| configured))
    }

    fn knows(&self, named: &str, counts: impl Fn(bool) -> bool) -> bool {
        match named {
            _ if self.any_origin => true,
            "null" => self.null_origin,
            _ => origin(named).is_some_and(|origin| {
                self.origins.iter().any(|(entry, configured)| {
                    counts(*configured)
                        && entry.scheme == origin.scheme
                        && entry.host == origin.host
                        && (entry.port.is_none() || entry.port == origin.port)
                })
            }),
        }
    }
}

fn unreadable(field: &'static str, entry: &str, right: &str) -> InvalidField {
    InvalidField::new(field, format!("`{entry}` is not of the form {right}"))
}

fn bare(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase()
}

fn host_and_port(text: &str) -> Option<(String, Option<u16>)> {
    if text.contains('@') || text.contains('/') {
        return None;
    }
    let authority = Authority::try_from(text).ok()?;
    let host = bare(authority.host());
    let port_is_sound = authority.port_u16().is_some() || !has_port(text);
    (!host.is_empty() && port_is_sound).then(|| (host, authority.port_u16()))
}

fn has_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(_, after)| !after.ends_with(']'))
}

/// An origin as a browser writes it; the scheme's own port when none is written (RFC 6454 §6.2).
fn origin(text: &str) -> Option<Origin> {
    let (scheme, rest) = text.split_once("://")?;
    let (host, port) = host_and_port(rest)?;
    let scheme = scheme.to_ascii_lowercase();
    let default = match scheme.as_str() {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    };
    Some(Origin { scheme, host, port: port.or(default) })
}

fn allowed_origin(text: &str) -> Option<Origin> {
    match text.strip_suffix(":*") {
        Some(base) => origin(base).map(|origin| Origin { port: None, ..origin }),
        None => origin(text).filter(|origin| origin.port.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> AllowedSources {
        AllowedSources::new(&serde_json::from_str(json).unwrap()).0
    }

    fn headers(name: http::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    fn host(allowed: &AllowedSources, value: &str) -> bool {
        allowed.host(&Uri::from_static("/mcp"), &headers(header::HOST, value)).is_ok()
    }

    fn origin_ok(allowed: &AllowedSources, value: &str) -> bool {
        allowed.origin(&headers(header::ORIGIN, value)).is_ok()
    }

    #[test]
    fn by_default_only_loopback_on_any_port_is_welcome() {
        let allowed = read("{}");
        for good in ["localhost", "LOCALHOST:1", "127.0.0.1:3000", "[::1]:3000", "[::1]"] {
            assert!(host(&allowed, good), "{good}");
        }
        for bad in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "a@localhost",
            "localhost:x",
            "",
        ] {
            assert!(!host(&allowed, bad), "{bad}");
        }
        assert!(origin_ok(&allowed, "http://localhost:5173") && origin_ok(&allowed, "http://[::1]:1"));
        for bad in ["http://evil.example", "null", "http://localhost.evil.example", "file://", "localhost"] {
            assert!(!origin_ok(&allowed, bad), "{bad}");
        }
    }

    #[test]
    fn the_public_url_is_welcome_from_its_own_origin_only() {
        let allowed = read(r#"{"publicUrl": "https://mcp.acme.example"}"#);
        assert!(host(&allowed, "mcp.acme.example") && host(&allowed, "mcp.acme.example:8443"));
        assert!(
            origin_ok(&allowed, "https://mcp.acme.example")
                && origin_ok(&allowed, "https://mcp.acme.example:443")
        );
        assert!(
            !origin_ok(&allowed, "http://mcp.acme.example")
                && !origin_ok(&allowed, "https://mcp.acme.example:8443")
        );
    }

    #[test]
    fn a_port_in_an_entry_counts() {
        let allowed = read(
            r#"{"allowedHosts": ["a.example:8080", "b.example"], "allowedOrigins": ["https://a.example", "https://b.example:*"]}"#,
        );
        assert!(
            host(&allowed, "a.example:8080") && !host(&allowed, "a.example") && host(&allowed, "b.example:9")
        );
        assert!(origin_ok(&allowed, "https://a.example") && !origin_ok(&allowed, "https://a.example:8443"));
        assert!(origin_ok(&allowed, "https://b.example:8443"));
    }

    #[test]
    fn a_second_host_or_origin_counts_as_much_as_the_first() {
        let allowed = read("{}");
        let twice = |name: http::HeaderName, first: &str, second: &str| {
            HeaderMap::from_iter([(name.clone(), first.parse().unwrap()), (name, second.parse().unwrap())])
        };
        let hosts = twice(header::HOST, "localhost", "evil.example");
        let evil = SourceError::Host("evil.example".to_owned());
        assert_eq!(allowed.host(&Uri::from_static("/mcp"), &hosts), Err(evil.clone()));
        let absolute = Uri::from_static("http://evil.example/mcp");
        assert_eq!(allowed.host(&absolute, &headers(header::HOST, "localhost")), Err(evil));
        let origins = twice(header::ORIGIN, "http://localhost", "http://evil.example");
        assert_eq!(allowed.origin(&origins), Err(SourceError::Origin("http://evil.example".to_owned())));
    }

    #[test]
    fn a_header_of_one_value_is_sent_once_and_chunked_is_the_only_transfer_coding() {
        let check = |pairs: &[(&'static str, &'static str)]| {
            let pair = |(name, value): &(&'static str, &'static str)| {
                (http::HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            unambiguous(&HeaderMap::from_iter(pairs.iter().map(pair)))
        };
        for name in SINGLE {
            assert_eq!(
                check(&[(name, "chunked"), ("accept", "a"), (name, "chunked")]),
                Err(HeaderError::Repeated(name))
            );
        }
        assert_eq!(check(&[("accept", "a"), ("accept", "b"), ("transfer-encoding", "Chunked")]), Ok(()));
        for coding in ["chunked, chunked", "gzip, chunked", "gzip", "identity", ""] {
            assert_eq!(check(&[("transfer-encoding", coding)]), Err(HeaderError::TransferCoding), "{coding}");
        }
    }

    #[test]
    fn a_request_without_a_host_is_refused_and_one_without_an_origin_is_not() {
        let allowed = read("{}");
        assert_eq!(allowed.host(&Uri::from_static("/mcp"), &HeaderMap::new()), Err(SourceError::NoHost));
        assert_eq!(allowed.origin(&HeaderMap::new()), Ok(()));
    }
}
