//! The page where a user sees, adds, names and removes passkeys. Who opens it signed in a few minutes ago at most.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, Request, StatusCode, header, request::Parts};

use super::ceremony::Place;
use crate::{
    crypto::{mint, same, sha256_hex},
    pages::{self, Ask, OnAccount},
    records::{Grant, Pending, Session, Wish},
    server::{
        Core, User,
        form::{Params, read_form},
        login::refuse_origin,
        steps::{PENDING_LIFE, cookie, error_page, page, redirect, store_page},
    },
    store::{Added, Key, PasskeyStore as _, StoreError},
};

/// How long after a login passkeys may be changed, in seconds.
const RECENT_S: u64 = 600;
const MOST_NAME: usize = 60;
const PAGE: &str = "/oauth/account";

pub(in crate::server) async fn show(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, _) = request.into_parts();
    match core.show_account(&parts).await {
        Ok(response) | Err(response) => response,
    }
}

pub(in crate::server) async fn change(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    match core.change_account(&parts, body).await {
        Ok(response) | Err(response) => response,
    }
}

pub(super) fn off() -> Response {
    page(StatusCode::NOT_FOUND, "Passkeys are turned off on this server.")
}

/// The name of a passkey as it is kept.
pub(super) fn name_of(params: &Params) -> String {
    let name = pages::plain(params.get("name").unwrap_or_default(), MOST_NAME);
    if name.is_empty() { "Passkey".to_owned() } else { name }
}

impl Core {
    /// Where the account page is, when there is one.
    pub(in crate::server) fn account_link(&self) -> Option<String> {
        self.relying_party.as_ref().map(|_| self.url(PAGE))
    }

    /// The session of a browser whose user signed in lately, and who that is.
    async fn recent(&self, headers: &HeaderMap) -> Result<Option<(String, Session, &User)>, StoreError> {
        let Some((id, session)) = self.session(headers).await? else { return Ok(None) };
        if self.clock.now_s().saturating_sub(session.auth_s) > RECENT_S {
            return Ok(None);
        }
        Ok(self.user_of(&session.sub).map(|user| (id, session, user)))
    }

    async fn show_account(&self, parts: &Parts) -> Result<Response, Response> {
        if self.relying_party.is_none() {
            return Err(off());
        }
        let ip = self.caller(parts).to_string();
        self.limit("account", &[&ip], self.config.limits.authorize).await.map_err(error_page)?;
        match self.recent(&parts.headers).await.map_err(store_page)? {
            Some((id, session, user)) => {
                self.account_page(&id, &session, user, None).await.map_err(store_page)
            }
            None => self.sign_in_for_account(&parts.headers).await.map_err(store_page),
        }
    }

    async fn account_page(
        &self,
        id: &str,
        session: &Session,
        user: &User,
        note: Option<&'static str>,
    ) -> Result<Response, StoreError> {
        let set = self.store.passkeys(&session.sub).await?;
        let display = user.config.name.as_deref().unwrap_or(&session.name);
        let full =
            set.as_ref().is_some_and(|set| set.passkeys.len() >= self.config.local.passkeys.most_per_user);
        let begun = match &self.relying_party {
            Some(party) if !full => party.begin_adding(&session.name, display, set.as_ref()),
            _ => None,
        };
        let place = Place { step: "add", browser: id, of: &session.sub };
        let add = begun.map(|begun| Ask {
            action: self.url(PAGE),
            ceremony: self.seal_ceremony(&begun, &place),
            options: begun.options,
        });
        let passkeys = set.map(|set| set.passkeys).unwrap_or_default();
        let shown = OnAccount {
            server: &self.deployment.name,
            user: &pages::plain(&session.name, 80),
            action: &self.url(PAGE),
            csrf: &self.csrf(id, "account", ""),
            passkeys: &passkeys,
            add: add.as_ref(),
            sign_out: &self.url("/oauth/logout"),
            note,
        };
        let mut shown = pages::account(&shown);
        if note.is_some() {
            shown.status = StatusCode::BAD_REQUEST;
        }
        Ok(shown.into_response())
    }

    async fn change_account(&self, parts: &Parts, body: Body) -> Result<Response, Response> {
        if self.relying_party.is_none() {
            return Err(off());
        }
        let ip = self.caller(parts);
        self.limit("account", &[&ip.to_string()], self.config.limits.authorize).await.map_err(error_page)?;
        if let Some(refusal) = refuse_origin(self, &parts.headers) {
            return Err(refusal);
        }
        let params = read_form(parts, body).await.map_err(error_page)?;
        let Some((id, session, user)) = self.recent(&parts.headers).await.map_err(store_page)? else {
            return Err(page(
                StatusCode::FORBIDDEN,
                "You signed in too long ago for this. Open your account page again.",
            ));
        };
        if !same(params.get("csrf").unwrap_or_default(), self.csrf(&id, "account", "")) {
            return Err(page(StatusCode::FORBIDDEN, "The form is not the one this server showed you."));
        }
        let (sub, of) = (session.sub.as_str(), params.get("id").unwrap_or_default());
        let gone = "This passkey is not there any more.";
        let note = match params.get("action") {
            Some("add") => self.add(&params, &id, &session).await.map_err(store_page)?,
            Some("rename") => {
                let done = self.store.rename_passkey(sub, of, &name_of(&params)).await.map_err(store_page)?;
                done.then(|| self.tell("passkey.renamed", Some(sub), None, Some(ip), None))
                    .is_none()
                    .then_some(gone)
            }
            Some("remove") => {
                let done = self.store.remove_passkey(sub, of).await.map_err(store_page)?;
                done.then(|| self.tell("passkey.removed", Some(sub), None, Some(ip), None))
                    .is_none()
                    .then_some(gone)
            }
            _ => return Err(page(StatusCode::BAD_REQUEST, "The form does not say what to do.")),
        };
        if note.is_some() {
            return self.account_page(&id, &session, user, note).await.map_err(store_page);
        }
        if params.get("action") == Some("add") {
            self.tell("passkey.added", Some(sub), None, Some(ip), None);
        }
        if params.get("action") == Some("remove") && params.get("everywhere").is_some() {
            self.cut("user", sub).await.map_err(store_page)?;
            self.tell("passkey.ended_everything", Some(sub), None, Some(ip), None);
        }
        Ok(redirect(StatusCode::SEE_OTHER, &self.url(PAGE)))
    }

    /// Adds what the authenticator made; what to tell the user when it cannot be.
    async fn add(
        &self,
        params: &Params,
        browser: &str,
        session: &Session,
    ) -> Result<Option<&'static str>, StoreError> {
        let place = Place { step: "add", browser, of: &session.sub };
        self.add_passkey(params, &place, &session.sub, None).await
    }

    /// The same for any place; `invitation` is used up once the answer is good.
    pub(super) async fn add_passkey(
        &self,
        params: &Params,
        place: &Place<'_>,
        sub: &str,
        invitation: Option<&str>,
    ) -> Result<Option<&'static str>, StoreError> {
        let ceremony = params.get("ceremony").unwrap_or_default();
        let Some(state) = self.take_ceremony(ceremony, place).await? else {
            return Ok(Some("The page was open too long, or was used already. Try again."));
        };
        let Some(party) = &self.relying_party else { return Ok(Some("Passkeys are turned off.")) };
        let (mut passkey, handle) =
            match party.finish_adding(&state, params.get("credential").unwrap_or_default()) {
                Ok(made) => made,
                Err(why) => {
                    tracing::info!(reason = %why, "a passkey was not added");
                    return Ok(Some("The passkey could not be checked, and was not added."));
                }
            };
        if let Some(token) = invitation
            && self.store.take(&Key::secret("enrol", token)).await?.is_none()
        {
            return Ok(Some("This link was used already. Ask for a new one."));
        }
        passkey.name = name_of(params);
        passkey.created_ms = self.clock.now_ms();
        let most = self.config.local.passkeys.most_per_user;
        Ok(match self.store.add_passkey(sub, &handle, &passkey, most).await? {
            Added::Added => None,
            Added::Taken => Some("This passkey is known already."),
            Added::Full => Some("You have as many passkeys as this server allows. Remove one first."),
            Added::OtherHandle => Some("Another passkey was added at the same moment. Try again."),
        })
    }

    /// Signs the user in, which leads back to the account page.
    async fn sign_in_for_account(&self, headers: &HeaderMap) -> Result<Response, StoreError> {
        let held = cookie(headers, &self.cookie_name("browser")).filter(|held| held.len() == 43);
        let fresh = held.is_none();
        let browser = held.unwrap_or_else(|| mint::<32>(&*self.entropy));
        let pending = Pending {
            grant: Grant::default(),
            client_name: "Your account page".to_owned(),
            state: String::new(),
            browser: sha256_hex(&browser),
            expires_ms: self.clock.now_ms() + PENDING_LIFE.as_millis() as u64,
            logged_in: false,
            ask_again: false,
            upstream: None,
            back: Some(PAGE.to_owned()),
            wish: Wish::default(),
        };
        let id = mint::<32>(&*self.entropy);
        self.keep_pending(&id, None, &pending).await?;
        let mut response = self.login_page(&id, &pending, &browser, None);
        if fresh {
            response.headers_mut().append(header::SET_COOKIE, self.set_cookie("browser", &browser, 86_400));
        }
        Ok(response)
    }
}
