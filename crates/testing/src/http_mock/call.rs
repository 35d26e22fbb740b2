//! HTTP calls of the server under test.

use serde_json::Value;

use crate::base::text::shorten;

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

    /// The body, parsed as JSON.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_str(self.body.as_deref()?).ok()
    }
}

impl std::fmt::Display for HttpCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.url)?;
        if self.is_websocket() {
            f.write_str(" (a WebSocket, which the HTTP mock does not speak)")?;
        }
        match &self.body {
            Some(body) => write!(f, " {}", shorten(body, 200)),
            None => Ok(()),
        }
    }
}
