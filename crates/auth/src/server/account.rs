//! The account page: what the user allowed, where they are signed in, and their passkeys.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{Request, StatusCode, request::Parts};

use super::{
    account_form::{AccountForm, count_visit},
    flow::begin,
    passkeys::{changes::RecentLogin, registration::off},
    services::{ACCOUNT_PATH, APPROVALS_PATH, QUESTIONS_PATH, Services},
};
use crate::{
    accounts::{AccountApplication, AccountSession, ListedSession},
    crypto::sha256_hex,
    grants::Revocation,
    net::ClientAddress,
    pages::{self, AccountPage, PasskeyChange, PasskeySection},
    records::{AuthorizationRequest, Grant, Session},
    store::{PasskeyStore as _, StoreError},
    web::{
        params::Params,
        responses::{bad_request, error_page, page, redirect, store_page, with_query},
    },
};

/// Purpose of the page's CSRF tokens.
const PURPOSE: &str = "account";
/// Parameter of a visit that begins with a login, unless the last one is recent.
const AGAIN: &str = "again";

pub(super) async fn show(State(services): State<Arc<Services>>, request: Request<Body>) -> Response {
    let (parts, _) = request.into_parts();
    match show_page(&services, &parts).await {
        Ok(response) | Err(response) => response,
    }
}

pub(super) async fn change(State(services): State<Arc<Services>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    match apply(&services, &parts, body).await {
        Ok(response) | Err(response) => response,
    }
}

/// Refuses a request where accounts have no page.
fn check_enabled(services: &Services) -> Result<(), Response> {
    if services.account_url().is_none() {
        let text = "Accounts have no page on this server: it needs `auth.sessionMode: stateful`.";
        return Err(page(StatusCode::NOT_FOUND, text));
    }
    Ok(())
}

async fn show_page(services: &Services, parts: &Parts) -> Result<Response, Response> {
    check_enabled(services)?;
    count_visit(services, parts).await?;
    let params = Params::of_query(parts).map_err(error_page)?;
    let current = services.sessions.current(&parts.headers).await.map_err(store_page)?;
    let wants_login = |id: &str, session: &Session| {
        params.get(AGAIN).is_some() && RecentLogin::of(services, id, session).is_none()
    };
    match current {
        Some((id, session)) if !wants_login(&id, &session) => {
            account_page(services, &id, &session, None).await.map_err(store_page)
        }
        _ => sign_in(services, parts).await,
    }
}

async fn account_page(
    services: &Services,
    session_id: &str,
    session: &Session,
    error: Option<&'static str>,
) -> Result<Response, StoreError> {
    let (ctx, sub) = (&services.ctx, session.sub.as_str());
    let account = services.accounts.of(sub).await?;
    let approvals = services.waiting_approvals(sub).await;
    let approvals_url = ctx.url(APPROVALS_PATH);
    let (plans, questions_url) = (services.waiting_plans(sub).await, ctx.url(QUESTIONS_PATH));
    let connections = match services.connections() {
        Some(connections) => connections.of(sub).await?,
        None => None,
    };
    let set = ctx.store.passkeys(sub).await?;
    let again = with_query(&ctx.url(ACCOUNT_PATH), &[(AGAIN, "yes")]);
    let login = RecentLogin::of(services, session_id, session);
    let prompt = login.as_ref().and_then(|login| login.prompt(services, set.as_ref()));
    let offers_passkeys = services.relying_party.is_some();
    let passkeys = offers_passkeys.then(|| PasskeySection {
        passkeys: set.as_ref().map(|set| set.passkeys.as_slice()).unwrap_or_default(),
        change: match login {
            Some(_) => PasskeyChange::Now(prompt.as_ref()),
            None => PasskeyChange::AfterLogin(&again),
        },
    });
    let mut page = pages::account(&AccountPage {
        server: &ctx.deployment.name,
        user: &pages::plain(&session.name, 80),
        action: &ctx.url(ACCOUNT_PATH),
        csrf: &services.authorizations.csrf_token(session_id, PURPOSE, ""),
        approvals: approvals.as_deref().map(|waiting| (waiting, approvals_url.as_str())),
        questions: plans.map(|waiting| (waiting, questions_url.as_str())),
        applications: &applications(services, sub, account.applications).await?,
        sessions: &sessions(services, session_id, account.sessions).await?,
        passkeys,
        connections: connections.as_deref(),
        sign_out: &ctx.url("/oauth/logout"),
        error,
    });
    if error.is_some() {
        page.status = StatusCode::BAD_REQUEST;
    }
    Ok(page.into_response())
}

/// Returns the applications that may still act for a user, those that were allowed last first.
async fn applications(
    services: &Services,
    sub: &str,
    all: Vec<AccountApplication>,
) -> Result<Vec<AccountApplication>, StoreError> {
    let mut alive = Vec::new();
    for listed in all.into_iter().rev() {
        let (sub, client) = (sub.to_owned(), listed.client.clone());
        let given = Grant { sub, client, issued_ms: listed.at_ms, ..Grant::default() };
        if services.grants.is_active(&given).await? {
            alive.push(listed);
        }
    }
    Ok(alive)
}

/// Returns the live sessions of a user, that of the browser with `session_id` first.
async fn sessions(
    services: &Services,
    session_id: &str,
    all: Vec<ListedSession>,
) -> Result<Vec<AccountSession>, StoreError> {
    let (mut alive, current) = (Vec::new(), sha256_hex(session_id));
    for listed in all.into_iter().rev() {
        let Some(session) = services.sessions.live(&listed.digest).await? else { continue };
        alive.push(AccountSession {
            handle: listed.handle().to_owned(),
            is_current: listed.digest == current,
            agent: listed.agent,
            started_ms: session.started_ms,
            seen_ms: session.seen_ms,
        });
    }
    alive.sort_by_key(|session| !session.is_current);
    Ok(alive)
}

async fn apply(services: &Services, parts: &Parts, body: Body) -> Result<Response, Response> {
    check_enabled(services)?;
    let AccountForm { session_id: id, session, params, ip } =
        AccountForm::read(services, PURPOSE, parts, body).await?;
    let field = |name| params.get(name).unwrap_or_default();
    let changed = match field("action") {
        "withdraw" => withdraw(services, &session.sub, field("client"), ip).await,
        "end-session" => end_session(services, &session.sub, field("session"), ip).await,
        "disconnect" => disconnect(services, &session.sub, field("app"), ip).await,
        "add" | "rename" | "remove" if services.relying_party.is_none() => return Err(off()),
        "add" | "rename" | "remove" => match RecentLogin::of(services, &id, &session) {
            Some(login) => login.change(services, &params, ip).await,
            None => {
                let text = "You signed in too long ago for this. Open your account page again.";
                return Err(page(StatusCode::FORBIDDEN, text));
            }
        },
        _ => return Err(bad_request("The form does not say what to do.")),
    };
    match changed.map_err(store_page)? {
        None => Ok(redirect(StatusCode::SEE_OTHER, &services.ctx.url(ACCOUNT_PATH))),
        error => account_page(services, &id, &session, error).await.map_err(store_page),
    }
}

/// Ends everything that a user granted to a client.
async fn withdraw(
    services: &Services,
    sub: &str,
    client: &str,
    ip: ClientAddress,
) -> Result<Option<&'static str>, StoreError> {
    let all = services.accounts.of(sub).await?.applications;
    if !applications(services, sub, all).await?.iter().any(|listed| listed.client == client) {
        return Ok(Some("This application has no access any more."));
    }
    services.grants.revoke(Revocation::Consent { user: sub, client }).await?;
    services.ctx.record_event("consent.withdrawn", Some(sub), Some(client), Some(ip), None);
    Ok(None)
}

/// Ends another session of a user.
async fn end_session(
    services: &Services,
    sub: &str,
    handle: &str,
    ip: ClientAddress,
) -> Result<Option<&'static str>, StoreError> {
    let all = services.accounts.of(sub).await?.sessions;
    let Some(session) = all.iter().find(|listed| listed.handle() == handle) else {
        return Ok(Some("This session is over already."));
    };
    services.sessions.end_digest(&session.digest).await?;
    services.ctx.record_event("session.ended", Some(sub), None, Some(ip), None);
    Ok(None)
}

/// Forgets a user's tokens for an app.
async fn disconnect(
    services: &Services,
    sub: &str,
    app: &str,
    ip: ClientAddress,
) -> Result<Option<&'static str>, StoreError> {
    let is_removed = match services.connections() {
        Some(connections) => connections.disconnect(sub, app).await?,
        None => false,
    };
    if !is_removed {
        return Ok(Some("This service is not connected any more."));
    }
    services.ctx.record_event("upstream.disconnected", Some(sub), Some(app), Some(ip), None);
    Ok(None)
}

/// Signs the user in, which leads back to the account page.
async fn sign_in(services: &Services, parts: &Parts) -> Result<Response, Response> {
    let now_ms = services.ctx.clock.now_ms();
    let request =
        |browser: &str| AuthorizationRequest::of_page("your account", ACCOUNT_PATH, browser, now_ms);
    begin(services, parts, request).await
}
