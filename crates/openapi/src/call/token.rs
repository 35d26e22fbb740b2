//! Access tokens of the gateway itself: OAuth 2.0 client credentials (RFC 6749 §4.4), kept until they expire.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use base64::Engine as _;
use gatewright_core::{Secret, read_json};
use http::{
    HeaderMap, HeaderValue, Method,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use serde::Deserialize;
use url::Url;

use super::{
    answer::Memory,
    credentials::TokenRequest,
    encode::escaped,
    failure::CallError,
    http::{HttpClient, Outgoing},
    redactor::Redactor,
};

/// Bytes of the answer of a token endpoint.
const MOST: usize = 64 * 1024;
/// A token is not used in its last seconds.
const EARLY: Duration = Duration::from_secs(30);
/// Lifetime of a token whose answer names none.
const UNSAID: Duration = Duration::from_secs(5 * 60);
/// Longest time that a token is kept.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Kinds of tokens, by their scopes, that are kept.
const MOST_KINDS: usize = 100;

/// Token endpoint, client and scopes.
type Kind = (String, String, Vec<String>);

/// The tokens of an app.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    /// By token endpoint, client and scopes. The inner lock is held while a token is fetched, so that one request fetches it for all.
    kept: Mutex<HashMap<Kind, Arc<tokio::sync::Mutex<Option<Kept>>>>>,
}

#[derive(Debug, Clone)]
struct Kept {
    token: Secret,
    until: Instant,
}

#[derive(Deserialize)]
struct Answer {
    access_token: String,
    token_type: Option<String>,
    expires_in: Option<serde_json::Value>,
}

impl Tokens {
    /// A token, from the token endpoint unless one is kept. `refused` is one that the API did not accept.
    ///
    /// # Errors
    /// The endpoint gives none.
    pub(crate) async fn get(
        &self,
        http: &HttpClient,
        request: &TokenRequest,
        refused: Option<&Secret>,
        redactor: &Redactor,
    ) -> Result<Secret, CallError> {
        let kind = (request.token_url.clone(), request.client.client_id.clone(), request.scopes.clone());
        let slot = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() >= MOST_KINDS && !kept.contains_key(&kind) {
                kept.clear();
            }
            kept.entry(kind).or_default().clone()
        };
        let mut slot = slot.lock().await;
        let now = Instant::now();
        if let Some(kept) = slot.as_ref().filter(|kept| kept.until > now && Some(&kept.token) != refused) {
            return Ok(kept.token.clone());
        }
        let fetched = fetch(http, request, redactor).await?;
        redactor.learn(&fetched.token);
        let token = fetched.token.clone();
        *slot = Some(fetched);
        Ok(token)
    }
}

async fn fetch(http: &HttpClient, request: &TokenRequest, redactor: &Redactor) -> Result<Kept, CallError> {
    let url = Url::parse(&request.token_url)
        .map_err(|_| CallError::NoToken("the token endpoint is no address".to_owned()))?;
    let client = &request.client;
    let mut form = vec![("grant_type", "client_credentials".to_owned())];
    if !request.scopes.is_empty() {
        form.push(("scope", request.scopes.join(" ")));
    }
    form.extend(client.audience.clone().map(|audience| ("audience", audience)));
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    if client.in_body {
        form.push(("client_id", client.client_id.clone()));
        form.push(("client_secret", client.client_secret.expose().to_owned()));
    } else {
        let encode = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let pair = format!("{}:{}", encode(&client.client_id), encode(client.client_secret.expose()));
        let value = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair));
        let mut value = HeaderValue::try_from(value).map_err(|_| {
            CallError::NoToken("its credentials have characters that cannot be sent".to_owned())
        })?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let body =
        form.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect::<Vec<_>>().join("&");
    let outgoing = Outgoing {
        method: Method::POST,
        url,
        headers,
        body: Some(body.into_bytes()),
        shows_certificate: false,
        trail: None,
    };
    let failed = |why: String| CallError::NoToken(why);
    let response = http.send_once(&outgoing).await.map_err(|error| failed(error.to_string()))?;
    let status = response.status();
    let body =
        response.read(MOST, &mut Memory::default()).await.map_err(|error| failed(error.to_string()))?;
    if !status.is_success() {
        let code = read_json::<serde_json::Value>(&body).ok();
        let code = code.as_ref().and_then(|body| body.get("error")?.as_str());
        let code = code.map(|code| format!(" ({})", redactor.text(code, 60))).unwrap_or_default();
        return Err(failed(format!("the token endpoint answered with HTTP {}{code}", status.as_u16())));
    }
    let answer: Answer =
        read_json(&body).map_err(|_| failed("the answer of the token endpoint cannot be read".to_owned()))?;
    if answer.token_type.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err(failed("the token endpoint gives tokens that are not bearer tokens".to_owned()));
    }
    let said = answer.expires_in.as_ref().and_then(|seconds| {
        seconds
            .as_u64()
            .or_else(|| seconds.as_f64().map(|seconds| seconds.max(0.0) as u64))
            .or_else(|| seconds.as_str()?.parse().ok())
    });
    let lifetime = said.map_or(UNSAID, Duration::from_secs).min(LONGEST);
    // A short one is used for half of its time.
    let until = Instant::now() + lifetime.checked_sub(EARLY).unwrap_or_default().max(lifetime / 2);
    Ok(Kept { token: Secret::new(answer.access_token), until })
}
