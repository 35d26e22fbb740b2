//! Changes of a user's passkeys on the account page. They need a login a few minutes old at most.

use super::{
    ceremony::{Ceremony, seal},
    registration::{passkey_name, register},
};
use crate::{
    grants::Revocation,
    net::ClientAddress,
    pages::PasskeyPrompt,
    records::Session,
    server::services::{ACCOUNT_PATH, Services},
    store::{PasskeySet, PasskeyStore as _, StoreError},
    tuning::RECENT_LOGIN_S,
    users::User,
    web::params::Params,
};

/// A session whose user is configured and signed in recently.
pub(in crate::server) struct RecentLogin<'a> {
    session_id: &'a str,
    session: &'a Session,
    user: &'a User,
}

impl<'a> RecentLogin<'a> {
    /// Returns the recent login of a session; `None` when it is too old.
    pub(in crate::server) fn of(
        services: &'a Services,
        session_id: &'a str,
        session: &'a Session,
    ) -> Option<Self> {
        let age_s = services.ctx.clock.now_s().saturating_sub(session.auth_s);
        let user = services.users.by_subject(&session.sub).filter(|_| age_s <= RECENT_LOGIN_S);
        user.map(|user| Self { session_id, session, user })
    }

    fn ceremony(&self) -> Ceremony<'_> {
        Ceremony { step: "add", browser: self.session_id, subject: &self.session.sub }
    }

    /// Returns the button that adds a passkey; `None` when the user has as many as allowed.
    pub(in crate::server) fn prompt(
        &self,
        services: &Services,
        set: Option<&PasskeySet>,
    ) -> Option<PasskeyPrompt> {
        let ctx = &services.ctx;
        let limit = ctx.config.local.passkeys.most_per_user;
        if set.is_some_and(|set| set.passkeys.len() >= limit) {
            return None;
        }
        let display = self.user.config.name.as_deref().unwrap_or(&self.session.name);
        let party = services.relying_party.as_ref()?;
        let started = party.start_registration(&self.session.name, display, set)?;
        let ceremony = seal(ctx, &started, &self.ceremony());
        Some(PasskeyPrompt { action: ctx.url(ACCOUNT_PATH), ceremony, options: started.options })
    }

    /// Makes the change that a form asks for. Returns a text for the user when it was not made.
    pub(in crate::server) async fn change(
        &self,
        services: &Services,
        params: &Params,
        ip: ClientAddress,
    ) -> Result<Option<&'static str>, StoreError> {
        let ctx = &services.ctx;
        let sub = self.session.sub.as_str();
        let id = params.get("id").unwrap_or_default();
        let (event, error) = match params.get("action") {
            Some("add") => ("passkey.added", register(services, params, &self.ceremony(), sub, None).await?),
            Some("rename") => {
                let renamed = ctx.store.rename_passkey(sub, id, &passkey_name(params)).await?;
                ("passkey.renamed", missing(renamed))
            }
            _ => ("passkey.removed", missing(ctx.store.remove_passkey(sub, id).await?)),
        };
        if error.is_some() {
            return Ok(error);
        }
        ctx.record_event(event, Some(sub), None, Some(ip), None);
        if event == "passkey.removed" && params.get("everywhere").is_some() {
            services.grants.revoke(Revocation::User(sub)).await?;
            ctx.record_event("passkey.ended_everything", Some(sub), None, Some(ip), None);
        }
        Ok(None)
    }
}

/// Returns the error of a change to a passkey that was not there.
fn missing(changed: bool) -> Option<&'static str> {
    (!changed).then_some("This passkey is not there any more.")
}
