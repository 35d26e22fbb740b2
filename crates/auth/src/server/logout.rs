//! The logout endpoint (OpenID Connect RP-Initiated Logout 1.0): a client asks, and the user confirms on our page.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{Request, StatusCode, header, request::Parts};

use super::services::Services;
use crate::{
    pages::{self, Page},
    web::{
        params::{Params, read_form},
        responses::{bad_request, error_page, form_target, redirect, store_page, with_query},
    },
};

/// Parameters of a client's request, which the form repeats.
const LOGOUT_PARAMETERS: [&str; 4] = ["client_id", "post_logout_redirect_uri", "state", "id_token_hint"];

pub(super) async fn show(State(services): State<Arc<Services>>, request: Request<Body>) -> Response {
    let (parts, _) = request.into_parts();
    match ask(&services, &parts).await {
        Ok(response) | Err(response) => response,
    }
}

pub(super) async fn submit(State(services): State<Arc<Services>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    match sign_out(&services, &parts, body).await {
        Ok(response) | Err(response) => response,
    }
}

/// Returns the parameters that a request has.
fn logout_parameters(params: &Params) -> Vec<(&str, &str)> {
    LOGOUT_PARAMETERS.iter().filter_map(|name| Some((*name, params.get(name)?))).collect()
}

/// Counts a request.
async fn admit(services: &Services, parts: &Parts) -> Result<(), Response> {
    let ctx = &services.ctx;
    let limit = ctx.config.limits.authorize;
    ctx.limit_caller("logout", &[], ctx.caller(parts), limit).await.map_err(error_page)
}

/// Asks the user whether to sign out.
async fn ask(services: &Services, parts: &Parts) -> Result<Response, Response> {
    admit(services, parts).await?;
    let params = Params::of_query(parts).map_err(error_page)?;
    requesting_client(services, &params).await?;
    let Some((session, _)) = services.sessions.current(&parts.headers).await.map_err(store_page)? else {
        return Ok(signed_out_already(services, &params).await);
    };
    // Browsers apply the policy of a page to the redirect that answers its form, too.
    let form_target = return_url(services, &params).await.and_then(|target| form_target(&target));
    let csrf = services.authorizations.csrf_token(&session, "logout", "");
    let page = pages::sign_out(
        &csrf,
        &services.ctx.url("/oauth/logout"),
        &logout_parameters(&params),
        services.account_url().as_deref(),
    );
    Ok(Page { form_target, ..page }.into_response())
}

fn signed_out_page(services: &Services) -> Response {
    Page { account: services.account_url(), ..pages::signed_out() }.into_response()
}

async fn sign_out(services: &Services, parts: &Parts, body: Body) -> Result<Response, Response> {
    let Services { ctx, sessions, authorizations, .. } = services;
    admit(services, parts).await?;
    let params = read_form(parts, body).await.map_err(error_page)?;
    if params.get("csrf").is_none() {
        // A client's own form comes without our cookie; the address it is sent on to gets the cookie.
        let pairs = logout_parameters(&params);
        let target = ctx.url("/oauth/logout");
        let target = if pairs.is_empty() { target } else { with_query(&target, &pairs) };
        return Ok(redirect(StatusCode::SEE_OTHER, &target));
    }
    authorizations.check_origin(&parts.headers)?;
    requesting_client(services, &params).await?;
    let Some((id, session)) = sessions.current(&parts.headers).await.map_err(store_page)? else {
        return Ok(signed_out_already(services, &params).await);
    };
    authorizations.check_csrf(&params, &authorizations.csrf_token(&id, "logout", ""))?;
    let removed_cookie = sessions.end(&id).await.map_err(store_page)?;
    ctx.record_event("logout", Some(&session.sub), None, Some(ctx.caller(parts)), None);
    let mut response = match return_url(services, &params).await {
        Some(target) => redirect(StatusCode::SEE_OTHER, &target),
        None => signed_out_page(services),
    };
    response.headers_mut().append(header::SET_COOKIE, removed_cookie);
    Ok(response)
}

/// Returns the identifier of the client that asks: its `client_id`, or the audience of its `id_token_hint`. Both must name the same one
/// (§2). An ID token that cannot be verified names none.
async fn requesting_client(services: &Services, params: &Params) -> Result<Option<String>, Response> {
    params.state().map_err(error_page)?;
    let named = params.get("client_id").map(str::to_owned);
    let Some(hint) = params.get("id_token_hint") else { return Ok(named) };
    match (services.tokens.id_token_hint(hint).await.ok(), named) {
        (Some(hint), Some(named)) if hint.client != named => {
            Err(bad_request("The request names another application than the ID token it shows."))
        }
        (Some(hint), _) => Ok(Some(hint.client)),
        (None, _) => Ok(None),
    }
}

/// Returns the address to go to after the logout, when the client registered it to the letter. A client document is not fetched for it.
async fn return_url(services: &Services, params: &Params) -> Option<String> {
    let id = requesting_client(services, params).await.ok()??;
    let target = params.get("post_logout_redirect_uri")?;
    let client = services.clients.find_known(&id).await.ok()??;
    let is_registered = client.post_logout_redirect_uris.iter().any(|uri| uri == target);
    let state: Vec<_> = params.get("state").map(|state| ("state", state)).into_iter().collect();
    is_registered.then(|| if state.is_empty() { target.to_owned() } else { with_query(target, &state) })
}

/// Answers where nobody is signed in: a request with a valid ID token goes on at once.
async fn signed_out_already(services: &Services, params: &Params) -> Response {
    let target = match params.get("id_token_hint") {
        Some(_) => return_url(services, params).await,
        None => None,
    };
    match target {
        Some(target) => redirect(StatusCode::SEE_OTHER, &target),
        None => signed_out_page(services),
    }
}
