//! The browser comes back from the provider: whose answer it is, and who signed in.

use std::sync::Arc;

use axum::{body::Body, extract::State, response::Response};
use http::{Request, StatusCode};
use serde_json::Value;

use super::{NotConfirmed, down_page};
use crate::{
    crypto::{same, sha256_hex},
    keys::{Claims, SKEW_S},
    records::{Pending, Person, Session},
    server::{
        Core,
        steps::{PENDING_LIFE, cookie, page, store_page},
    },
    store::Key,
};

/// Where the provider sends the browser back to.
pub(crate) async fn callback(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, _) = request.into_parts();
    match core.come_back(&parts).await {
        Ok(response) | Err(response) => response,
    }
}

impl Core {
    async fn come_back(&self, parts: &http::request::Parts) -> Result<Response, Response> {
        let bad = |text: &str| page(StatusCode::BAD_REQUEST, text);
        let provider = self.provider.as_ref().ok_or_else(|| bad("No sign-in service is configured."))?;
        let query: Vec<(String, String)> =
            url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes())
                .into_owned()
                .collect();
        let get = |name: &str| query.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str());
        let state =
            get("state").ok_or_else(|| bad("The answer of the sign-in service cannot be matched."))?;
        // Single use: taken before anything else is looked at.
        let id = self.store.take(&Key::secret("upstream", state)).await.map_err(store_page)?;
        let id = id
            .and_then(|id| String::from_utf8(id).ok())
            .ok_or_else(|| bad("The answer of the sign-in service cannot be matched."))?;
        let (mut pending, held, _) = self.pending(&parts.headers, &id).await?;
        let upstream = pending
            .upstream
            .take()
            .filter(|upstream| same(&upstream.state, state) && upstream.issuer == provider.issuer)
            .ok_or_else(|| bad("The answer of the sign-in service cannot be matched."))?;
        let metadata = provider.metadata().await.map_err(|_| down_page())?;
        let other = get("iss").is_some_and(|iss| iss != provider.issuer);
        if other || (metadata.authorization_response_iss_parameter_supported && get("iss").is_none()) {
            return Err(bad("The answer is from another sign-in service."));
        }
        // The application may have gone while the user was away.
        if pending.back.is_none() {
            self.client_of(&pending).await?;
        }
        if get("error").is_some() {
            self.store.remove(&Key::secret("pending", &id)).await.map_err(store_page)?;
            return Ok(self.refuse(
                &pending,
                "access_denied",
                "the sign-in service said no",
                StatusCode::FOUND,
            ));
        }
        let code = get("code").ok_or_else(|| bad("The answer of the sign-in service has no code."))?;
        let ip = self.caller(parts);
        let (claims, tokens) = provider.exchange(self, code, &upstream).await.map_err(|error| {
            self.tell("login.failed", None, Some(&pending.grant.client), Some(ip), None);
            match error {
                NotConfirmed::Down(why) => {
                    tracing::error!(why, "the identity provider cannot be used");
                    down_page()
                }
                NotConfirmed::Refused(why) => {
                    tracing::warn!(why, "a login at the identity provider failed");
                    bad("The sign-in service did not confirm who you are.")
                }
            }
        })?;
        let text = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default();
        let known = |name: &str| Some(crate::pages::plain(text(name), 254)).filter(|text| !text.is_empty());
        let now = self.clock.now_ms();
        let Some(auth_s) = login_time(&claims, &pending, now / 1000) else {
            self.store.remove(&Key::secret("pending", &id)).await.map_err(store_page)?;
            let text = "the sign-in service did not ask the user to sign in again";
            return Ok(self.refuse(&pending, "login_required", text, StatusCode::FOUND));
        };
        // The issuer and its subject make the identity; a mail address never does.
        let sub = provider.subject(text("sub"));
        let session = Session {
            name: crate::pages::plain(text("name"), 80),
            sub,
            auth_s,
            started_ms: now,
            seen_ms: now,
            credential: None,
            person: Person { name: known("name"), email: known("email") },
        };
        self.tell("login.ok", Some(&session.sub), Some(&pending.grant.client), Some(ip), None);
        let response =
            self.logged_in(&parts.headers, &id, &mut pending, &held, &session).await.map_err(store_page)?;
        if let Some(session_id) = session_cookie(&response, &self.cookie_name("session")) {
            self.keep_tokens(&sha256_hex(&session_id), &tokens).await.map_err(store_page)?;
        }
        Ok(response)
    }
}

/// When the user signed in at the provider; `None` when that is not as recent as the client wants, or the provider does not tell although
/// the client wants to know.
fn login_time(claims: &Claims, pending: &Pending, now_s: u64) -> Option<u64> {
    let told = claims.get("auth_time").and_then(Value::as_u64).map(|at| at.min(now_s));
    let (wish, began_s) = (&pending.wish, pending.expires_ms / 1000 - PENDING_LIFE.as_secs());
    let oldest = match wish.max_age {
        _ if wish.again => Some(began_s),
        Some(seconds) => Some(now_s.saturating_sub(seconds).min(began_s)),
        None => None,
    };
    match told {
        Some(at) => oldest.is_none_or(|oldest| at + SKEW_S >= oldest).then_some(at),
        // `auth_time` is owed when `max_age` is asked for (OpenID Connect Core §2).
        None => wish.max_age.is_none().then_some(now_s),
    }
}

fn session_cookie(response: &Response, name: &str) -> Option<String> {
    let mut as_request = http::HeaderMap::new();
    for value in response.headers().get_all(http::header::SET_COOKIE) {
        let pair = value.to_str().ok()?.split(';').next()?.to_owned();
        as_request.append(http::header::COOKIE, http::HeaderValue::try_from(pair).ok()?);
    }
    cookie(&as_request, name)
}
