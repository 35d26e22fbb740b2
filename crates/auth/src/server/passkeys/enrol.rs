//! The first passkey of a user without a password: a link that works once, made at the command line.
//!
//! GET shows a form for the code, which follows the `#` of the link (see `pages::enrol`). POST with the code shows the passkey button.
//! POST with the authenticator's response adds the passkey and uses the code up.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{Request, StatusCode, header, request::Parts};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use super::{
    ceremony::{Ceremony, seal},
    registration::{off, register},
};
use crate::{
    crypto::same,
    pages::{self, PasskeyPrompt},
    server::services::{ACCOUNT_PATH, Services},
    store::{Key, PasskeyStore as _, StoreError},
    users::User,
    web::{
        params::{cookie, read_form},
        responses::{bad_request, error_page, page, redirect, store_page},
    },
};

const PAGE: &str = "/oauth/enrol";

/// An error that keeps a link from being made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnrolError {
    /// Passkeys are turned off.
    #[error("passkeys are off: set `auth.local.passkeys.enabled: true`")]
    Off,
    /// The configuration has no such user, or locks it out.
    #[error("`auth.local.users` has no user `{0}` that may sign in")]
    UnknownUser(String),
    /// The store does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A link with which a user adds a passkey without signing in first. It is a secret: whoever has it has the account.
#[derive(Clone)]
pub struct Enrolment {
    link: SecretString,
    /// Number of passkeys that the user has already.
    pub passkeys: usize,
}

impl Enrolment {
    /// The address to open. A secret, for the user's eyes only.
    pub fn expose_link(&self) -> &str {
        self.link.expose_secret()
    }
}

impl std::fmt::Debug for Enrolment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Enrolment").field("passkeys", &self.passkeys).finish_non_exhaustive()
    }
}

/// An enrolment as it is stored.
#[derive(Serialize, Deserialize)]
struct EnrolmentRecord {
    sub: String,
    /// Fingerprint of the user's password hash: a new password ends the enrolment.
    credential: String,
    expires_ms: u64,
}

/// Makes an enrolment of a user, for `life`.
pub(in crate::server) async fn create(
    services: &Services,
    username: &str,
    life: Duration,
) -> Result<Enrolment, EnrolError> {
    let ctx = &services.ctx;
    if services.relying_party.is_none() {
        return Err(EnrolError::Off);
    }
    let user = services.users.get(username).filter(|user| !user.config.disabled);
    let user = user.ok_or_else(|| EnrolError::UnknownUser(username.to_owned()))?;
    let token = ctx.new_secret();
    let sub = user.subject();
    let set = ctx.store.passkeys(&sub).await?;
    let enrolment = EnrolmentRecord {
        sub: sub.clone(),
        credential: user.credential.clone(),
        expires_ms: ctx.clock.now_ms() + u64::try_from(life.as_millis()).unwrap_or(u64::MAX),
    };
    let value = serde_json::to_vec(&enrolment).unwrap_or_default();
    ctx.store.put(&Key::secret("enrol", &token), &value, life).await?;
    ctx.record_event("passkey.invited", Some(&sub), None, None, None);
    let link = format!("{}#{token}", ctx.url(PAGE));
    Ok(Enrolment { link: link.into(), passkeys: set.map_or(0, |set| set.passkeys.len()) })
}

pub(in crate::server) async fn show(
    State(services): State<Arc<Services>>,
    request: Request<Body>,
) -> Response {
    let (parts, _) = request.into_parts();
    code_page(&services, &parts)
}

pub(in crate::server) async fn finish(
    State(services): State<Arc<Services>>,
    request: Request<Body>,
) -> Response {
    let (parts, body) = request.into_parts();
    match enrol(&services, &parts, body).await {
        Ok(response) | Err(response) => response,
    }
}

/// Returns the enrolment of a code and its user.
async fn find<'a>(services: &'a Services, token: &str) -> Result<(EnrolmentRecord, &'a User), Response> {
    let over = || bad_request("This link is over or was used. Ask for a new one.");
    let ctx = &services.ctx;
    let record = ctx.store.get(&Key::secret("enrol", token)).await.map_err(store_page)?.ok_or_else(over)?;
    let enrolment: EnrolmentRecord = serde_json::from_slice(&record).map_err(|_| over())?;
    let user = services.users.by_subject(&enrolment.sub);
    let user = user.filter(|user| !user.config.disabled).ok_or_else(over)?;
    let is_over = ctx.clock.now_ms() >= enrolment.expires_ms;
    if is_over || !same(&enrolment.credential, &user.credential) {
        return Err(over());
    }
    Ok((enrolment, user))
}

/// Returns the page with the form for the code of the link.
fn code_page(services: &Services, parts: &Parts) -> Response {
    if services.relying_party.is_none() {
        return off();
    }
    let Services { ctx, authorizations, .. } = services;
    let browser = authorizations.browser_cookie(&parts.headers);
    let csrf = authorizations.csrf_token(&browser.value, "enrol", "");
    let mut response = pages::link(&ctx.deployment.name, &ctx.url(PAGE), &csrf).into_response();
    authorizations.set_browser_cookie(&browser, &mut response);
    response
}

/// Returns the page with the passkey button.
async fn passkey_page(
    services: &Services,
    enrolment: &EnrolmentRecord,
    user: &User,
    ceremony: &Ceremony<'_>,
    error: Option<&'static str>,
) -> Result<Response, Response> {
    let ctx = &services.ctx;
    let set = ctx.store.passkeys(&enrolment.sub).await.map_err(store_page)?;
    let name = &user.config.username;
    let display = user.config.name.as_deref().unwrap_or(name);
    let party = services.relying_party.as_ref();
    let started = party.and_then(|party| party.start_registration(name, display, set.as_ref()));
    let started = started.ok_or_else(off)?;
    let prompt = PasskeyPrompt {
        action: ctx.url(PAGE),
        ceremony: seal(ctx, &started, ceremony),
        options: started.options,
    };
    let token = ceremony.subject;
    let csrf = services.authorizations.csrf_token(ceremony.browser, "enrol", token);
    let user = pages::plain(name, 80);
    let mut page = pages::enrol(&ctx.deployment.name, &user, token, &csrf, &prompt, error);
    if error.is_some() {
        page.status = StatusCode::BAD_REQUEST;
    }
    Ok(page.into_response())
}

async fn enrol(services: &Services, parts: &Parts, body: Body) -> Result<Response, Response> {
    if services.relying_party.is_none() {
        return Err(off());
    }
    let Services { ctx, authorizations, .. } = services;
    let ip = ctx.caller(parts);
    ctx.limit_caller("login", &[], ip, ctx.config.limits.login).await.map_err(error_page)?;
    authorizations.check_origin(&parts.headers)?;
    let params = read_form(parts, body).await.map_err(error_page)?;
    let token = params.get("token").unwrap_or_default();
    let browser = cookie(&parts.headers, &ctx.cookie_name("browser")).unwrap_or_default();
    let has_response = params.get("credential").is_some();
    let csrf = authorizations.csrf_token(&browser, "enrol", if has_response { token } else { "" });
    if browser.is_empty() {
        return Err(page(StatusCode::FORBIDDEN, "The form is not the one this server showed you."));
    }
    authorizations.check_csrf(&params, &csrf)?;
    let (enrolment, user) = find(services, token).await?;
    let ceremony = Ceremony { step: "enrol", browser: &browser, subject: token };
    if !has_response {
        return passkey_page(services, &enrolment, user, &ceremony, None).await;
    }
    let sub = enrolment.sub.as_str();
    let error = register(services, &params, &ceremony, sub, Some(token)).await.map_err(store_page)?;
    if error.is_some() {
        return passkey_page(services, &enrolment, user, &ceremony, error).await;
    }
    for event in ["passkey.added", "login.ok"] {
        ctx.record_event(event, Some(sub), None, Some(ip), None);
    }
    let session = services.users.session_of(user);
    let (_, cookie) = services.sessions.start(&parts.headers, &session).await.map_err(store_page)?;
    let mut response = redirect(StatusCode::SEE_OTHER, &ctx.url(ACCOUNT_PATH));
    response.headers_mut().append(header::SET_COOKIE, cookie);
    Ok(response)
}
