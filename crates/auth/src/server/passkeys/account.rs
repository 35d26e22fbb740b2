//! The page where a user adds, renames and removes passkeys. It needs a login a few minutes old at most.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, Request, StatusCode, request::Parts};

use super::{
    ceremony::{Ceremony, seal},
    prompt::ACCOUNT_PATH,
    registration::{off, passkey_name, register},
};
use crate::{
    grants::Revocation,
    pages::{self, AccountPage, PasskeyPrompt},
    records::{AuthorizationRequest, Session},
    server::{services::Services, views::login_page},
    store::{PasskeyStore as _, StoreError},
    tuning::RECENT_LOGIN_S,
    users::User,
    web::{
        params::{Params, read_form},
        responses::{bad_request, error_page, page, redirect, store_page},
    },
};

/// A session whose user signed in recently.
struct RecentLogin<'a> {
    session_id: String,
    session: Session,
    user: &'a User,
}

pub(in crate::server) async fn show(
    State(services): State<Arc<Services>>,
    request: Request<Body>,
) -> Response {
    let (parts, _) = request.into_parts();
    match show_page(&services, &parts).await {
        Ok(response) | Err(response) => response,
    }
}

pub(in crate::server) async fn change(
    State(services): State<Arc<Services>>,
    request: Request<Body>,
) -> Response {
    let (parts, body) = request.into_parts();
    match apply(&services, &parts, body).await {
        Ok(response) | Err(response) => response,
    }
}

/// Returns the recent login of a browser, if there is one.
async fn recent_login<'a>(
    services: &'a Services,
    headers: &HeaderMap,
) -> Result<Option<RecentLogin<'a>>, StoreError> {
    let Some((session_id, session)) = services.sessions.current(headers).await? else { return Ok(None) };
    if services.ctx.clock.now_s().saturating_sub(session.auth_s) > RECENT_LOGIN_S {
        return Ok(None);
    }
    let user = services.users.by_subject(&session.sub);
    Ok(user.map(|user| RecentLogin { session_id, session, user }))
}

async fn show_page(services: &Services, parts: &Parts) -> Result<Response, Response> {
    if services.relying_party.is_none() {
        return Err(off());
    }
    let ctx = &services.ctx;
    ctx.limit_caller("account", &[], ctx.caller(parts), ctx.config.limits.authorize)
        .await
        .map_err(error_page)?;
    match recent_login(services, &parts.headers).await.map_err(store_page)? {
        Some(login) => account_page(services, &login, None).await.map_err(store_page),
        None => sign_in(services, &parts.headers).await.map_err(store_page),
    }
}

async fn account_page(
    services: &Services,
    login: &RecentLogin<'_>,
    error: Option<&'static str>,
) -> Result<Response, StoreError> {
    let ctx = &services.ctx;
    let RecentLogin { session_id, session, user } = login;
    let set = ctx.store.passkeys(&session.sub).await?;
    let display = user.config.name.as_deref().unwrap_or(&session.name);
    let limit = ctx.config.local.passkeys.most_per_user;
    let is_full = set.as_ref().is_some_and(|set| set.passkeys.len() >= limit);
    let started = match &services.relying_party {
        Some(party) if !is_full => party.start_registration(&session.name, display, set.as_ref()),
        _ => None,
    };
    let add = started.map(|started| PasskeyPrompt {
        action: ctx.url(ACCOUNT_PATH),
        ceremony: seal(ctx, &started, &ceremony(login)),
        options: started.options,
    });
    let passkeys = set.map(|set| set.passkeys).unwrap_or_default();
    let mut page = pages::account(&AccountPage {
        server: &ctx.deployment.name,
        user: &pages::plain(&session.name, 80),
        action: &ctx.url(ACCOUNT_PATH),
        csrf: &services.authorizations.csrf_token(session_id, "account", ""),
        passkeys: &passkeys,
        add: add.as_ref(),
        sign_out: &ctx.url("/oauth/logout"),
        error,
    });
    if error.is_some() {
        page.status = StatusCode::BAD_REQUEST;
    }
    Ok(page.into_response())
}

fn ceremony<'a>(login: &'a RecentLogin<'_>) -> Ceremony<'a> {
    Ceremony { step: "add", browser: &login.session_id, subject: &login.session.sub }
}

async fn apply(services: &Services, parts: &Parts, body: Body) -> Result<Response, Response> {
    if services.relying_party.is_none() {
        return Err(off());
    }
    let Services { ctx, authorizations, .. } = services;
    let ip = ctx.caller(parts);
    ctx.limit_caller("account", &[], ip, ctx.config.limits.authorize).await.map_err(error_page)?;
    authorizations.check_origin(&parts.headers)?;
    let params = read_form(parts, body).await.map_err(error_page)?;
    let Some(login) = recent_login(services, &parts.headers).await.map_err(store_page)? else {
        let text = "You signed in too long ago for this. Open your account page again.";
        return Err(page(StatusCode::FORBIDDEN, text));
    };
    authorizations.check_csrf(&params, &authorizations.csrf_token(&login.session_id, "account", ""))?;
    let sub = login.session.sub.as_str();
    let (event, error) = match params.get("action") {
        Some("add") => {
            let added = register(services, &params, &ceremony(&login), sub, None).await;
            ("passkey.added", added.map_err(store_page)?)
        }
        Some("rename") => {
            let id = params.get("id").unwrap_or_default();
            let renamed = ctx.store.rename_passkey(sub, id, &passkey_name(&params)).await;
            ("passkey.renamed", missing(renamed).map_err(store_page)?)
        }
        Some("remove") => {
            let removed = ctx.store.remove_passkey(sub, params.get("id").unwrap_or_default()).await;
            ("passkey.removed", missing(removed).map_err(store_page)?)
        }
        _ => return Err(bad_request("The form does not say what to do.")),
    };
    if error.is_some() {
        return account_page(services, &login, error).await.map_err(store_page);
    }
    ctx.record_event(event, Some(sub), None, Some(ip), None);
    if ends_everything(&params) {
        services.grants.revoke(Revocation::User(sub)).await.map_err(store_page)?;
        ctx.record_event("passkey.ended_everything", Some(sub), None, Some(ip), None);
    }
    Ok(redirect(StatusCode::SEE_OTHER, &ctx.url(ACCOUNT_PATH)))
}

/// Returns the error of a change to a passkey that was not there.
fn missing(changed: Result<bool, StoreError>) -> Result<Option<&'static str>, StoreError> {
    changed.map(|changed| (!changed).then_some("This passkey is not there any more."))
}

/// Returns whether the user asked to be signed out everywhere with the removal of a passkey.
fn ends_everything(params: &Params) -> bool {
    params.get("action") == Some("remove") && params.get("everywhere").is_some()
}

/// Signs the user in, which leads back to the account page.
async fn sign_in(services: &Services, headers: &HeaderMap) -> Result<Response, StoreError> {
    let Services { ctx, authorizations, .. } = services;
    let browser = authorizations.browser_cookie(headers);
    let now_ms = ctx.clock.now_ms();
    let request = AuthorizationRequest::of_page("Your account page", ACCOUNT_PATH, &browser.value, now_ms);
    let id = ctx.new_secret();
    authorizations.save(&id, None, &request).await?;
    let mut response = login_page(services, &id, &request, &browser.value, None);
    authorizations.set_browser_cookie(&browser, &mut response);
    Ok(response)
}
