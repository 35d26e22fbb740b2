//! Form parameters, and error responses to them (RFC 6749 §5.2).

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

use super::response::error_response;

/// The parameters of a form. Empty ones count as absent.
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    /// Parses a body. A parameter that is sent twice is an error (RFC 6749 §3.2), except `resource` (RFC 8707 §2).
    pub(super) fn parse(content_type: Option<&HeaderValue>, body: &str) -> Result<Self, TokenError> {
        let is_form = content_type.and_then(|kind| kind.to_str().ok()).is_some_and(|kind| {
            kind.split(';').next().is_some_and(|kind| kind.trim() == "application/x-www-form-urlencoded")
        });
        if !is_form {
            return Err(TokenError::invalid_request("the body must be application/x-www-form-urlencoded"));
        }
        let pairs: Vec<(String, String)> = url::form_urlencoded::parse(body.as_bytes())
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        let twice = pairs.iter().enumerate().any(|(at, (name, _))| {
            name != "resource" && pairs[..at].iter().any(|(earlier, _)| earlier == name)
        });
        if twice {
            return Err(TokenError::invalid_request("a parameter is sent twice"));
        }
        Ok(Self(pairs))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn require(&self, name: &str) -> Result<&str, TokenError> {
        self.get(name).ok_or_else(|| TokenError::invalid_request(&format!("`{name}` is missing")))
    }
}

/// An error response of the token endpoint and those like it.
#[derive(Debug)]
pub(super) struct TokenError {
    status: StatusCode,
    error: String,
    description: String,
    headers: Vec<(&'static str, String)>,
}

impl TokenError {
    pub(super) fn new(status: StatusCode, error: &str, description: &str) -> Self {
        Self { status, error: error.to_owned(), description: description.to_owned(), headers: Vec::new() }
    }

    pub(super) fn bad_request(error: &str, description: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error, description)
    }

    pub(super) fn invalid_request(description: &str) -> Self {
        Self::bad_request("invalid_request", description)
    }

    pub(super) fn invalid_grant(description: &str) -> Self {
        Self::bad_request("invalid_grant", description)
    }

    /// Adds `WWW-Authenticate`.
    pub(super) fn challenge(self, value: &str) -> Self {
        self.header("www-authenticate", value)
    }

    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

impl IntoResponse for TokenError {
    fn into_response(self) -> Response {
        let mut response = error_response(self.status, &self.error, &self.description);
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().insert(header::HeaderName::from_static(name), value);
            }
        }
        response
    }
}
