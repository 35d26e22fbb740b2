//! The redirect endpoint at the identity provider: the browser comes back from the login there.

use std::sync::Arc;

use axum::{body::Body, extract::State, response::Response};
use gatewright_core::Groups;
use http::{HeaderMap, HeaderValue, Request, StatusCode, header, request::Parts};
use serde_json::Value;

use super::{
    flow::{error_redirect, signed_in, use_up},
    request_check::client_of,
    services::Services,
};
use crate::{
    crypto::{same, sha256_hex},
    error_codes::Code,
    keys::{Claims, SKEW_S},
    pages,
    provider::{LoginError, save_tokens, unavailable_page},
    records::{AuthorizationRequest, Session, UserClaims},
    store::Key,
    tuning::AUTHORIZATION_LIFETIME,
    web::{
        params::{Params, cookie},
        responses::{bad_request, error_page, store_page},
    },
};

pub(super) async fn endpoint(State(services): State<Arc<Services>>, request: Request<Body>) -> Response {
    let (parts, _) = request.into_parts();
    match come_back(&services, &parts).await {
        Ok(response) | Err(response) => response,
    }
}

async fn come_back(services: &Services, parts: &Parts) -> Result<Response, Response> {
    let Services { ctx, authorizations, .. } = services;
    let provider =
        services.provider.as_ref().ok_or_else(|| bad_request("No sign-in service is configured."))?;
    let params = Params::of_query(parts).map_err(error_page)?;
    let unmatched = || bad_request("The answer of the sign-in service cannot be matched.");
    let state = params.get("state").ok_or_else(unmatched)?;
    // Single use: taken before anything else is looked at.
    let id = ctx.store.take(&Key::secret("upstream", state)).await.map_err(store_page)?;
    let id = id.and_then(|id| String::from_utf8(id).ok()).ok_or_else(unmatched)?;
    let mut stored = authorizations.load(&parts.headers, &id).await?;
    let login = stored
        .request
        .upstream
        .take()
        .filter(|login| same(&login.state, state) && login.issuer == provider.issuer())
        .ok_or_else(unmatched)?;
    let metadata = provider.metadata().await.map_err(|_| unavailable_page())?;
    let iss = params.get("iss");
    let is_missing = metadata.authorization_response_iss_parameter_supported && iss.is_none();
    if is_missing || iss.is_some_and(|iss| iss != provider.issuer()) {
        return Err(bad_request("The answer is from another sign-in service."));
    }
    // The application may have been removed while the user was away.
    if stored.request.return_path.is_none() {
        client_of(services, &stored.request, ctx.caller(parts)).await?;
    }
    if params.get("error").is_some() {
        use_up(services, &id).await.map_err(store_page)??;
        let text = "the sign-in service said no";
        return Ok(error_redirect(services, &stored.request, Code::AccessDenied, text, StatusCode::FOUND));
    }
    let code =
        params.get("code").ok_or_else(|| bad_request("The answer of the sign-in service has no code."))?;
    let (ip, client) = (ctx.caller(parts), stored.request.grant.client.clone());
    let (claims, tokens) = provider.exchange(code, &login).await.map_err(|error| {
        ctx.record_event("login.failed", None, Some(&client), Some(ip), None);
        failure_page(error)
    })?;
    let now_ms = ctx.clock.now_ms();
    let Some(auth_s) = login_time(&claims, &stored.request, now_ms / 1000) else {
        authorizations.discard(&id).await.map_err(store_page)?;
        let text = "the sign-in service did not ask the user to sign in again";
        return Ok(error_redirect(services, &stored.request, Code::LoginRequired, text, StatusCode::FOUND));
    };
    let sub = provider.subject(text(&claims, "sub"));
    let groups = ctx.config.provider.groups(&claims);
    let session = new_session(sub, &claims, groups, auth_s, now_ms);
    ctx.record_event("login.ok", Some(&session.sub), Some(&client), Some(ip), None);
    let response = signed_in(services, &parts.headers, &id, stored, &session).await.map_err(store_page)?;
    if let Some(session_id) = session_cookie(&response, &ctx.cookie_name("session")) {
        save_tokens(ctx, &sha256_hex(&session_id), &tokens).await.map_err(store_page)?;
    }
    Ok(response)
}

fn failure_page(error: LoginError) -> Response {
    match error {
        LoginError::Unavailable(why) => {
            tracing::error!(why, "the identity provider cannot be used");
            unavailable_page()
        }
        LoginError::Refused(why) => {
            tracing::warn!(why, "a login at the identity provider failed");
            bad_request("The sign-in service did not confirm who you are.")
        }
    }
}

fn text<'a>(claims: &'a Claims, name: &str) -> &'a str {
    claims.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn new_session(sub: String, claims: &Claims, groups: Groups, auth_s: u64, now_ms: u64) -> Session {
    let claim = |name: &str| Some(pages::plain(text(claims, name), 254)).filter(|text| !text.is_empty());
    Session {
        name: pages::plain(text(claims, "name"), 80),
        sub,
        auth_s,
        started_ms: now_ms,
        seen_ms: now_ms,
        credential: None,
        person: UserClaims { name: claim("name"), email: claim("email"), groups },
        earlier: Vec::new(),
    }
}

/// Returns the time of the login at the provider; `None` when that is not as recent as the client requires, or the provider does not say
/// although the client asked.
fn login_time(claims: &Claims, request: &AuthorizationRequest, now_s: u64) -> Option<u64> {
    let auth_time = claims.get("auth_time").and_then(Value::as_u64).map(|at| at.min(now_s));
    let began_s = request.expires_ms / 1000 - AUTHORIZATION_LIFETIME.as_secs();
    let max_age = request.login.max_age;
    let oldest = match max_age {
        _ if request.login.force => Some(began_s),
        Some(seconds) => Some(now_s.saturating_sub(seconds).min(began_s)),
        None => None,
    };
    match auth_time {
        Some(at) => oldest.is_none_or(|oldest| at + SKEW_S >= oldest).then_some(at),
        // `auth_time` is required with `max_age` (OpenID Connect Core §2).
        None => max_age.is_none().then_some(now_s),
    }
}

/// Returns the session that a response sets.
fn session_cookie(response: &Response, name: &str) -> Option<String> {
    let mut as_request = HeaderMap::new();
    for value in response.headers().get_all(header::SET_COOKIE) {
        let pair = value.to_str().ok()?.split(';').next()?.to_owned();
        as_request.append(header::COOKIE, HeaderValue::try_from(pair).ok()?);
    }
    cookie(&as_request, name)
}
