//! The first passkey of a user who has no password: a link that works once, made at the command line.
//!
//! GET shows a form for the code, which the link has after its `#` (see `pages::enrol`); POST with the code shows the passkey button; POST with
//! the authenticator's answer adds the passkey and uses the code up.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{Request, StatusCode, header, request::Parts};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use super::{account::off, ceremony::Place};
use crate::{
    AuthorizationServer,
    crypto::{mint, same},
    pages::{self, Ask},
    server::{
        Core, User,
        form::read_form,
        login::refuse_origin,
        steps::{cookie, error_page, page, redirect, store_page},
    },
    store::{Key, PasskeyStore as _, StoreError},
};

const PAGE: &str = "/oauth/enrol";

/// Why there is no link.
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

/// A link with which a user adds a passkey without signing in first. Who has it, has the account: it is a secret.
#[derive(Clone)]
pub struct Enrolment {
    link: SecretString,
    /// Passkeys the user has already.
    pub passkeys: usize,
}

impl Enrolment {
    /// Where the user goes. A secret: for the user's eyes only.
    pub fn expose_link(&self) -> &str {
        self.link.expose_secret()
    }
}

impl std::fmt::Debug for Enrolment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Enrolment").field("passkeys", &self.passkeys).finish_non_exhaustive()
    }
}

#[derive(Serialize, Deserialize)]
struct Invitation {
    sub: String,
    /// What the user's password was: another one ends the invitation.
    credential: String,
    expires_ms: u64,
}

impl AuthorizationServer {
    /// Makes a link that lets `username` add a passkey, once, within `life`.
    ///
    /// # Errors
    /// See [`EnrolError`].
    pub async fn enrol(&self, username: &str, life: Duration) -> Result<Enrolment, EnrolError> {
        let core = self.core();
        if core.relying_party.is_none() {
            return Err(EnrolError::Off);
        }
        let user = core.users.get(username).filter(|user| !user.config.disabled);
        let user = user.ok_or_else(|| EnrolError::UnknownUser(username.to_owned()))?;
        let token = mint::<32>(&*core.entropy);
        let sub = format!("user:{username}");
        let held = core.store.passkeys(&sub).await?;
        let invitation = Invitation {
            sub: sub.clone(),
            credential: user.credential.clone(),
            expires_ms: core.clock.now_ms() + u64::try_from(life.as_millis()).unwrap_or(u64::MAX),
        };
        let value = serde_json::to_vec(&invitation).unwrap_or_default();
        core.store.put(&Key::secret("enrol", &token), &value, life).await?;
        core.tell("passkey.invited", Some(&sub), None, None, None);
        let link = format!("{}#{token}", core.url(PAGE));
        Ok(Enrolment { link: link.into(), passkeys: held.map_or(0, |set| set.passkeys.len()) })
    }
}

pub(in crate::server) async fn show(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, _) = request.into_parts();
    core.show_enrolment(&parts)
}

pub(in crate::server) async fn finish(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    match core.finish_enrolment(&parts, body).await {
        Ok(response) | Err(response) => response,
    }
}

impl Core {
    async fn invitation(&self, token: &str) -> Result<(Invitation, &User), Response> {
        let over = || page(StatusCode::BAD_REQUEST, "This link is over or was used. Ask for a new one.");
        let held =
            self.store.get(&Key::secret("enrol", token)).await.map_err(store_page)?.ok_or_else(over)?;
        let invitation: Invitation = serde_json::from_slice(&held).map_err(|_| over())?;
        let user = self.user_of(&invitation.sub).filter(|user| !user.config.disabled).ok_or_else(over)?;
        let over_now = self.clock.now_ms() >= invitation.expires_ms;
        if over_now || !same(&invitation.credential, &user.credential) {
            return Err(over());
        }
        Ok((invitation, user))
    }

    /// The form for the code of the link.
    fn show_enrolment(&self, parts: &Parts) -> Response {
        if self.relying_party.is_none() {
            return off();
        }
        let held = cookie(&parts.headers, &self.cookie_name("browser")).filter(|held| held.len() == 43);
        let fresh = held.is_none();
        let browser = held.unwrap_or_else(|| mint::<32>(&*self.entropy));
        let csrf = self.csrf(&browser, "enrol", "");
        let mut response = pages::link(&self.deployment.name, &self.url(PAGE), &csrf).into_response();
        if fresh {
            response.headers_mut().append(header::SET_COOKIE, self.set_cookie("browser", &browser, 86_400));
        }
        response
    }

    async fn enrolment_page(
        &self,
        token: &str,
        invitation: &Invitation,
        user: &User,
        browser: &str,
        note: Option<&'static str>,
    ) -> Result<Response, Response> {
        let set = self.store.passkeys(&invitation.sub).await.map_err(store_page)?;
        let name = &user.config.username;
        let display = user.config.name.as_deref().unwrap_or(name);
        let begun =
            self.relying_party.as_ref().and_then(|party| party.begin_adding(name, display, set.as_ref()));
        let begun = begun.ok_or_else(off)?;
        let place = Place { step: "enrol", browser, of: token };
        let ask = Ask {
            action: self.url(PAGE),
            ceremony: self.seal_ceremony(&begun, &place),
            options: begun.options,
        };
        let csrf = self.csrf(browser, "enrol", token);
        let mut shown =
            pages::enrol(&self.deployment.name, &pages::plain(name, 80), token, &csrf, &ask, note);
        if note.is_some() {
            shown.status = StatusCode::BAD_REQUEST;
        }
        Ok(shown.into_response())
    }

    async fn finish_enrolment(&self, parts: &Parts, body: Body) -> Result<Response, Response> {
        if self.relying_party.is_none() {
            return Err(off());
        }
        let ip = self.caller(parts);
        self.limit("login", &[&ip.to_string()], self.config.limits.login).await.map_err(error_page)?;
        if let Some(refusal) = refuse_origin(self, &parts.headers) {
            return Err(refusal);
        }
        let params = read_form(parts, body).await.map_err(error_page)?;
        let token = params.get("token").unwrap_or_default();
        let browser = cookie(&parts.headers, &self.cookie_name("browser")).unwrap_or_default();
        let answers = params.get("credential").is_some();
        let of = if answers { token } else { "" };
        let csrf = params.get("csrf").unwrap_or_default();
        if browser.is_empty() || !same(csrf, self.csrf(&browser, "enrol", of)) {
            return Err(page(StatusCode::FORBIDDEN, "The form is not the one this server showed you."));
        }
        let (invitation, user) = self.invitation(token).await?;
        if !answers {
            return self.enrolment_page(token, &invitation, user, &browser, None).await;
        }
        let place = Place { step: "enrol", browser: &browser, of: token };
        if let Some(note) =
            self.add_passkey(&params, &place, &invitation.sub, Some(token)).await.map_err(store_page)?
        {
            return self.enrolment_page(token, &invitation, user, &browser, Some(note)).await;
        }
        self.tell("passkey.added", Some(&invitation.sub), None, Some(ip), None);
        self.tell("login.ok", Some(&invitation.sub), None, Some(ip), None);
        let session = self.session_of(user);
        let (_, session_cookie) = self.begin_session(&parts.headers, &session).await.map_err(store_page)?;
        let mut response = redirect(StatusCode::SEE_OTHER, &self.url("/oauth/account"));
        response.headers_mut().append(header::SET_COOKIE, session_cookie);
        Ok(response)
    }
}
