//! Operators' functions: clients, consents, tokens and keys of running servers.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::{
    authorization_server::AuthorizationServer,
    passkeys::enrol::{self, EnrolError, Enrolment},
};
use crate::{
    clients::{OAuthClient, Origin},
    grants::Revocation,
    keys::RingError,
    records::{Consent, Grant},
    store::StoreError,
    tokens::TokenOrigin,
};

/// An OAuth client, as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientInfo {
    /// Its `client_id`.
    pub id: String,
    /// Its name on pages.
    pub name: String,
    /// `configured`, or `registered` when it registered itself.
    pub origin: &'static str,
    /// Authentication method at the token endpoint.
    pub authentication: String,
    /// Redirect URIs.
    pub redirect_uris: Vec<String>,
    /// Seconds since the epoch at which it registered; `None` for configured ones.
    pub registered_s: Option<u64>,
}

impl ClientInfo {
    fn of(client: &OAuthClient) -> Self {
        let is_registered = client.origin == Origin::Registered;
        let method = serde_json::to_value(client.method).ok();
        Self {
            id: client.id.clone(),
            name: client.name.clone(),
            origin: if is_registered { "registered" } else { "configured" },
            authentication: method.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned(),
            redirect_uris: client.redirect_uris.clone(),
            registered_s: is_registered.then_some(client.issued_s),
        }
    }
}

/// Outcome of the removal of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovedClient {
    /// It was removed, and everything granted to it has ended.
    Removed,
    /// It is configured, and was not removed.
    Configured,
    /// No such client is registered.
    Unknown,
}

/// A consent, as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsentInfo {
    /// Subject of the user.
    pub subject: String,
    /// The `client_id`.
    pub client: String,
    /// Scopes that were allowed.
    pub scopes: Vec<String>,
    /// Milliseconds since the epoch.
    pub at_ms: u64,
}

/// Subject and client of a revoked token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokedToken {
    /// The subject.
    pub subject: String,
    /// The `client_id`.
    pub client: String,
}

impl AuthorizationServer {
    /// Returns the configured clients, and at most `most` registered ones, each in the order of their identifiers.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn clients(&self, most: usize) -> Result<Vec<ClientInfo>, StoreError> {
        let services = self.services();
        let mut configured: Vec<_> = services.clients.configured().map(ClientInfo::of).collect();
        let records = services.ctx.store.list("client", most).await?;
        let registered =
            records.iter().filter_map(|record| serde_json::from_slice::<OAuthClient>(record).ok());
        let mut registered: Vec<_> = registered.map(|client| ClientInfo::of(&client)).collect();
        for list in [&mut configured, &mut registered] {
            list.sort_by(|a, b| a.id.cmp(&b.id));
        }
        configured.append(&mut registered);
        Ok(configured)
    }

    /// Removes a client that registered itself, and ends everything granted to it.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn remove_client(&self, id: &str) -> Result<RemovedClient, StoreError> {
        let services = self.services();
        if services.clients.get_configured(id).is_some() {
            return Ok(RemovedClient::Configured);
        }
        if !services.clients.remove(id).await? {
            return Ok(RemovedClient::Unknown);
        }
        services.grants.revoke(Revocation::Client(id)).await?;
        services.ctx.record_event("client.deleted", None, Some(id), None, None);
        Ok(RemovedClient::Removed)
    }

    /// Returns the consents of `subject`, or of all users, that were not withdrawn, newest first. Looks at `most` consents at most. Consents
    /// of a version that did not record their user are left out.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn consents(&self, subject: Option<&str>, most: usize) -> Result<Vec<ConsentInfo>, StoreError> {
        let services = self.services();
        let mut found = Vec::new();
        for record in services.ctx.store.list("consent", most).await? {
            let Ok(consent) = serde_json::from_slice::<Consent>(&record) else { continue };
            let (Some(sub), Some(client)) = (consent.sub, consent.client_id) else { continue };
            let given = Grant { sub, client, issued_ms: consent.at_ms, ..Grant::default() };
            if subject.is_some_and(|subject| subject != given.sub)
                || !services.grants.is_active(&given).await?
            {
                continue;
            }
            let Grant { sub: subject, client, .. } = given;
            found.push(ConsentInfo { subject, client, scopes: consent.allowed, at_ms: consent.at_ms });
        }
        found.sort_by(|a, b| b.at_ms.cmp(&a.at_ms).then_with(|| a.client.cmp(&b.client)));
        Ok(found)
    }

    /// Ends the grant of an access or refresh token; `None` when the token is not valid.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn revoke_token(&self, token: &str) -> Result<Option<RevokedToken>, StoreError> {
        let services = self.services();
        let origin = services.tokens.origin(token).await?;
        let Some(TokenOrigin { family, grant, jti }) = origin else { return Ok(None) };
        services.grants.end_family(&family).await?;
        services.ctx.record_event(
            "token.revoked",
            Some(&grant.sub),
            Some(&grant.client),
            None,
            jti.as_deref(),
        );
        Ok(Some(RevokedToken { subject: grant.sub, client: grant.client }))
    }

    /// Removes a key that the servers made, at once. Tokens it signed are refused.
    ///
    /// # Errors
    /// There is no such key, the configuration gives it, or the store does not answer.
    pub async fn retire_key(&self, kid: &str) -> Result<(), RingError> {
        let services = self.services();
        services.tokens.keys.retire(kid).await?;
        services.ctx.store.announce().await;
        services.ctx.record_event("keys.retired", None, None, None, None);
        Ok(())
    }

    /// Makes a link that lets `username` add a passkey, once, within `life`.
    ///
    /// # Errors
    /// See [`EnrolError`].
    pub async fn enrol(&self, username: &str, life: Duration) -> Result<Enrolment, EnrolError> {
        enrol::create(self.services(), username, life).await
    }

    /// Returns whether `name` is a configured user.
    pub fn knows_user(&self, name: &str) -> bool {
        self.services().users.get(name).is_some()
    }
}
