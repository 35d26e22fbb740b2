//! Work that goes on without a request: the scopes and groups that its owner has by then, and how long these are known.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gatewright_core::{CallerAddress, EndpointName, Principal, RecordsError, Scopes, WorkTerms};
use http::request::Parts;

use super::{Credentials, ResourceServer, TokenIssuer, credentials};
use crate::{
    api_keys::SUBJECT_PREFIX,
    scopes::{ANONYMOUS, RecordedScopes},
    store::StoreError,
    token_cache::CachedToken,
    work_grant::WorkGrant,
};

impl ResourceServer {
    /// Returns `principal` with the scopes and groups that it has now; `None` once its access has ended.
    pub(super) async fn principal_of_work(
        &self,
        principal: &Principal,
        since: SystemTime,
        grant: Option<&str>,
    ) -> Result<Option<Principal>, RecordsError> {
        let scopes = self.scopes_of_work(principal, since, grant).await?;
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
        grant: Option<&str>,
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
            let (keys, deployment) = (&self.resource.api_keys, &self.resource.deployment);
            let scopes = keys.scopes_of(principal, since.as_secs(), deployment).await;
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
        let grant = match grant.map(WorkGrant::parse) {
            Some(None) => return Ok(None),
            grant => grant.flatten(),
        };
        let owner = (&*principal.subject, client);
        match services.tokens.scopes_of_work(owner, &recorded, since_ms, grant.as_ref()).await {
            Ok(scopes) => Ok(scopes.map(Scopes::from)),
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// Returns the end of the token that an external provider issued, or of the API key beside them, and the grant of a token of the built-in server.
    pub(super) async fn terms_of_token(&self, parts: &Parts) -> WorkTerms {
        let Some(Credentials::Bearer(token) | Credentials::Dpop(token)) = credentials(parts) else {
            return WorkTerms::default();
        };
        let endpoint = EndpointName::of(parts);
        let caller = parts.extensions.get::<CallerAddress>().map(|caller| caller.0);
        let verified = self.verify(token, caller, endpoint.as_deref()).await;
        match &self.resource.issuer {
            TokenIssuer::BuiltIn(services) => {
                let of_key = |verified: &CachedToken| verified.grant.is_none();
                // Without a grant, nothing would end the work.
                let grant = match verified {
                    Ok(key) if of_key(&key) => None,
                    Ok(CachedToken { grant: Some(grant), .. }) => {
                        Some(WorkGrant::of(&services.ctx, &grant).to_string().into())
                    }
                    _ => Some("ended".into()),
                };
                WorkTerms { until: None, grant }
            }
            TokenIssuer::External(_) => {
                let expires_s = verified.map_or(0, |verified| verified.expires_s);
                WorkTerms { until: UNIX_EPOCH.checked_add(Duration::from_secs(expires_s)), grant: None }
            }
        }
    }
}

fn unavailable(error: &StoreError) -> RecordsError {
    tracing::warn!(%error, "it cannot be checked whether a run may go on: the token store failed");
    RecordsError::Unavailable
}
