//! Responses of HTTP mocks.

use std::time::Duration;

use serde_json::Value;

/// A failure of the network instead of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[cfg_attr(feature = "suites", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum NetworkFailure {
    /// The server cannot be connected to. A client of `https` sees that the proxy refuses the tunnel, if the mock's URL has no path; other
    /// clients see a closed connection.
    Refused,
    /// The connection is closed before the response.
    Closed,
    /// The connection is reset (TCP RST) before the response.
    Reset,
    /// The response never arrives.
    Timeout,
}

/// The response of a mock.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpResponse {
    /// The status. Default 200.
    pub status: u16,
    /// The reason phrase. Default: that of the status.
    pub status_text: Option<String>,
    /// Headers, in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Delay of the response. Default: none.
    pub delay: Duration,
    /// Fails instead of responding. Default: none.
    pub failure: Option<NetworkFailure>,
}

impl Default for HttpResponse {
    fn default() -> Self {
        Self {
            status: 200,
            status_text: None,
            headers: Vec::new(),
            body: Vec::new(),
            delay: Duration::ZERO,
            failure: None,
        }
    }
}

impl HttpResponse {
    /// Sets the status.
    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Sets the reason phrase.
    #[must_use]
    pub fn status_text(mut self, text: impl Into<String>) -> Self {
        self.status_text = Some(text.into());
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Delays the response.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

/// A JSON value is a response with status 200.
impl From<Value> for HttpResponse {
    fn from(data: Value) -> Self {
        http_response::json(data)
    }
}

/// Common responses.
pub mod http_response {
    use std::time::Duration;

    use serde_json::{Value, json as value};

    use super::{HttpResponse, NetworkFailure};

    fn typed(kind: &str, body: impl Into<Vec<u8>>) -> HttpResponse {
        HttpResponse { body: body.into(), ..HttpResponse::default() }.header("content-type", kind)
    }

    /// 200 with JSON.
    pub fn json(data: impl Into<Value>) -> HttpResponse {
        typed("application/json", data.into().to_string())
    }

    /// 200 with plain text.
    pub fn text(text: impl Into<String>) -> HttpResponse {
        typed("text/plain; charset=utf-8", text.into())
    }

    /// 200 with HTML.
    pub fn html(html: impl Into<String>) -> HttpResponse {
        typed("text/html; charset=utf-8", html.into())
    }

    /// This status with `{"error": message}`.
    pub fn error(status: u16, message: &str) -> HttpResponse {
        json(value!({"error": message})).status(status)
    }

    /// 404.
    pub fn not_found() -> HttpResponse {
        error(404, "Not Found")
    }

    /// 401.
    pub fn unauthorized() -> HttpResponse {
        error(401, "Unauthorized")
    }

    /// 403.
    pub fn forbidden() -> HttpResponse {
        error(403, "Forbidden")
    }

    /// 500.
    pub fn server_error(message: Option<&str>) -> HttpResponse {
        error(500, message.unwrap_or("Internal Server Error"))
    }

    /// 200 with JSON after this many milliseconds.
    pub fn delayed(data: impl Into<Value>, ms: u64) -> HttpResponse {
        json(data).delay(Duration::from_millis(ms))
    }

    /// No response: the connection is closed.
    pub fn network_error() -> HttpResponse {
        failed(NetworkFailure::Closed)
    }

    /// No response, for this reason.
    pub fn failed(failure: NetworkFailure) -> HttpResponse {
        HttpResponse { failure: Some(failure), ..HttpResponse::default() }
    }
}
