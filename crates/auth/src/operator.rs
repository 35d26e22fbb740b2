//! What an operator asks and does: the clients, consents, tokens and keys of running servers.

use serde::Serialize;
use serde_json::Value;

use crate::{
    AuthorizationServer,
    clients::{OAuthClient, Origin},
    keys::RingError,
    records::{Consented, Grant},
    server::Core,
    store::{Digest, FamilyId, Key, StoreError},
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
    /// How it authenticates at the token endpoint.
    pub authentication: String,
    /// Where codes may be sent.
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

/// What became of a client that was to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovedClient {
    /// It is gone, and everything granted to it has ended.
    Removed,
    /// It is one of the configuration.
    Configured,
    /// There is none.
    Unknown,
}

/// A consent, as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsentInfo {
    /// Who allowed it.
    pub subject: String,
    /// The `client_id`.
    pub client: String,
    /// What was allowed.
    pub scopes: Vec<String>,
    /// Milliseconds since the epoch.
    pub at_ms: u64,
}

/// Whose token was revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokedToken {
    /// The subject.
    pub subject: String,
    /// The `client_id`.
    pub client: String,
}

impl AuthorizationServer {
    /// The configured clients, and those that registered themselves: at most `most` of the latter, in the order of their ids.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn clients(&self, most: usize) -> Result<Vec<ClientInfo>, StoreError> {
        let core = self.core();
        let mut configured: Vec<_> = core.statics.values().map(ClientInfo::of).collect();
        let held = core.store.list("client", most).await?;
        let registered = held.iter().filter_map(|held| serde_json::from_slice::<OAuthClient>(held).ok());
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
    /// When the store does not answer.
    pub async fn remove_client(&self, id: &str) -> Result<RemovedClient, StoreError> {
        let core = self.core();
        if core.statics.contains_key(id) {
            return Ok(RemovedClient::Configured);
        }
        if core.store.take(&Key::named("client", &[id])).await?.is_none() {
            return Ok(RemovedClient::Unknown);
        }
        core.cut("client", id).await?;
        core.tell("client.deleted", None, Some(id), None, None);
        Ok(RemovedClient::Removed)
    }

    /// What users allowed clients and did not withdraw: of `subject` alone, or of all; newest first. `most` consents are looked at. Those
    /// given to a version that did not note whose they are, are left out.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn consents(&self, subject: Option<&str>, most: usize) -> Result<Vec<ConsentInfo>, StoreError> {
        let core = self.core();
        let mut found = Vec::new();
        for held in core.store.list("consent", most).await? {
            let Ok(consent) = serde_json::from_slice::<Consented>(&held) else { continue };
            let (Some(sub), Some(client)) = (consent.sub, consent.client_id) else { continue };
            let given = Grant { sub, client, issued_ms: consent.at_ms, ..Grant::default() };
            if subject.is_some_and(|subject| subject != given.sub) || !core.stands(&given).await? {
                continue;
            }
            let Grant { sub: subject, client, .. } = given;
            found.push(ConsentInfo { subject, client, scopes: consent.allowed, at_ms: consent.at_ms });
        }
        found.sort_by(|a, b| b.at_ms.cmp(&a.at_ms).then_with(|| a.client.cmp(&b.client)));
        Ok(found)
    }

    /// Ends the authorization that an access or refresh token came of; `None` when the token is not one that counts.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn revoke_token(&self, token: &str) -> Result<Option<RevokedToken>, StoreError> {
        let core = self.core();
        let Some((family, grant, jti)) = core.behind(token).await? else { return Ok(None) };
        core.end(&family).await?;
        core.tell("token.revoked", Some(&grant.sub), Some(&grant.client), None, jti.as_deref());
        Ok(Some(RevokedToken { subject: grant.sub, client: grant.client }))
    }

    /// Removes a key that the servers made, at once: tokens it signed are refused.
    ///
    /// # Errors
    /// When there is no such key, it is given by the configuration, or the store does not answer.
    pub async fn retire_key(&self, kid: &str) -> Result<(), RingError> {
        let core = self.core();
        core.ring.retire(kid).await?;
        core.store.announce().await;
        core.tell("keys.retired", None, None, None, None);
        Ok(())
    }

    /// Returns whether `name` is a user of the configuration.
    pub fn knows_user(&self, name: &str) -> bool {
        self.core().users.contains_key(name)
    }
}

impl Core {
    /// What an access or refresh token came of, while it counts; of an access token its name as well.
    pub(crate) async fn behind(
        &self,
        token: &str,
    ) -> Result<Option<(FamilyId, Grant, Option<String>)>, StoreError> {
        if let Some(family) = FamilyId::of_token(token) {
            let Some(found) = self.store.find(&Digest::of(token), &family).await? else { return Ok(None) };
            let grant = serde_json::from_slice(&found.grant).map_err(|_| StoreError::Corrupt)?;
            return Ok(Some((family, grant, None)));
        }
        let Ok(claims) = self.own_claims(token, &[&self.deployment.resource]).await else { return Ok(None) };
        let Some((family, grant)) = self.grant_of(&claims).await? else { return Ok(None) };
        let jti = claims.get("jti").and_then(Value::as_str).map(str::to_owned);
        Ok(Some((family, grant, jti)))
    }
}
