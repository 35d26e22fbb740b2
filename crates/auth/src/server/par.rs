//! The pushed authorization request endpoint (RFC 9126).

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{Request, StatusCode, request::Parts};
use serde_json::json;

use super::{authorize::read_grant, pushed::push, services::Services};
use crate::{
    dpop,
    error::{OAuthError, no_store},
    error_codes::Code,
    tuning::PUSHED_REQUEST_LIFETIME,
    web::params::read_form,
};

/// Parameters of an authorization request, besides `resource`. Nothing else that is pushed, such as client credentials, is stored.
const REQUEST_PARAMETERS: [&str; 16] = [
    "client_id",
    "code_challenge",
    "code_challenge_method",
    "dpop_jkt",
    "id_token_hint",
    "login_hint",
    "max_age",
    "nonce",
    "prompt",
    "redirect_uri",
    "registration",
    "request",
    "response_mode",
    "response_type",
    "scope",
    "state",
];

pub(super) async fn endpoint(State(services): State<Arc<Services>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    match accept(&services, parts, body).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    }
}

async fn accept(services: &Services, parts: Parts, body: Body) -> Result<Response, OAuthError> {
    let ctx = &services.ctx;
    let caller = ctx.caller(&parts);
    ctx.limit_caller("par", &[], caller, ctx.config.limits.authorize).await?;
    let params = read_form(&parts, body).await?;
    let client = services.clients.authenticate(&parts, &params, caller).await?;
    if params.get("request_uri").is_some() {
        return Err(OAuthError::invalid_request("request_uri is not allowed here"));
    }
    let redirect_uri = client
        .redirect_uri_or_log(params.get("redirect_uri"))
        .ok_or_else(|| OAuthError::invalid_request("redirect_uri is not registered"))?;
    let mut params = params.only(&REQUEST_PARAMETERS);
    params.set("client_id", &client.id);
    // A proof binds the code to its key, as `dpop_jkt` does; both must name the same key (RFC 9449 §10.1).
    if let Some(jkt) = dpop::of_request(ctx, &parts, "/oauth/par").await? {
        if params.get("dpop_jkt").is_some_and(|named| named != jkt) {
            return Err(OAuthError::new(Code::InvalidDpopProof, "dpop_jkt names another key than the proof"));
        }
        params.set("dpop_jkt", &jkt);
    }
    params.state()?;
    read_grant(services, &params, &client, &redirect_uri)?;
    let request_uri = push(services, client, &params, caller).await?;
    let body = json!({"request_uri": request_uri, "expires_in": PUSHED_REQUEST_LIFETIME.as_secs()});
    Ok(no_store(StatusCode::CREATED, &body))
}
