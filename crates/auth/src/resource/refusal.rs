//! Refusals of the resource server: statuses, challenges (RFC 6750 §3, RFC 9449 §7.1) and times to try again.

use gatewright_core::AuthRefusal;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use super::{ResourceServer, TokenIssuer};
use crate::{
    api_keys::KeyRefusal, error::OAuthError, keys::TokenError, store::StoreError, tuning::RATE_WINDOW,
};

/// A caller who is not authenticated.
pub(super) enum AuthError {
    /// The header cannot be read.
    Malformed,
    Token(TokenError),
    Proof(OAuthError),
    /// Too many requests came; the text says of what.
    Flood(&'static str),
    /// The token cannot be checked now.
    Unavailable,
}

impl From<TokenError> for AuthError {
    fn from(why: TokenError) -> Self {
        Self::Token(why)
    }
}

impl From<StoreError> for AuthError {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "a caller cannot be checked: the token store failed");
        Self::Unavailable
    }
}

impl From<KeyRefusal> for AuthError {
    fn from(refusal: KeyRefusal) -> Self {
        match refusal {
            KeyRefusal::Token(why) => why.into(),
            KeyRefusal::Flood => {
                Self::Flood("too many unknown API keys came from this network; try again later")
            }
            KeyRefusal::Store(error) => error.into(),
        }
    }
}

impl ResourceServer {
    pub(super) fn challenge(
        &self,
        endpoint: Option<&str>,
        status: StatusCode,
        error: Option<&str>,
        text: &str,
    ) -> AuthRefusal {
        let mut challenge = format!("Bearer resource_metadata=\"{}\"", self.metadata_url(endpoint));
        match error {
            Some(error) => challenge.push_str(&format!(", error=\"{error}\"")),
            None if !self.resource.scopes.is_empty() => {
                challenge.push_str(&format!(", scope=\"{}\"", self.resource.scopes))
            }
            None => {}
        }
        respond(status, &challenge, error.unwrap_or("unauthorized"), text)
    }

    pub(super) fn refuse(&self, endpoint: Option<&str>, error: AuthError) -> AuthRefusal {
        match error {
            // The keys of an external provider cannot be fetched, which is counted there.
            AuthError::Unavailable if matches!(self.resource.issuer, TokenIssuer::External(_)) => {}
            AuthError::Unavailable => self.resource.metrics.store_failed(),
            _ => self.resource.metrics.auth_failed(),
        }
        match error {
            AuthError::Malformed => self.challenge(
                endpoint,
                StatusCode::UNAUTHORIZED,
                Some("invalid_request"),
                "the Authorization header is malformed",
            ),
            AuthError::Token(why) => {
                tracing::info!(%why, "a token was refused");
                self.challenge(
                    endpoint,
                    StatusCode::UNAUTHORIZED,
                    Some("invalid_token"),
                    "the token is not usable",
                )
            }
            AuthError::Proof(error) => {
                let challenge = format!(
                    "DPoP error=\"{}\", resource_metadata=\"{}\"",
                    error.code.as_str(),
                    self.metadata_url(endpoint)
                );
                let mut response = respond(
                    StatusCode::UNAUTHORIZED,
                    &challenge,
                    error.code.as_str(),
                    "the proof is not usable",
                );
                if let Some(value) = error.dpop_nonce.and_then(|nonce| HeaderValue::try_from(nonce).ok()) {
                    response.headers_mut().insert("dpop-nonce", value);
                }
                response
            }
            AuthError::Flood(text) => try_later(StatusCode::TOO_MANY_REQUESTS, text, RATE_WINDOW.as_secs()),
            AuthError::Unavailable => try_later(StatusCode::SERVICE_UNAVAILABLE, "try again later", 5),
        }
    }
}

/// A refusal that is not the caller's last word: no challenge, and the time after which to try again.
fn try_later(status: StatusCode, text: &str, seconds: u64) -> AuthRefusal {
    let mut response = respond(status, "", "temporarily_unavailable", text);
    response.headers_mut().remove(header::WWW_AUTHENTICATE);
    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    response
}

pub(super) fn respond(status: StatusCode, challenge: &str, error: &str, text: &str) -> AuthRefusal {
    let body = json!({"error": error, "error_description": text}).to_string();
    let mut response = AuthRefusal::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(value) = HeaderValue::try_from(challenge) {
        headers.insert(header::WWW_AUTHENTICATE, value);
    }
    response
}
