//! Errors of the OAuth endpoints, as RFC 6749 §5.2 writes them.

use std::{borrow::Cow, time::Duration};

use axum::response::{IntoResponse, Response};
use gatewright_core::whole_seconds;
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use crate::{error_codes::Code, grant_refusal::GrantRefusal, store::StoreError};

/// An error response: its code, and a reason that is safe to show.
#[derive(Debug)]
pub(crate) struct OAuthError {
    pub(crate) status: StatusCode,
    pub(crate) code: Code,
    pub(crate) description: Cow<'static, str>,
    pub(crate) retry_after_s: Option<u64>,
    /// Value of `WWW-Authenticate`.
    pub(crate) challenge: Option<String>,
    pub(crate) dpop_nonce: Option<String>,
    /// Reason of `invalid_grant`, which is not sent.
    pub(crate) refusal: Option<GrantRefusal>,
}

impl OAuthError {
    /// An error with the usual status of `code`.
    pub(crate) fn new(code: Code, description: impl Into<Cow<'static, str>>) -> Self {
        let description = description.into();
        Self {
            status: code.status(),
            code,
            description,
            retry_after_s: None,
            challenge: None,
            dpop_nonce: None,
            refusal: None,
        }
    }

    pub(crate) fn invalid_request(description: &'static str) -> Self {
        Self::new(Code::InvalidRequest, description)
    }

    /// The grant cannot be used. The description is always the same, so that it tells nothing about codes and tokens.
    pub(crate) fn invalid_grant(refusal: GrantRefusal) -> Self {
        Self { refusal: Some(refusal), ..Self::new(Code::InvalidGrant, "the grant is not usable") }
    }

    pub(crate) fn invalid_client() -> Self {
        Self::new(Code::InvalidClient, "client authentication failed")
    }

    pub(crate) fn too_many(retry: Duration) -> Self {
        Self {
            status: StatusCode::TOO_MANY_REQUESTS,
            retry_after_s: Some(whole_seconds(retry)),
            ..Self::new(Code::TemporarilyUnavailable, "too many requests; try again later")
        }
    }

    /// Returns the error with another status.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Returns the error with a `WWW-Authenticate` header.
    pub(crate) fn with_challenge(self, challenge: impl Into<String>) -> Self {
        Self { challenge: Some(challenge.into()), ..self }
    }
}

impl From<StoreError> for OAuthError {
    fn from(error: StoreError) -> Self {
        tracing::error!(error = %error, source = ?std::error::Error::source(&error).map(ToString::to_string), "the token store failed");
        Self {
            retry_after_s: Some(5),
            ..Self::new(Code::TemporarilyUnavailable, "the service is not available; try again later")
        }
    }
}

impl IntoResponse for OAuthError {
    fn into_response(self) -> Response {
        let body = json!({"error": self.code.as_str(), "error_description": self.description});
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
        if let Some(refusal) = self.refusal {
            tracing::info!(grant.refusal = refusal.as_str(), "a code or refresh token was refused");
            response.extensions_mut().insert(refusal);
        }
        response
    }
}

impl IntoResponse for StoreError {
    fn into_response(self) -> Response {
        OAuthError::from(self).into_response()
    }
}

/// A JSON response that must not be cached.
pub(crate) fn no_store(status: StatusCode, body: &Value) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
        (header::PRAGMA, "no-cache"),
    ];
    (status, headers, body.to_string()).into_response()
}
