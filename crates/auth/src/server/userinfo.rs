//! Claims about the user of an access token (OpenID Connect Core §5.3).

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{Request, StatusCode, header, request::Parts};
use serde_json::{Value, json};

use super::services::Services;
use crate::{
    ceiling::GrantedScopes,
    dpop,
    error::{OAuthError, no_store},
    error_codes::Code,
    records::Grant,
    web::params::single_header,
};

pub(super) async fn endpoint(State(services): State<Arc<Services>>, request: Request<Body>) -> Response {
    let (parts, _) = request.into_parts();
    match authorize(&services, &parts).await {
        Ok((grant, scopes)) => no_store(StatusCode::OK, &claims(&services, &grant, &scopes)),
        Err(error) => error.into_response(),
    }
}

fn invalid_token() -> OAuthError {
    OAuthError::new(Code::InvalidToken, "the access token is not usable here")
        .with_challenge("Bearer error=\"invalid_token\"")
}

fn insufficient_scope(text: &'static str) -> OAuthError {
    let challenge =
        format!("Bearer error=\"insufficient_scope\", scope=\"openid\", error_description=\"{text}\"");
    OAuthError::new(Code::InsufficientScope, text).with_challenge(challenge)
}

/// Returns the grant of the request's access token and its scopes, which include `openid`.
async fn authorize(services: &Services, parts: &Parts) -> Result<(Grant, GrantedScopes), OAuthError> {
    let ctx = &services.ctx;
    let authorization = single_header(&parts.headers, header::AUTHORIZATION);
    let (scheme, token) = authorization.and_then(|value| value.split_once(' ')).ok_or_else(invalid_token)?;
    let is_dpop = scheme.eq_ignore_ascii_case("dpop");
    if !is_dpop && !scheme.eq_ignore_ascii_case("bearer") {
        return Err(invalid_token());
    }
    let claims = services.tokens.verify_any(token).await;
    let claims = claims.map_err(|_| invalid_token())?;
    // A bound token needs its proof, and only a bound one has any (RFC 9449 §7).
    match (claims.get("cnf").map(|cnf| cnf.get("jkt").and_then(Value::as_str)), is_dpop) {
        (None, false) => {}
        (Some(Some(jkt)), true) => {
            let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default();
            let url = ctx.url("/oauth/userinfo");
            let proved = dpop::of_resource(ctx, parts, &url, (token, subject)).await?;
            if proved.as_deref() != Some(jkt) {
                return Err(invalid_token());
            }
        }
        _ => return Err(invalid_token()),
    }
    let (grant, scopes) = services.tokens.current(&claims).await?.ok_or_else(invalid_token)?;
    if !grant.is_of_user() {
        return Err(insufficient_scope(
            "userinfo is about a user, and the token is of none; a token with the scope openid is",
        ));
    }
    if !scopes.contains("openid") {
        return Err(insufficient_scope("userinfo needs a scope that the token does not grant: openid"));
    }
    Ok((grant, scopes))
}

fn claims(services: &Services, grant: &Grant, scopes: &GrantedScopes) -> Value {
    let (profile, email) = (scopes.contains("profile"), scopes.contains("email"));
    let mut claims = json!({"sub": grant.sub});
    if let Some(user) = services.users.by_subject(&grant.sub).map(|user| &user.config) {
        if profile {
            claims["preferred_username"] = json!(user.username);
            claims["name"] = json!(user.name.as_ref().unwrap_or(&user.username));
        }
        if let (true, Some(address)) = (email, &user.email) {
            claims["email"] = json!(address);
        }
    } else if let (true, Some(name)) = (profile, grant.sub.strip_prefix(crate::users::USER_PREFIX)) {
        // A user of the demo login.
        claims["preferred_username"] = json!(name);
        claims["name"] = json!(name);
    }
    if let (true, Some(name)) = (profile, &grant.person.name) {
        claims["name"] = json!(name);
    }
    if let (true, Some(address)) = (email, &grant.person.email) {
        claims["email"] = json!(address);
    }
    claims
}
