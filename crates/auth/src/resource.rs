//! The resource server: authenticates the callers of the MCP endpoint.
//!
//! A token of the built-in server is verified once and cached until it expires. Its grant is looked up again after each announced
//! revocation ([`RevocationFeed`](crate::store::RevocationFeed)), and after [`RECHECK`] in any case. Tokens of an external provider are in
//! `transparent`.

mod refusal;
mod work;

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use futures::future::BoxFuture;
use gatewright_core::{
    AuthRefusal, Authenticator, CallerAddress, EndpointName, Groups, Principal, RecordsError, Scopes,
    WorkTerms,
};
use http::{StatusCode, request::Parts};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use self::refusal::{AuthError, respond};
use crate::{
    api_keys::{ApiKeys, SUBJECT_PREFIX, is_api_key},
    audience::audiences_of,
    config::{ApiKeyConfig, Deployment},
    credentials::{Credentials, credentials},
    crypto::sha256,
    dpop,
    keys::{Claims, TokenError},
    metrics::Metrics,
    records::Grant,
    scopes::{ANONYMOUS, is_scope_token},
    server::{AuthorizationServer, Services},
    store::FamilyId,
    token_cache::{CachedToken, TokenCache},
    transparent::Transparent,
    tuning::{RECHECK, STREAM_RECHECK},
};

/// Issuer of the tokens that are accepted.
enum TokenIssuer {
    BuiltIn(Arc<Services>),
    External(Arc<Transparent>),
}

struct Resource {
    issuer: TokenIssuer,
    api_keys: ApiKeys,
    cache: Mutex<TokenCache>,
    deployment: Deployment,
    scopes: String,
    /// Scopes of callers without a token; `None` when those are refused.
    anonymous: Option<Scopes>,
    metrics: Arc<Metrics>,
}

/// Checks the callers of a protected resource.
#[derive(Clone)]
pub struct ResourceServer {
    resource: Arc<Resource>,
}

impl std::fmt::Debug for ResourceServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResourceServer")
            .field("resource", &self.resource.deployment.resource)
            .finish_non_exhaustive()
    }
}

/// Returns the address of the resource metadata (RFC 9728 §3.1): the path of the resource follows the well-known part.
pub(crate) fn metadata_url(resource: &str) -> String {
    match url::Url::parse(resource) {
        Ok(url) => {
            let path = url.path().trim_end_matches('/');
            format!("{}/.well-known/oauth-protected-resource{path}", url.origin().ascii_serialization())
        }
        Err(_) => resource.to_owned(),
    }
}

impl AuthorizationServer {
    /// Returns the resource server for tokens of this authorization server.
    pub fn resource_server(&self) -> ResourceServer {
        let services = self.services().clone();
        let ctx = services.ctx.clone();
        let scopes = ctx.config.scopes.keys().cloned().collect::<Vec<_>>().join(" ");
        let anonymous = services.grants.anonymous_scopes().map(Scopes::from);
        let api_keys = ApiKeys::new(&ctx.config, ctx.clock.clone(), Some(ctx.store.clone()));
        ResourceServer::new(
            TokenIssuer::BuiltIn(services),
            api_keys,
            ctx.deployment.clone(),
            scopes,
            anonymous,
        )
    }
}

impl ResourceServer {
    fn new(
        issuer: TokenIssuer,
        api_keys: ApiKeys,
        deployment: Deployment,
        scopes: String,
        anonymous: Option<Scopes>,
    ) -> Self {
        let metrics = match &issuer {
            TokenIssuer::BuiltIn(services) => services.ctx.metrics.clone(),
            TokenIssuer::External(validator) => validator.metrics().clone(),
        };
        let cache = Mutex::default();
        Self {
            resource: Arc::new(Resource { issuer, api_keys, cache, deployment, scopes, anonymous, metrics }),
        }
    }

    /// Returns the resource server for tokens of an external provider.
    pub fn transparent(validator: impl Into<Arc<Transparent>>) -> Self {
        let validator = validator.into();
        let deployment = validator.deployment().clone();
        let scopes = validator.scopes();
        let anonymous = validator.anonymous();
        let api_keys = validator.api_keys();
        Self::new(TokenIssuer::External(validator), api_keys, deployment, scopes, anonymous)
    }

    /// Accepts these API keys in place of those of the configuration. Streams of keys that are not among them end.
    pub fn replace_api_keys(&self, keys: &[ApiKeyConfig]) {
        self.resource.api_keys.replace(keys);
    }

    /// The address of the metadata of an endpoint; `None` is the main one.
    fn metadata_url(&self, endpoint: Option<&str>) -> String {
        metadata_url(&self.resource.deployment.resource_of(endpoint))
    }

    async fn principal(&self, parts: &Parts, endpoint: Option<&str>) -> Result<Option<Principal>, AuthError> {
        let (token, is_dpop) = match credentials(parts).ok_or(AuthError::Malformed)? {
            Credentials::None => return Ok(None),
            Credentials::Bearer(token) => (token, false),
            Credentials::Dpop(token) => (token, true),
        };
        let caller = parts.extensions.get::<CallerAddress>();
        let verified = self.verify(token, caller.map(|caller| caller.0), endpoint).await?;
        match (&verified.jkt, is_dpop) {
            (None, false) => {}
            (Some(jkt), true) => {
                let TokenIssuer::BuiltIn(services) = &self.resource.issuer else {
                    return Err(TokenError::Binding.into());
                };
                let ctx = &services.ctx;
                let resource = ctx.deployment.resource_of(endpoint);
                let caller = (token, &*verified.principal.subject);
                let proved = dpop::of_resource(ctx, parts, &resource, caller).await.map_err(|error| {
                    match error.status {
                        StatusCode::SERVICE_UNAVAILABLE => AuthError::Unavailable,
                        StatusCode::TOO_MANY_REQUESTS => {
                            AuthError::Flood("too many proofs came for this user; try again later")
                        }
                        _ => AuthError::Proof(error),
                    }
                })?;
                if proved.as_ref() != Some(jkt) {
                    return Err(TokenError::Binding.into());
                }
            }
            _ => return Err(TokenError::Binding.into()),
        }
        Ok(Some(verified.principal))
    }

    /// Verifies the token of a caller at an address, for an endpoint.
    async fn verify(
        &self,
        token: &str,
        caller: Option<IpAddr>,
        endpoint: Option<&str>,
    ) -> Result<CachedToken, AuthError> {
        let deployment = &self.resource.deployment;
        if is_api_key(token) {
            let key = self.resource.api_keys.verify(token, caller).await?;
            let opens = |name: &String| deployment.is_opened_by_key(endpoint, name);
            return key.audiences.iter().any(opens).then_some(key).ok_or(TokenError::Audience.into());
        }
        match &self.resource.issuer {
            TokenIssuer::BuiltIn(services) => {
                // The cache has tokens for every endpoint.
                let token = self.verify_cached(services, token).await?;
                let is_meant = token.audiences.iter().any(|audience| deployment.opens(endpoint, audience));
                is_meant.then_some(token).ok_or(TokenError::Audience.into())
            }
            TokenIssuer::External(validator) => {
                let claims = validator
                    .claims(token, caller, endpoint)
                    .await
                    .map_err(|why| why.map_or(AuthError::Unavailable, AuthError::Token))?;
                let caller = caller_of(&claims, external_scopes(&claims), validator.groups(&claims))?;
                // That would be the subject of callers without a token.
                if &*caller.principal.subject == ANONYMOUS {
                    return Err(TokenError::Subject.into());
                }
                Ok(caller)
            }
        }
    }

    /// Verifies a token of the built-in server, from the cache where that is current.
    async fn verify_cached(&self, services: &Services, token: &str) -> Result<CachedToken, AuthError> {
        if token.len() > crate::keys::MAX_TOKEN_BYTES {
            return Err(TokenError::TooLong.into());
        }
        let ctx = &services.ctx;
        let digest = sha256(token);
        let (now, revision) = (ctx.clock.now_ms(), ctx.store.revision());
        let cached = self.cache().get(&digest);
        if let Some(entry) = &cached
            && entry.expires_s + crate::keys::SKEW_S > now / 1000
            && entry.revision == revision
            && now < entry.checked_ms + RECHECK.as_millis() as u64
        {
            return Ok(entry.clone());
        }
        let verified = look_up(services, token, cached.and_then(|entry| entry.grant)).await;
        let verified = verified.inspect_err(|_| self.cache().remove(&digest))?;
        let verified = CachedToken { checked_ms: now, revision, ..verified };
        self.cache().insert(digest, verified.clone(), now);
        Ok(verified)
    }

    fn cache(&self) -> MutexGuard<'_, TokenCache> {
        // Nothing panics while the lock is entry.
        self.resource.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Authenticator for ResourceServer {
    fn authenticate<'a>(&'a self, parts: &'a Parts) -> BoxFuture<'a, Result<Principal, AuthRefusal>> {
        Box::pin(async move {
            let endpoint = EndpointName::of(parts);
            let endpoint = endpoint.as_deref();
            match self.principal(parts, endpoint).await {
                Ok(Some(principal)) => Ok(principal),
                Ok(None) => match &self.resource.anonymous {
                    Some(scopes) => Ok(Principal {
                        subject: ANONYMOUS.into(),
                        client_id: None,
                        scopes: scopes.clone(),
                        groups: Groups::default(),
                        endpoint: None,
                    }),
                    None => {
                        let text = "authentication is required";
                        Err(self.challenge(endpoint, StatusCode::UNAUTHORIZED, None, text))
                    }
                },
                Err(error) => Err(self.refuse(endpoint, error)),
            }
        })
    }

    /// Resolves once the token of `parts` would be refused: at its expiry, and within a second of a revocation that this instance receives; and once it
    /// has other scopes. A store that does not answer ends nothing. Never resolves for callers without a token.
    fn until_ended(&self, parts: &Parts) -> BoxFuture<'static, ()> {
        let token = match credentials(parts) {
            Some(Credentials::Bearer(token) | Credentials::Dpop(token)) => SecretString::from(token),
            Some(Credentials::None) | None => return Box::pin(std::future::pending()),
        };
        let (this, endpoint) = (self.clone(), EndpointName::of(parts));
        let interval = match &self.resource.issuer {
            TokenIssuer::BuiltIn(_) => STREAM_RECHECK,
            TokenIssuer::External(_) if is_api_key(token.expose_secret()) => STREAM_RECHECK,
            // Nothing announces revocations, and each check may verify a signature.
            TokenIssuer::External(_) => RECHECK,
        };
        Box::pin(async move {
            let verify = || this.verify(token.expose_secret(), None, endpoint.as_deref());
            let mut scopes = verify().await.ok().map(|began| began.principal.scopes);
            loop {
                tokio::time::sleep(interval).await;
                match verify().await {
                    Err(AuthError::Token(_)) => return,
                    Err(_) => {}
                    Ok(now)
                        if *scopes.get_or_insert_with(|| now.principal.scopes.clone())
                            != now.principal.scopes =>
                    {
                        return;
                    }
                    Ok(_) => {}
                }
            }
        })
    }

    /// Applies the ceilings and revocations that hold for tokens of `grant`. A provider elsewhere says nothing about its users without a token: their scopes and groups
    /// stay as they were, for as long as [`ResourceServer::work_terms`] allows.
    fn principal_now<'a>(
        &'a self,
        principal: &'a Principal,
        since: SystemTime,
        grant: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<Principal>, RecordsError>> {
        Box::pin(self.principal_of_work(principal, since, grant))
    }

    /// The digest of an API key: another key may have its name later.
    fn credential<'a>(
        &'a self,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<Option<String>, RecordsError>> {
        Box::pin(async {
            self.resource.api_keys.digest_of(principal).await.map_err(|error| {
                tracing::warn!(%error, "it cannot be checked whose key this is: the token store failed");
                RecordsError::Unavailable
            })
        })
    }

    /// The end of the token, for those of an external provider: nobody else can be asked. A token whose introspection names no end allows no work without
    /// another request. For the built-in server, the grant of the token.
    fn work_terms<'a>(&'a self, parts: &'a Parts) -> BoxFuture<'a, WorkTerms> {
        Box::pin(self.terms_of_token(parts))
    }

    /// Each missing scope stands once in the challenge and in the message.
    fn insufficient_scope(&self, principal: &Principal, missing: &[String]) -> AuthRefusal {
        let mut named: Vec<&str> = Vec::new();
        for scope in missing {
            // Only a scope token can stand in a challenge.
            if is_scope_token(scope) && !named.contains(&scope.as_str()) {
                named.push(scope);
            }
        }
        let scope = named.join(" ");
        let text = format!("the request needs scopes that the token does not grant: {scope}");
        let challenge = format!(
            "Bearer error=\"insufficient_scope\", scope=\"{scope}\", error_description=\"{text}\", resource_metadata=\"{}\"",
            self.metadata_url(principal.endpoint.as_deref())
        );
        respond(StatusCode::FORBIDDEN, &challenge, "insufficient_scope", &text)
    }
}

/// Verifies a token of the built-in server with its keys and the store. `grant` is its grant, when that was looked up before.
async fn look_up(
    services: &Services,
    token: &str,
    grant: Option<Arc<(FamilyId, Grant)>>,
) -> Result<CachedToken, AuthError> {
    let tokens = &services.tokens;
    let claims = tokens.verify_any(token).await?;
    let grant = match grant {
        Some(grant) => grant,
        None => Arc::new(tokens.grant_of(&claims).await?.ok_or(TokenError::Revoked)?),
    };
    let scopes = tokens.current_scopes(&grant.0, &grant.1, &claims).await?.ok_or(TokenError::Revoked)?;
    let groups = services.grants.groups_of(&grant.1);
    Ok(CachedToken { grant: Some(grant), ..caller_of(&claims, scopes.into(), groups)? })
}

/// Returns the scopes of a token of an external provider.
fn external_scopes(claims: &Claims) -> Scopes {
    match claims.get("scope").or_else(|| claims.get("scp")) {
        Some(Value::String(text)) => Scopes::parse(text),
        Some(Value::Array(list)) => {
            Scopes::Granted(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        _ => Scopes::Granted(Default::default()),
    }
}

/// Returns the caller of `claims`. A token without a subject is refused: two of them would be one caller, with one set of sessions.
fn caller_of(claims: &Claims, scopes: Scopes, groups: Groups) -> Result<CachedToken, TokenError> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let subject = text("sub").filter(|sub| !sub.is_empty()).ok_or(TokenError::Subject)?;
    let client = text("client_id").or_else(|| text("azp"));
    if subject.starts_with(SUBJECT_PREFIX) || client.is_some_and(|id| id.starts_with(SUBJECT_PREFIX)) {
        return Err(TokenError::Subject);
    }
    Ok(CachedToken {
        principal: Principal {
            subject: subject.into(),
            client_id: client.map(Into::into),
            scopes,
            groups,
            endpoint: None,
        },
        expires_s: claims.get("exp").and_then(Value::as_u64).unwrap_or_default(),
        checked_ms: 0,
        revision: 0,
        grant: None,
        audiences: audiences_of(claims).map(str::to_owned).collect(),
        jkt: claims
            .get("cnf")
            .map(|cnf| cnf.get("jkt").and_then(Value::as_str).unwrap_or("unsupported").to_owned()),
    })
}
