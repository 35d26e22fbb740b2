//! HTTP calls of the server under test.

use serde_json::Value;

use crate::{base::text::shorten, cassette::redact::shown};

/// An HTTP request of the server under test.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct HttpCall {
    /// The full URL, without the scheme's default port.
    pub url: String,
    /// The method, in upper case.
    pub method: String,
    /// The headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as text, with U+FFFD in place of invalid UTF-8; absent if empty.
    pub body: Option<String>,
}

impl HttpCall {
    /// The first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// True for a WebSocket handshake (RFC 6455 §4.1), which no mock can answer.
    pub fn is_websocket(&self) -> bool {
        self.header("upgrade").is_some_and(|to| to.eq_ignore_ascii_case("websocket"))
    }

    /// The decoded values of a query parameter, in order.
    pub fn query(&self, name: &str) -> Vec<String> {
        let query = self.url.split_once('?').map_or("", |(_, rest)| rest.split('#').next().unwrap_or(rest));
        values(query, name)
    }

    /// The decoded values of a form field, in order, if the body is a form.
    pub fn form(&self, name: &str) -> Vec<String> {
        values(self.body.as_deref().unwrap_or_default(), name)
    }

    /// True for a server on this machine.
    pub(super) fn is_local(&self) -> bool {
        url::Url::parse(&self.url).is_ok_and(|url| match url.host() {
            Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        })
    }

    /// The body, parsed as JSON.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_str(self.body.as_deref()?).ok()
    }
}

/// For reports: without the secrets in URL and body.
impl std::fmt::Display for HttpCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, shown(&self.url))?;
        if self.is_websocket() {
            f.write_str(" (a WebSocket, which the HTTP mock does not speak)")?;
        }
        match &self.body {
            Some(body) => write!(f, " {}", shorten(&shown(body), 200)),
            None => Ok(()),
        }
    }
}

fn values(pairs: &str, name: &str) -> Vec<String> {
    let all = url::form_urlencoded::parse(pairs.as_bytes());
    all.filter(|(found, _)| found == name).map(|(_, value)| value.into_owned()).collect()
}
