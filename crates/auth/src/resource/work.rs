//! Work that goes on without a request: the scopes and groups that its owner has by then, and how long these are known.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gatewright_core::{CallerAddress, EndpointName, Principal, RecordsError, Scopes};
use http::request::Parts;

use super::{Credentials, ResourceServer, TokenIssuer, credentials};
use crate::{
    api_keys::SUBJECT_PREFIX,
    scopes::{ANONYMOUS, RecordedScopes},
    store::StoreError,
};

impl ResourceServer {
    /// Returns `principal` with the scopes and groups that it has now; `None` once its access has ended.
    pub(super) async fn principal_of_work(
        &self,
        principal: &Principal,
        since: SystemTime,
    ) -> Result<Option<Principal>, RecordsError> {
        let scopes = self.scopes_of_work(principal, since).await?;
        let groups = match &self.resource.issuer {
            TokenIssuer::BuiltIn(services) => services.grants.groups_now(principal),
            TokenIssuer::External(_) => principal.groups.clone(),
        };
        Ok(scopes.map(|scopes| Principal { scopes, groups, ..principal.clone() }))
    }

    /// Returns those of the scopes of `principal` that it has now; `None` once its access has ended.
    async fn scopes_of_work(
        &self,
        principal: &Principal,
        since: SystemTime,
    ) -> Result<Option<Scopes>, RecordsError> {
        // It began while nobody had to authenticate.
        let Scopes::Granted(granted) = &principal.scopes else { return Ok(None) };
        let within = |bound: &Scopes| {
            Scopes::Granted(granted.iter().filter(|scope| bound.allows(scope)).cloned().collect())
        };
        if *principal.subject == *ANONYMOUS && principal.client_id.is_none() {
            return Ok(self.resource.anonymous.as_ref().map(within));
        }
        let since = since.duration_since(UNIX_EPOCH).unwrap_or_default();
        if principal.subject.starts_with(SUBJECT_PREFIX) {
            let scopes = self.resource.api_keys.scopes_of(principal, since.as_secs()).await;
            return match scopes {
                Ok(scopes) => Ok(scopes.as_ref().map(within)),
                Err(error) => Err(unavailable(&error)),
            };
        }
        let TokenIssuer::BuiltIn(services) = &self.resource.issuer else {
            return Ok(Some(principal.scopes.clone()));
        };
        let Some(client) = principal.client_id.as_deref() else { return Ok(None) };
        let recorded = RecordedScopes::new(granted.iter().cloned().collect());
        let since_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let scopes = services.tokens.scopes_of_work((&principal.subject, client), &recorded, since_ms).await;
        match scopes {
            Ok(scopes) => Ok(scopes.map(Scopes::from)),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// Returns the end of the token that an external provider issued, or of the API key beside them.
    pub(super) async fn end_of_token(&self, parts: &Parts) -> Option<SystemTime> {
        let (TokenIssuer::External(_), Some(Credentials::Bearer(token))) =
            (&self.resource.issuer, credentials(parts))
        else {
            return None;
        };
        let endpoint = EndpointName::of(parts);
        let caller = parts.extensions.get::<CallerAddress>().map(|caller| caller.0);
        let expires_s =
            self.verify(token, caller, endpoint.as_deref()).await.map_or(0, |verified| verified.expires_s);
        UNIX_EPOCH.checked_add(Duration::from_secs(expires_s))
    }
}

fn unavailable(error: &StoreError) -> RecordsError {
    tracing::warn!(%error, "it cannot be checked whether a run may go on: the token store failed");
    RecordsError::Unavailable
}
