//! Dispatch by grant type, after the client is authenticated.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{Request, request::Parts};

use super::{
    authorization_code::{self, Redemption},
    client_credentials::{anonymous, client_credentials},
    refresh_token::refresh,
    request::{CodeRequest, GrantType},
};
use crate::{
    clients::OAuthClient,
    context::Context,
    dpop,
    error::OAuthError,
    error_codes::Code,
    server::services::Services,
    web::params::{Params, read_form},
};

pub(in crate::server) async fn endpoint(
    State(services): State<Arc<Services>>,
    request: Request<Body>,
) -> Response {
    let (parts, body) = request.into_parts();
    match token(&services, &parts, body).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    }
}

async fn token(services: &Services, parts: &Parts, body: Body) -> Result<Response, OAuthError> {
    let ctx = &services.ctx;
    let ip = ctx.caller(parts);
    let limit = ctx.config.limits.token;
    let has_query = parts.uri.query().is_some_and(|query| !query.is_empty());
    let params = if has_query { None } else { Some(read_form(parts, body).await) };
    if let Some(Ok(params)) = &params
        && let Some((client, request)) = configured_client_with_code(services, parts, params)
    {
        // Only the store is left to ask: requests are counted in the same step that redeems the code.
        let counts: Vec<_> = Context::caller_counters("token", &[], ip, limit)
            .chain(Context::caller_counters("token-client", &[&client.id], ip, limit))
            .collect();
        let redemption = Redemption { client, params, request, jkt: None, counts: &counts, ip };
        return authorization_code::redeem(services, redemption).await;
    }
    ctx.limit_caller("token", &[], ip, limit).await?;
    let Some(params) = params else {
        return Err(OAuthError::invalid_request("parameters belong in the body"));
    };
    let params = params?;
    let grant_type = GrantType::parse(&params)?;
    if grant_type == GrantType::Anonymous {
        return anonymous(services, parts, &params, ip).await;
    }
    let client = services.clients.authenticate(parts, &params, ip).await?;
    ctx.limit_caller("token-client", &[&client.id], ip, limit).await?;
    if !client.may(grant_type.as_str()) {
        return Err(OAuthError::new(Code::UnauthorizedClient, "the client may not use this grant"));
    }
    let jkt = dpop::of_request(ctx, parts, "/oauth/token").await?;
    if client.dpop_bound && jkt.is_none() {
        let text = "the client is registered with dpop_bound_access_tokens: send a DPoP proof";
        return Err(OAuthError::new(Code::InvalidDpopProof, text));
    }
    let issued = match grant_type {
        GrantType::AuthorizationCode => {
            let request = CodeRequest::parse(&params)?;
            let redemption = Redemption { client: &client, params: &params, request, jkt, counts: &[], ip };
            authorization_code::redeem(services, redemption).await
        }
        GrantType::RefreshToken => refresh(services, &client, &params, jkt, ip).await,
        GrantType::ClientCredentials => client_credentials(services, &client, &params, jkt, ip).await,
        GrantType::Anonymous => Err(GrantType::unsupported()),
    }?;
    services.clients.mark_used(&client).await;
    Ok(issued)
}

/// Returns the client and the code of a request that can be checked without the store up to here: the client is configured and
/// authenticated, may use codes, and sends no proof of possession. Any other request takes the longer way, also to its error.
fn configured_client_with_code<'a>(
    services: &'a Services,
    parts: &Parts,
    params: &'a Params,
) -> Option<(&'a OAuthClient, CodeRequest<'a>)> {
    if params.get("grant_type") != Some("authorization_code") || parts.headers.contains_key("dpop") {
        return None;
    }
    let client = services.clients.authenticate_configured(parts, params)?;
    client.may("authorization_code").then_some(())?;
    Some((client, CodeRequest::parse(params).ok()?))
}
