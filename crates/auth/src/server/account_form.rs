//! Requests to the account's pages: each is counted, and each form passes every check in one place.

use axum::{body::Body, response::Response};
use http::{StatusCode, request::Parts};

use super::services::Services;
use crate::{
    net::ClientAddress,
    records::Session,
    web::{
        params::{Params, read_form},
        responses::{error_page, page, store_page},
    },
};

/// A form of one of the account's pages, sent by the user who is signed in from the page that this server showed them.
pub(crate) struct AccountForm {
    /// Id of the user's session.
    pub(crate) session_id: String,
    pub(crate) session: Session,
    pub(crate) params: Params,
    pub(crate) ip: ClientAddress,
}

impl AccountForm {
    /// Reads a form whose CSRF token was made for `purpose`.
    ///
    /// # Errors
    /// The page that says why it is refused: too many requests, another site's form, nobody signed in, or a token of another page.
    pub(crate) async fn read(
        services: &Services,
        purpose: &str,
        parts: &Parts,
        body: Body,
    ) -> Result<Self, Response> {
        let ip = count_visit(services, parts).await?;
        let authorizations = &services.authorizations;
        authorizations.check_origin(&parts.headers)?;
        let params = read_form(parts, body).await.map_err(error_page)?;
        let current = services.sessions.current(&parts.headers).await.map_err(store_page)?;
        let Some((session_id, session)) = current else {
            let text = "You are not signed in any more. Open the page again.";
            return Err(page(StatusCode::FORBIDDEN, text));
        };
        authorizations.check_csrf(&params, &authorizations.csrf_token(&session_id, purpose, ""))?;
        Ok(Self { session_id, session, params, ip })
    }
}

/// Counts a request to one of the account's pages.
///
/// # Errors
/// The page for callers that have sent too many.
pub(crate) async fn count_visit(services: &Services, parts: &Parts) -> Result<ClientAddress, Response> {
    let (ctx, ip) = (&services.ctx, services.ctx.caller(parts));
    ctx.limit_caller("account", &[], ip, ctx.config.limits.authorize).await.map_err(error_page)?;
    Ok(ip)
}
