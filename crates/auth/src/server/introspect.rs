//! Token introspection (RFC 7662).

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
    error::{OAuthError, no_store},
    web::params::read_form,
};

pub(super) async fn endpoint(State(services): State<Arc<Services>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    introspect(&services, &parts, body).await.unwrap_or_else(IntoResponse::into_response)
}

async fn introspect(services: &Services, parts: &Parts, body: Body) -> Result<Response, OAuthError> {
    let ctx = &services.ctx;
    let caller = ctx.caller(parts);
    ctx.limit_caller("revoke", &[], caller, ctx.config.limits.revoke).await?;
    let params = read_form(parts, body).await?;
    if params.get("client_id").is_none()
        && params.get("client_assertion").is_none()
        && !parts.headers.contains_key(header::AUTHORIZATION)
    {
        return Err(OAuthError::invalid_client());
    }
    let client = services.clients.authenticate(parts, &params, caller).await?;
    if client.is_public() {
        return Err(OAuthError::invalid_client());
    }
    let token = params.require("token", "token is required")?;
    let inactive = || no_store(StatusCode::OK, &json!({"active": false}));
    // Only the resource server that a token is meant for learns anything about it.
    let Some(resource) = client.introspects.as_deref() else { return Ok(inactive()) };
    let Ok(claims) = services.tokens.verify(token, &[resource]).await else { return Ok(inactive()) };
    let Some((_, scopes)) = services.tokens.current(&claims).await? else { return Ok(inactive()) };
    let mut body = Value::Object(claims);
    body["scope"] = json!(scopes.to_text());
    body["active"] = json!(true);
    body["token_type"] = json!(if body.get("cnf").is_some() { "DPoP" } else { "Bearer" });
    Ok(no_store(StatusCode::OK, &body))
}
