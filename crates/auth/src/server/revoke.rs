//! Token revocation (RFC 7009).

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{Request, StatusCode, request::Parts};
use serde_json::json;

use super::services::Services;
use crate::{
    error::{OAuthError, no_store},
    tokens::TokenOrigin,
    web::params::read_form,
};

pub(super) async fn endpoint(State(services): State<Arc<Services>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    revoke(&services, &parts, body).await.unwrap_or_else(IntoResponse::into_response)
}

async fn revoke(services: &Services, parts: &Parts, body: Body) -> Result<Response, OAuthError> {
    let ctx = &services.ctx;
    let ip = ctx.caller(parts);
    ctx.limit_caller("revoke", &[], ip, ctx.config.limits.revoke).await?;
    let params = read_form(parts, body).await?;
    let client = services.clients.authenticate(parts, &params, ip).await?;
    let token = params.require("token", "token is required")?;
    // The token of another client is left alone, and the answer does not tell.
    if let Some(TokenOrigin { family, grant, jti }) = services.tokens.origin(token).await?
        && grant.client == client.id
    {
        services.grants.end_family(&family).await?;
        ctx.record_event("token.revoked", Some(&grant.sub), Some(&client.id), Some(ip), jti.as_deref());
    }
    Ok(no_store(StatusCode::OK, &json!({})))
}
