//! Parameters of a request, and the errors a request can be answered with.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use axum::{
    body::{Body, to_bytes},
    response::{IntoResponse, Response},
};
use gatewright_core::whole_seconds;
use http::{HeaderValue, StatusCode, header, request::Parts};
use serde_json::json;

use crate::store::StoreError;

pub(super) const MOST_BODY: usize = 64 * 1024;
const BODY_TIME: Duration = Duration::from_secs(10);

/// An OAuth error response (RFC 6749 §5.2).
#[derive(Debug)]
pub(crate) struct OAuthError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) description: Cow<'static, str>,
    pub(crate) retry_after_s: Option<u64>,
    /// Sent as `WWW-Authenticate`.
    pub(crate) challenge: Option<String>,
    pub(crate) dpop_nonce: Option<String>,
}

impl OAuthError {
    pub(crate) fn new(code: &'static str, description: impl Into<Cow<'static, str>>) -> Self {
        let (status, description) = (StatusCode::BAD_REQUEST, description.into());
        Self { status, code, description, retry_after_s: None, challenge: None, dpop_nonce: None }
    }

    pub(crate) fn invalid_request(description: &'static str) -> Self {
        Self::new("invalid_request", description)
    }

    pub(crate) fn invalid_grant() -> Self {
        Self::new("invalid_grant", "the grant is not usable")
    }

    pub(crate) fn invalid_client() -> Self {
        Self {
            status: StatusCode::UNAUTHORIZED,
            ..Self::new("invalid_client", "client authentication failed")
        }
    }

    pub(crate) fn too_many(retry: Duration) -> Self {
        Self {
            status: StatusCode::TOO_MANY_REQUESTS,
            retry_after_s: Some(whole_seconds(retry)),
            ..Self::new("temporarily_unavailable", "too many requests; try again later")
        }
    }
}

impl From<StoreError> for OAuthError {
    fn from(error: StoreError) -> Self {
        tracing::error!(error = %error, source = ?std::error::Error::source(&error).map(ToString::to_string), "the token store failed");
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            retry_after_s: Some(5),
            ..Self::new("temporarily_unavailable", "the service is not available; try again later")
        }
    }
}

impl IntoResponse for OAuthError {
    fn into_response(self) -> Response {
        let body = json!({"error": self.code, "error_description": self.description});
        let mut response = no_store(self.status, &body);
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if let Some(value) = self.challenge.and_then(|text| HeaderValue::try_from(text).ok()) {
            headers.insert(header::WWW_AUTHENTICATE, value);
        }
        if let Some(value) = self.dpop_nonce.and_then(|text| HeaderValue::try_from(text).ok()) {
            headers.insert("dpop-nonce", value);
        }
        response
    }
}

/// A JSON response that nobody may keep.
pub(super) fn no_store(status: StatusCode, body: &serde_json::Value) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
        (header::PRAGMA, "no-cache"),
    ];
    (status, headers, body.to_string()).into_response()
}

/// Parameters, each at most once but for `resource` and `scope` of forms.
#[derive(Debug, Default, Clone)]
pub(super) struct Params {
    one: BTreeMap<String, String>,
    /// Values of `resource`, in order.
    pub(super) resources: Vec<String>,
    /// Values of the consent form's boxes.
    pub(super) boxes: Vec<String>,
    /// Names that came more than once.
    pub(super) repeated: Vec<String>,
}

impl Params {
    pub(super) fn parse(text: &[u8]) -> Self {
        let mut params = Self::default();
        for (name, value) in url::form_urlencoded::parse(text) {
            // An empty value counts as left out (RFC 6749 §3.1).
            if value.is_empty() {
                continue;
            }
            match &*name {
                "resource" => params.resources.push(value.into_owned()),
                "grant_scope" => params.boxes.push(value.into_owned()),
                _ => {
                    if params.one.insert(name.clone().into_owned(), value.into_owned()).is_some() {
                        params.repeated.push(name.into_owned());
                    }
                }
            }
        }
        params
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.one.get(name).map(String::as_str)
    }

    pub(super) fn need(&self, name: &'static str, missing: &'static str) -> Result<&str, OAuthError> {
        self.get(name).ok_or_else(|| OAuthError::invalid_request(missing))
    }

    pub(super) fn is_repeated(&self, name: &str) -> bool {
        self.repeated.iter().any(|held| held == name)
    }

    /// Those of them that are called one of `names`, and `resource`.
    pub(super) fn only(&self, names: &[&str]) -> Self {
        let one = self.one.iter().filter(|(name, _)| names.contains(&name.as_str()));
        Self {
            one: one.map(|(name, value)| (name.clone(), value.clone())).collect(),
            resources: self.resources.clone(),
            ..Self::default()
        }
    }

    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.one.insert(name.to_owned(), value.to_owned());
    }

    /// As they were, to be stored.
    pub(super) fn to_text(&self) -> String {
        let mut out = url::form_urlencoded::Serializer::new(String::new());
        out.extend_pairs(&self.one);
        out.extend_pairs(self.resources.iter().map(|value| ("resource", value)));
        out.finish()
    }
}

/// Reads a body of at most 64 KiB within ten seconds.
pub(super) async fn read_body(body: Body) -> Result<Vec<u8>, OAuthError> {
    let status = |status, code, text| OAuthError { status, ..OAuthError::new(code, text) };
    match tokio::time::timeout(BODY_TIME, to_bytes(body, MOST_BODY)).await {
        Ok(Ok(bytes)) => Ok(bytes.to_vec()),
        Ok(Err(_)) => Err(status(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request", "the body is too large")),
        Err(_) => Err(status(StatusCode::REQUEST_TIMEOUT, "invalid_request", "the body came too slowly")),
    }
}

/// Reads a form: the content type must say so, and no parameter may come twice.
pub(super) async fn read_form(parts: &Parts, body: Body) -> Result<Params, OAuthError> {
    let kind =
        parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Err(OAuthError::invalid_request("the body must be application/x-www-form-urlencoded"));
    }
    let params = Params::parse(&read_body(body).await?);
    if !params.repeated.is_empty() {
        return Err(OAuthError::invalid_request("a parameter is repeated"));
    }
    Ok(params)
}
