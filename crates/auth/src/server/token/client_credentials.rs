//! Grants without a user: client credentials (RFC 6749 §4.4), and the anonymous grant of this server.

use axum::response::Response;
use http::request::Parts;

use super::request::GrantType;
use crate::{
    clients::OAuthClient, dpop, error::OAuthError, error_codes::Code, net::ClientAddress, records::Grant,
    scopes::ANONYMOUS, server::services::Services, web::params::Params,
};

pub(super) async fn client_credentials(
    services: &Services,
    client: &OAuthClient,
    params: &Params,
    jkt: Option<String>,
    ip: ClientAddress,
) -> Result<Response, OAuthError> {
    if client.is_public() {
        return Err(OAuthError::new(Code::UnauthorizedClient, "a public client cannot use this grant"));
    }
    let scopes = services.grants.ceiling(&client.id, client).request(params.get("scope"))?;
    let grant = Grant {
        sub: client.id.clone(),
        client: client.id.clone(),
        resources: services.grants.resources(&params.resources)?,
        ..Grant::default()
    };
    services.tokens.issue_without_code(grant, scopes, jkt.as_deref(), ip).await
}

pub(super) async fn anonymous(
    services: &Services,
    parts: &Parts,
    params: &Params,
    ip: ClientAddress,
) -> Result<Response, OAuthError> {
    let jkt = dpop::of_request(&services.ctx, parts, "/oauth/token").await?;
    let scopes = services.grants.anonymous_scopes().ok_or_else(GrantType::unsupported)?;
    let grant = Grant {
        sub: ANONYMOUS.to_owned(),
        client: ANONYMOUS.to_owned(),
        resources: services.grants.resources(&params.resources)?,
        ..Grant::default()
    };
    services.tokens.issue_without_code(grant, scopes, jkt.as_deref(), ip).await
}
