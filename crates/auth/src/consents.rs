//! Consents that users gave to clients, remembered until they are revoked or a year old.

use std::sync::Arc;

use crate::{
    ceiling::GrantedScopes,
    clients::OAuthClient,
    context::Context,
    grants::Grants,
    records::{Consent, Grant},
    redirect_uri::without_loopback_port,
    store::{Key, StoreError},
    tuning::CONSENT_LIFETIME,
};

/// A consent that is asked for or given: the grant names the user and the redirect URI.
#[derive(Clone, Copy)]
pub(crate) struct ConsentRequest<'a> {
    pub(crate) grant: &'a Grant,
    pub(crate) client: &'a OAuthClient,
    /// Scopes that are offered to the user.
    pub(crate) offered: &'a GrantedScopes,
    /// Time at which the request was verified.
    pub(crate) at_ms: u64,
}

impl ConsentRequest<'_> {
    /// The key of its record; `main` is the resource of the main endpoint.
    fn key(&self, main: &str) -> Key {
        let grant = self.grant;
        // A program on the user's computer has another port each time (RFC 8252 §7.3).
        let redirect = without_loopback_port(&grant.redirect);
        let redirect = redirect.as_deref().unwrap_or(&grant.redirect);
        let mut names = vec![&*grant.sub, &grant.client, redirect];
        // A consent for one endpoint is none for another. The main one is not named.
        names.extend(grant.resources.iter().filter(|named| **named != *main).map(String::as_str));
        Key::named("consent", &names)
    }
}

/// The consents.
pub(crate) struct Consents {
    ctx: Arc<Context>,
    grants: Arc<Grants>,
}

impl Consents {
    pub(crate) fn new(ctx: Arc<Context>, grants: Arc<Grants>) -> Self {
        Self { ctx, grants }
    }

    /// Returns the consent that the user gave before, unless it was revoked or the client has changed.
    pub(crate) async fn remembered(&self, asked: &ConsentRequest<'_>) -> Result<Option<Consent>, StoreError> {
        Ok(self.find(asked).await?.0)
    }

    /// Returns the consent, and its record.
    async fn find(
        &self,
        asked: &ConsentRequest<'_>,
    ) -> Result<(Option<Consent>, Option<Vec<u8>>), StoreError> {
        let record = self.ctx.store.get(&asked.key(&self.ctx.deployment.resource)).await?;
        let consent = record.as_deref().and_then(|bytes| serde_json::from_slice::<Consent>(bytes).ok());
        let consent = consent.filter(|consent| consent.client == asked.client.fingerprint());
        let Some(consent) = consent else { return Ok((None, record)) };
        // Every revocation ends the consents given before it; a logout does not.
        let given = Grant { issued_ms: consent.at_ms, session: None, ..asked.grant.clone() };
        Ok((self.grants.is_active(&given).await?.then_some(consent), record))
    }

    /// Remembers the user's answer. Scopes that were not offered this time stay as they were answered before.
    pub(crate) async fn remember(
        &self,
        asked: &ConsentRequest<'_>,
        allowed: &GrantedScopes,
    ) -> Result<(), StoreError> {
        let key = asked.key(&self.ctx.deployment.resource);
        loop {
            let (before, record) = self.find(asked).await?;
            let (mut answered, mut all) =
                before.map_or_else(Default::default, |before| (before.answered, before.allowed));
            all.retain(|scope| !asked.offered.contains(scope));
            all.extend(allowed.names().iter().cloned());
            answered.retain(|scope| !asked.offered.contains(scope));
            answered.extend(asked.offered.names().iter().cloned());
            let consent = Consent {
                at_ms: asked.at_ms,
                answered,
                allowed: all,
                client: asked.client.fingerprint(),
                sub: Some(asked.grant.sub.clone()),
                client_id: Some(asked.client.id.clone()),
            };
            let value = serde_json::to_vec(&consent).unwrap_or_default();
            let is_saved = match &record {
                Some(record) => self.ctx.store.replace(&key, record, &value, CONSENT_LIFETIME).await?,
                None => self.ctx.store.put_new(&key, &value, CONSENT_LIFETIME).await?,
            };
            // Otherwise another answer of the user came between: both count.
            if is_saved {
                return Ok(());
            }
        }
    }
}
