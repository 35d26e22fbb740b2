//! The last check of a pending authorization: only what passes it now is shown for consent or gets a code.
//!
//! Pages and forms make the same check, so that nothing which ended between the two goes through.

use axum::response::Response;
use http::StatusCode;

use super::{
    Core,
    steps::{error_page, page, store_page},
};
use crate::{
    ceiling::GrantedScopes,
    clients::OAuthClient,
    records::{Pending, Session},
    store::Key,
};

/// A pending authorization whose every condition held a moment ago. Made by [`Core::clear`] alone; codes are issued for nothing else.
pub(crate) struct Cleared {
    pub(super) pending: Pending,
    pub(super) client: OAuthClient,
    /// The scopes that can be granted.
    pub(super) scopes: GrantedScopes,
    /// When the check began: what is cut off from then on ends what comes of this.
    pub(super) at_ms: u64,
    _by_clear: (),
}

impl Cleared {
    /// The same for those of its scopes that are among `names`.
    pub(super) fn only(self, names: &[String]) -> Self {
        Self { scopes: self.scopes.only(names), ..self }
    }
}

impl Core {
    /// Notes who logged in, at `now_ms`, and narrows what is asked for to what they may grant.
    pub(super) fn note_login(
        &self,
        pending: &mut Pending,
        client: &OAuthClient,
        session: &Session,
        id: Option<String>,
        now_ms: u64,
    ) {
        pending.log_in(session, id, now_ms);
        let ceiling = self.ceiling(&pending.grant.sub, client);
        pending.grant.scopes = ceiling.narrow(&pending.grant.scopes).record();
    }

    /// The client of a pending authorization, when its answer may still go to the address it named.
    ///
    /// # Errors
    /// A page that says why not.
    pub(crate) async fn client_of(&self, pending: &Pending) -> Result<OAuthClient, Response> {
        let bad = |text: &str| page(StatusCode::BAD_REQUEST, text);
        let client = self.client(&pending.grant.client, None).await.map_err(|error| match error.status {
            StatusCode::UNAUTHORIZED => bad("The application is not known any more."),
            _ => error_page(error),
        })?;
        if !client.redirects_to(&pending.grant.redirect) || !client.may("authorization_code") {
            return Err(bad("The address to go back to is not registered for this application any more."));
        }
        Ok(client)
    }

    /// Checks everything that a code needs: the time, the login and what may have ended it, the client, its address, the scopes.
    ///
    /// # Errors
    /// A page that says what is wrong. Nothing is sent to the client's address, which may be what is wrong.
    pub(super) async fn clear(&self, id: &str, pending: Pending) -> Result<Cleared, Response> {
        let at_ms = self.clock.now_ms();
        let bad = |text: &str| page(StatusCode::BAD_REQUEST, text);
        if !pending.logged_in {
            return Err(bad("Sign in first."));
        }
        if at_ms >= pending.expires_ms {
            return Err(bad("This sign-in is over."));
        }
        let client = self.client_of(&pending).await?;
        if !self.stands(&pending.grant).await.map_err(store_page)? {
            self.store.remove(&Key::secret("pending", id)).await.map_err(store_page)?;
            return Err(bad("You were signed out meanwhile. Start again in the application."));
        }
        let scopes = self.ceiling(&pending.grant.sub, &client).narrow(&pending.grant.scopes);
        Ok(Cleared { pending, client, scopes, at_ms, _by_clear: () })
    }
}
