//! Signing in with a passkey alone, at the login page.

use std::sync::Arc;

use axum::{body::Body, extract::State, response::Response};
use http::{Request, StatusCode, request::Parts};
use webauthn_rp::DiscoverableAuthentication64;

use super::{Refused, ceremony::Place};
use crate::{
    crypto::b64,
    lockout::LOCK,
    net::Caller,
    pages::{Ask, Wrong},
    records::{Pending, Person, Session},
    server::{
        Core, User,
        form::OAuthError,
        steps::{error_page, page, store_page},
    },
    store::{Key, PasskeyStore as _, StoreError},
};

pub(in crate::server) async fn submit(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    match core.log_in_with_passkey(&parts, body).await {
        Ok(response) | Err(response) => response,
    }
}

/// What an answer of an authenticator came to.
enum Checked {
    /// Whose it is.
    Fits(Box<Session>),
    /// Nobody's, or not in order. The user it names, when there is one.
    Wrong(Option<String>),
}

impl Core {
    /// What the login page needs to offer passkeys; nothing where they are off.
    pub(in crate::server) fn passkey_login(&self, pending: &str, browser: &str) -> Option<Ask> {
        let begun = self.relying_party.as_ref()?.begin_login()?;
        let place = Place { step: "login", browser, of: pending };
        let ceremony = self.seal_ceremony(&begun, &place);
        Some(Ask { action: self.url("/oauth/login/passkey"), options: begun.options, ceremony })
    }

    async fn log_in_with_passkey(&self, parts: &Parts, body: Body) -> Result<Response, Response> {
        let ip = self.caller(parts);
        self.limit("login", &[&ip.to_string()], self.config.limits.login).await.map_err(error_page)?;
        let (params, id, mut pending, held, browser) = self.form_of_step(parts, body, "login").await?;
        if pending.logged_in || self.relying_party.is_none() {
            return Err(page(StatusCode::BAD_REQUEST, "This step is not open."));
        }
        let place = Place { step: "login", browser: &browser, of: &id };
        let ceremony = params.get("ceremony").unwrap_or_default();
        let Some(state) = self.take_ceremony(ceremony, &place).await.map_err(store_page)? else {
            return Ok(self.login_page(&id, &pending, &browser, Some(Wrong::Over)));
        };
        let answer = params.get("credential").unwrap_or_default();
        match self.check_passkey(&state, answer, ip).await? {
            Checked::Fits(session) => {
                self.tell("passkey.login", Some(&session.sub), client_of(&pending), Some(ip), None);
                self.tell("login.ok", Some(&session.sub), client_of(&pending), Some(ip), None);
                self.logged_in(&parts.headers, &id, &mut pending, &held, &session).await.map_err(store_page)
            }
            Checked::Wrong(sub) => {
                self.tell("login.failed", sub.as_deref(), client_of(&pending), Some(ip), None);
                Ok(self.login_page(&id, &pending, &browser, Some(Wrong::Passkey)))
            }
        }
    }

    /// Whose passkey answered. Failures are counted as wrong passwords are, by account and network, in counters of their own: passwords that
    /// others try do not lock the passkeys of an account out, and the other way round.
    async fn check_passkey(&self, state: &[u8], answer: &str, ip: Caller) -> Result<Checked, Response> {
        let from = Key::named("wrong", &["ip", &ip.to_string()]);
        let of_account = |sub: &str| Key::named("wrong", &["passkey", sub, &ip.to_string()]);
        let most = self.config.limits.wrong_passwords;
        self.still_open(&from, most * 10).await?;
        let wrong = async |why: Refused, sub: Option<&str>| -> Result<Checked, Response> {
            tracing::info!(reason = %why, "a login with a passkey was refused");
            self.store.hit(&from, LOCK).await.map_err(store_page)?;
            if let Some(sub) = sub {
                self.store.hit(&of_account(sub), LOCK).await.map_err(store_page)?;
                if matches!(why, Refused::Cloned) {
                    self.tell("passkey.clone_suspected", Some(sub), None, Some(ip), None);
                }
            }
            Ok(Checked::Wrong(sub.map(str::to_owned)))
        };
        let answer = match DiscoverableAuthentication64::from_json_custom(answer.as_bytes()) {
            Ok(answer) => answer,
            Err(error) => return wrong(Refused::Unreadable(error.to_string()), None).await,
        };
        let unknown = || Refused::Ceremony("the passkey is not known".into());
        let (id, named) = (b64(answer.raw_id()), b64(answer.response().user_handle()));
        let Some(sub) = self.store.passkey_owner(&id).await.map_err(store_page)? else {
            return wrong(unknown(), None).await;
        };
        self.still_open(&of_account(&sub), most).await?;
        let set = self.store.passkeys(&sub).await.map_err(store_page)?.unwrap_or_default();
        let Some(passkey) = set.passkeys.iter().find(|held| held.id == id) else {
            return wrong(unknown(), None).await;
        };
        if named != set.handle {
            return wrong(Refused::Ceremony("the passkey is of another user".into()), Some(&sub)).await;
        }
        let Some(user) = self.user_of(&sub).filter(|user| !user.config.disabled) else {
            return wrong(Refused::Ceremony("the user may not sign in".into()), Some(&sub)).await;
        };
        let Some(party) = &self.relying_party else { return wrong(unknown(), None).await };
        let now_ms = self.clock.now_ms();
        let used = match party.finish_login(state, &answer, passkey, &set.handle, now_ms) {
            Ok(used) => used,
            Err(why) => return wrong(why, Some(&sub)).await,
        };
        if !self.store.use_passkey(&sub, &id, used).await.map_err(store_page)? {
            return wrong(Refused::Ceremony("the passkey was used elsewhere meanwhile".into()), Some(&sub))
                .await;
        }
        self.store.remove(&of_account(&sub)).await.map_err(store_page)?;
        Ok(Checked::Fits(Box::new(self.session_of(user))))
    }

    /// A session of `user` that begins now.
    pub(super) fn session_of(&self, user: &User) -> Session {
        let now = self.clock.now_ms();
        let name = &user.config.username;
        Session {
            sub: format!("user:{name}"),
            name: name.clone(),
            auth_s: now / 1000,
            started_ms: now,
            seen_ms: now,
            credential: Some(user.credential.clone()),
            person: Person::default(),
        }
    }

    pub(super) fn user_of(&self, sub: &str) -> Option<&User> {
        self.users.get(sub.strip_prefix("user:")?)
    }

    /// Refuses when `counter` says that there were too many failures.
    async fn still_open(&self, counter: &Key, most: u64) -> Result<(), Response> {
        let count = self.failures(counter).await.map_err(store_page)?;
        if count >= most { Err(error_page(OAuthError::too_many(LOCK))) } else { Ok(()) }
    }

    async fn failures(&self, counter: &Key) -> Result<u64, StoreError> {
        let held = self.store.get(counter).await?;
        let text = held.as_deref().and_then(|held| std::str::from_utf8(held).ok());
        Ok(text.and_then(|text| text.parse().ok()).unwrap_or(0))
    }
}

fn client_of(pending: &Pending) -> Option<&str> {
    Some(pending.grant.client.as_str()).filter(|client| !client.is_empty())
}
