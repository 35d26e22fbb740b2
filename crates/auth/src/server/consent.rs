//! The consent endpoint: the user's decision.

use std::sync::Arc;

use axum::{body::Body, extract::State, response::Response};
use http::{Request, StatusCode, request::Parts};

use super::{
    flow::{complete, error_redirect, use_up},
    request_check::verify,
    services::Services,
};
use crate::{
    authorizations::SubmittedStep,
    crypto::sha256_hex,
    error_codes::Code,
    web::responses::{bad_request, store_page},
};

/// Takes the form of the consent page.
pub(super) async fn submit(State(services): State<Arc<Services>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    match decide(&services, &parts, body).await {
        Ok(response) | Err(response) => response,
    }
}

/// Checks that the user who decides is signed in with the session `granting`, in which the page was shown, or with one that replaced it: the page of one user
/// is not decided by the next one at the same browser, nor by anybody after a logout.
async fn check_session(
    services: &Services,
    parts: &Parts,
    sub: &str,
    granting: &String,
) -> Result<(), Response> {
    let session = services.sessions.current(&parts.headers).await.map_err(store_page)?;
    match session {
        Some((_, session)) if session.sub != sub => {
            Err(bad_request("Another user has signed in here meanwhile. Start again in the application."))
        }
        Some((id, session)) if sha256_hex(&id) == *granting || session.earlier.contains(granting) => Ok(()),
        _ => Err(bad_request("You have signed out here meanwhile. Start again in the application.")),
    }
}

async fn decide(services: &Services, parts: &Parts, body: Body) -> Result<Response, Response> {
    let ctx = &services.ctx;
    let ip = ctx.caller(parts);
    let SubmittedStep { params, id, stored } =
        services.authorizations.read_step(parts, body, "consent").await?;
    let verified = verify(services, &id, stored.request, ip).await?;
    let grant = &verified.request.grant;
    if let Some(granting) = &grant.session {
        check_session(services, parts, &grant.sub, granting).await?;
    }
    let (sub, client) = (Some(grant.sub.as_str()), Some(grant.client.as_str()));
    let status = StatusCode::SEE_OTHER;
    let is_allowed = params.get("decision") == Some("allow");
    if is_allowed && params.granted_scopes.iter().any(|scope| !verified.scopes.contains(scope)) {
        return Err(bad_request("Something was allowed that was not asked for."));
    }
    // Of several answers to one page, the first counts, and the others leave nothing behind.
    use_up(services, &id).await.map_err(store_page)??;
    if !is_allowed {
        ctx.record_event("consent.denied", sub, client, Some(ip), None);
        let text = "the user said no";
        return Ok(error_redirect(services, &verified.request, Code::AccessDenied, text, status));
    }
    let allowed = verified.scopes.only(&params.granted_scopes);
    services.consents.remember(&verified.consent(), &allowed).await.map_err(store_page)?;
    ctx.record_event("consent.given", sub, client, Some(ip), None);
    complete(services, verified.only(&params.granted_scopes), status).await.map_err(store_page)
}
