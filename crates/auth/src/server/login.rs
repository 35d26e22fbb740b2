//! The login endpoint: the page of the current step, and the password form.

use std::sync::Arc;

use axum::{body::Body, extract::State, response::Response};
use http::{Request, StatusCode, request::Parts};

use super::{
    flow::{Step, advance, failed, locked, signed_in},
    services::Services,
};
use crate::{
    authorizations::{Stored, SubmittedStep},
    records::LoginFailure,
    web::{
        params::Params,
        responses::{bad_request, error_page, store_page},
    },
};

/// Shows the current step of an authorization request, after a reload or a redirect.
pub(super) async fn show(State(services): State<Arc<Services>>, request: Request<Body>) -> Response {
    let (parts, _) = request.into_parts();
    let params = match Params::of_query(&parts) {
        Ok(params) => params,
        Err(error) => return error_page(error),
    };
    let id = params.get("pending").unwrap_or_default();
    match services.authorizations.load(&parts.headers, id).await {
        Ok(Stored { request, browser, .. }) => {
            let caller = services.ctx.caller(&parts);
            let step = Step { id, browser: &browser, caller, silent: false, status: StatusCode::FOUND };
            advance(&services, step, request).await
        }
        Err(response) => response,
    }
}

/// Takes the form with the user's name and password.
pub(super) async fn submit(State(services): State<Arc<Services>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    match log_in(&services, &parts, body).await {
        Ok(response) | Err(response) => response,
    }
}

async fn log_in(services: &Services, parts: &Parts, body: Body) -> Result<Response, Response> {
    let ctx = &services.ctx;
    let ip = ctx.caller(parts);
    ctx.limit_caller("login", &[], ip, ctx.config.limits.login).await.map_err(error_page)?;
    let SubmittedStep { params, id, stored } =
        services.authorizations.read_step(parts, body, "login").await?;
    if stored.request.logged_in || services.provider.is_some() {
        return Err(bad_request("This step is not open."));
    }
    let client = stored.request.grant.client.clone();
    let name = params.get("username").unwrap_or_default();
    let password = params.get("password").unwrap_or_default();
    let session = match services.users.check_password(name, password, ip).await {
        Ok(session) => session,
        Err(error) => {
            let failure = locked(services, error).map_err(error_page)?;
            return failed(services, &id, &stored, failure).await.map_err(store_page);
        }
    };
    let Some(session) = session else {
        let actor: String = name.chars().take(64).collect();
        ctx.record_event("login.failed", Some(&actor), Some(&client), Some(ip), None);
        return failed(services, &id, &stored, LoginFailure::Password).await.map_err(store_page);
    };
    ctx.record_event("login.ok", Some(&session.sub), Some(&client), Some(ip), None);
    signed_in(services, &parts.headers, &id, stored, &session).await.map_err(store_page)
}
