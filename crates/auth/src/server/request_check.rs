//! The last check of an authorization request: only a request that passes it now is offered for consent or gets a code. Tokens are
//! checked in `resource`.
//!
//! Pages and forms make the same check, so that nothing which ended between the two goes through.

use axum::response::Response;
use http::StatusCode;

use super::services::Services;
use crate::{
    ceiling::GrantedScopes,
    clients::OAuthClient,
    consents::ConsentRequest,
    net::ClientAddress,
    records::{AuthorizationRequest, Session},
    web::responses::{bad_request, error_page, store_page},
};

/// An authorization request whose every condition held a moment ago. Made by [`verify`] alone; codes are issued for nothing else.
pub(crate) struct VerifiedRequest {
    pub(super) request: AuthorizationRequest,
    pub(super) client: OAuthClient,
    /// Scopes that can be granted.
    pub(super) scopes: GrantedScopes,
    /// Time at which the check began: a revocation from then on ends the grant.
    pub(super) at_ms: u64,
    _by_verify: (),
}

impl VerifiedRequest {
    /// Returns the same request for those of its scopes that are among `names`.
    pub(super) fn only(self, names: &[String]) -> Self {
        Self { scopes: self.scopes.only(names), ..self }
    }

    pub(super) fn consent(&self) -> ConsentRequest<'_> {
        ConsentRequest {
            grant: &self.request.grant,
            client: &self.client,
            offered: &self.scopes,
            at_ms: self.at_ms,
        }
    }
}

/// Records who signed in, at `now_ms`, and narrows the requested scopes to those that the user may grant.
pub(super) fn record_login(
    services: &Services,
    request: &mut AuthorizationRequest,
    client: &OAuthClient,
    session: &Session,
    session_id: Option<String>,
    now_ms: u64,
) {
    request.log_in(session, session_id, now_ms);
    let ceiling = services.grants.ceiling(&request.grant.sub, client);
    request.grant.scopes = ceiling.narrow(&request.grant.scopes).record();
}

/// Returns the client of an authorization request, when the redirect URI is still registered. A fetch of its document is counted for `caller`.
///
/// # Errors
/// A page that names the reason.
pub(crate) async fn client_of(
    services: &Services,
    request: &AuthorizationRequest,
    caller: ClientAddress,
) -> Result<OAuthClient, Response> {
    let client = services.clients.find(&request.grant.client, caller).await;
    let client = client.map_err(|error| match error.status {
        StatusCode::UNAUTHORIZED => bad_request("The application is not known any more."),
        _ => error_page(error),
    })?;
    if !client.redirects_to(&request.grant.redirect) || !client.may("authorization_code") {
        return Err(bad_request(
            "The address to go back to is not registered for this application any more.",
        ));
    }
    Ok(client)
}

/// Checks all conditions of a code: the time, the login and its revocation, the client, its redirect URI, the scopes.
///
/// # Errors
/// A page that names the reason. Nothing is sent to the redirect URI, which may be the problem.
pub(super) async fn verify(
    services: &Services,
    id: &str,
    request: AuthorizationRequest,
    caller: ClientAddress,
) -> Result<VerifiedRequest, Response> {
    let at_ms = services.ctx.clock.now_ms();
    if !request.logged_in {
        return Err(bad_request("Sign in first."));
    }
    if at_ms >= request.expires_ms {
        return Err(bad_request("This sign-in is over."));
    }
    let client = client_of(services, &request, caller).await?;
    if !services.grants.is_active(&request.grant).await.map_err(store_page)? {
        services.authorizations.discard(id).await.map_err(store_page)?;
        return Err(bad_request("You were signed out meanwhile. Start again in the application."));
    }
    let scopes = services.grants.ceiling(&request.grant.sub, &client).narrow(&request.grant.scopes);
    Ok(VerifiedRequest { request, client, scopes, at_ms, _by_verify: () })
}
