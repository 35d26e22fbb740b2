//! Tokens of an external provider (`mode: transparent`): its keys, and introspection of tokens that are not JWTs.

mod answers;

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{Router, extract::Path, routing::get};
use gatewright_core::{Claimant, Groups, Portion, Scopes, Shares, read_json};
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tokio::sync::Mutex as AsyncMutex;

use self::answers::Answers;
use crate::{
    api_keys::ApiKeys,
    audience::is_for,
    clock::Clock,
    config::{AuthConfig, Deployment, ProviderConfig},
    crypto::sha256,
    endpoint::EndpointUrl,
    fetch::Fetcher,
    json::object,
    keys::{Claims, Expected, JwkSet, MAX_TOKEN_BYTES, Token, TokenError, VerifyingKey, check_start},
    metrics::Metrics,
};

const MAX_KEYS_BYTES: usize = 1024 * 1024;
/// Bytes of an introspection response.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// Keys of a set that are used: a token that names no key is tried with each of them.
const MAX_KEYS: usize = 100;
/// Claims that are read after an introspection, besides that of the groups.
const KEPT_CLAIMS: [&str; 8] = ["aud", "azp", "client_id", "cnf", "exp", "scope", "scp", "sub"];
/// Shortest time between two fetches for unknown keys, in seconds. The fetch that fills an empty or old cache does not count: a key that
/// comes into use right after it is accepted at once.
const COOL_DOWN_S: u64 = 30;
/// Introspections at the same time.
const MAX_INTROSPECTIONS: usize = 64;
const TYPES: [&str; 3] = ["at+jwt", "jwt", ""];

/// Keys, with the time at which they were fetched.
#[derive(Default)]
struct CachedKeys {
    keys: Vec<(Option<String>, VerifyingKey)>,
    fetched_s: u64,
    /// Time of the last fetch for an unknown key, or of the last failure; 0 when there was none since the cache was filled.
    tried_s: u64,
    failures: u32,
}

impl CachedKeys {
    /// Returns the keys that match the header of a token.
    fn named(&self, token: &Token<'_>) -> Vec<VerifyingKey> {
        let fits = |kid: &Option<String>| token.header.kid.is_none() || *kid == token.header.kid;
        let named = self.keys.iter().filter(|(kid, _)| fits(kid));
        named.filter_map(|(_, key)| key.for_algorithm(token.algorithm())).collect()
    }
}

/// A cached key set. It is fetched again for unknown keys, with a cool-down, and used for a bounded time when it cannot be fetched.
pub(crate) struct RemoteKeys(Arc<KeySource>);

struct KeySource {
    fetcher: Fetcher,
    issuer: String,
    uri: Option<String>,
    fresh_s: u64,
    stale_s: u64,
    pinned: bool,
    metrics: Arc<Metrics>,
    cached: Mutex<CachedKeys>,
    /// Locked during a fetch. The cached keys can be used meanwhile.
    asking: Arc<AsyncMutex<()>>,
}

/// Result of a look-up of a token's keys in the cache.
enum KeyLookup {
    Use(Vec<VerifyingKey>),
    /// No key may be used any more, and the last fetch was a moment ago.
    Nothing,
    /// The keys must be fetched. These may be used meanwhile.
    Ask(Vec<VerifyingKey>),
}

fn usable(set: &JwkSet) -> Vec<(Option<String>, VerifyingKey)> {
    // Whoever can read the set can sign with a key that has its private part.
    let is_public = |jwk: &&crate::keys::Jwk| {
        let is_public = !jwk.has_private_part();
        if !is_public {
            tracing::warn!(key.id = jwk.kid, "a key of the provider is not used: it holds its private part");
        }
        is_public
    };
    let keys = set.keys.iter().filter(is_public);
    let mut keys = keys.filter_map(|jwk| Some((jwk.kid.clone(), VerifyingKey::from_jwk(jwk).ok()?)));
    let used = keys.by_ref().take(MAX_KEYS).collect();
    if keys.next().is_some() {
        tracing::warn!("of the provider's keys, the first {MAX_KEYS} are used");
    }
    used
}

impl KeySource {
    fn cached(&self) -> MutexGuard<'_, CachedKeys> {
        // Nothing panics while the lock is cached.
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch(&self) -> Result<JwkSet, String> {
        let text = |error: crate::fetch::FetchError| error.to_string();
        let uri = match &self.uri {
            Some(uri) => uri.clone(),
            None => discover(&self.fetcher, &self.issuer).await?.jwks_uri.to_string(),
        };
        let body = self.fetcher.get(&uri, MAX_KEYS_BYTES).await.map_err(text)?.body;
        read_json(&body).map_err(|_| "the key set is not one".to_owned())
    }

    fn is_fresh(&self, cached: &CachedKeys, now_s: u64) -> bool {
        cached.fetched_s > 0 && now_s < cached.fetched_s + self.fresh_s
    }

    fn look(&self, token: &Token<'_>, now_s: u64) -> KeyLookup {
        let cached = self.cached();
        let found = cached.named(token);
        if self.pinned || (self.is_fresh(&cached, now_s) && !found.is_empty()) {
            return KeyLookup::Use(found);
        }
        let is_usable = cached.fetched_s > 0 && now_s < cached.fetched_s + self.fresh_s + self.stale_s;
        let pause = COOL_DOWN_S << cached.failures.min(4);
        match cached.tried_s == 0 || now_s >= cached.tried_s + pause {
            true => KeyLookup::Ask(if is_usable { found } else { Vec::new() }),
            false if is_usable => KeyLookup::Use(found),
            false => KeyLookup::Nothing,
        }
    }

    async fn refresh(&self, now_s: u64) {
        let fetched = self.fetch().await;
        let mut cached = self.cached();
        match fetched {
            Ok(set) => {
                let tried_s = if self.is_fresh(&cached, now_s) { now_s } else { 0 };
                *cached = CachedKeys { keys: usable(&set), fetched_s: now_s, tried_s, failures: 0 };
            }
            Err(error) => {
                cached.tried_s = now_s;
                cached.failures += 1;
                self.metrics.jwks_failed();
                tracing::error!(issuer = self.issuer, error, "the provider's keys could not be fetched");
            }
        }
    }
}

impl RemoteKeys {
    pub(crate) fn new(provider: &ProviderConfig, fetcher: Fetcher, metrics: Arc<Metrics>) -> Self {
        let issuer = provider.url.clone().unwrap_or_default();
        let keys = provider.jwks.as_ref().map(usable).unwrap_or_default();
        Self(Arc::new(KeySource {
            fetcher,
            issuer,
            uri: provider.jwks_uri.clone(),
            fresh_s: provider.jwks_cache_seconds.unwrap_or(600),
            stale_s: provider.jwks_stale_seconds.unwrap_or(3600),
            pinned: provider.jwks.is_some(),
            metrics,
            cached: Mutex::new(CachedKeys { keys, ..CachedKeys::default() }),
            asking: Arc::default(),
        }))
    }

    /// Returns the keys that a token may be signed with; `None` when no key may be used any more. One caller fetches; others wait only when
    /// no cached key matches.
    async fn candidates(&self, token: &Token<'_>, now_s: u64) -> Option<Vec<VerifyingKey>> {
        let source = &self.0;
        let meanwhile = match source.look(token, now_s) {
            KeyLookup::Use(found) => return Some(found),
            KeyLookup::Nothing => return None,
            KeyLookup::Ask(meanwhile) => meanwhile,
        };
        let asking = match source.asking.clone().try_lock_owned() {
            Ok(asking) => asking,
            Err(_) if !meanwhile.is_empty() => return Some(meanwhile),
            Err(_) => source.asking.clone().lock_owned().await,
        };
        if let KeyLookup::Ask(_) = source.look(token, now_s) {
            // In a task of its own: the request may be dropped while others wait for the keys.
            let source = source.clone();
            let asked = tokio::spawn(async move {
                source.refresh(now_s).await;
                drop(asking);
            });
            let _ = asked.await;
        }
        let cached = source.cached();
        let is_usable = cached.fetched_s > 0 && now_s < cached.fetched_s + source.fresh_s + source.stale_s;
        is_usable.then(|| cached.named(token))
    }

    /// Returns the claims of a token signed with one of the keys; `Err(None)` when the keys cannot be fetched.
    pub(crate) async fn verify(&self, token: &Token<'_>, now_s: u64) -> Result<Claims, Option<TokenError>> {
        let keys = self.candidates(token, now_s).await.ok_or(None)?;
        if keys.is_empty() {
            return Err(Some(TokenError::UnknownKey));
        }
        keys.iter().find_map(|key| token.verify(key).ok()).ok_or(Some(TokenError::Signature))
    }
}

/// The metadata of a provider, as far as it is used.
#[derive(Debug, Clone, serde::Deserialize)]
pub(crate) struct ProviderMetadata {
    pub(crate) issuer: String,
    pub(crate) jwks_uri: EndpointUrl,
    pub(crate) authorization_endpoint: Option<EndpointUrl>,
    pub(crate) token_endpoint: Option<EndpointUrl>,
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
}

const UNUSABLE: &str = "the provider's metadata cannot be used: it cannot be read, or an address in it is not a public https address \
                        without a fragment (`auth.provider.allowPrivate` allows private ones)";

/// Fetches the provider's metadata: in OpenID form, else in that of RFC 8414.
pub(crate) async fn discover(fetcher: &Fetcher, issuer: &str) -> Result<ProviderMetadata, String> {
    let base = issuer.trim_end_matches('/');
    let url = url::Url::parse(issuer).map_err(|_| "the provider's address is not one".to_owned())?;
    let inserted = format!(
        "{}/.well-known/oauth-authorization-server{}",
        url.origin().ascii_serialization(),
        url.path().trim_end_matches('/')
    );
    let mut last = String::new();
    for address in [format!("{base}/.well-known/openid-configuration"), inserted] {
        match fetcher.get(&address, MAX_KEYS_BYTES).await {
            Ok(fetched) => {
                let found: ProviderMetadata = read_json(&fetched.body).map_err(|_| UNUSABLE.to_owned())?;
                let endpoints = found.authorization_endpoint.iter().chain(&found.token_endpoint);
                fetcher.allows(endpoints.chain([&found.jwks_uri])).await.map_err(|_| UNUSABLE.to_owned())?;
                if found.issuer != issuer {
                    return Err("the provider's metadata names another issuer".to_owned());
                }
                return Ok(found);
            }
            Err(error) => last = error.to_string(),
        }
    }
    Err(last)
}

/// Validates tokens of an external provider.
pub struct Transparent {
    keys: RemoteKeys,
    config: AuthConfig,
    deployment: Deployment,
    audience: String,
    issuer: String,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    fetcher: Fetcher,
    answers: Answers,
    /// Quota of introspections, by the network of the caller.
    questions: Arc<Shares>,
}

impl std::fmt::Debug for Transparent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transparent").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

impl Transparent {
    /// A validator for the provider of `config`.
    ///
    /// # Errors
    /// The configuration has problems; the text names them.
    pub fn new(config: AuthConfig, deployment: &Deployment, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let problems = config.validate(deployment);
        if !problems.is_empty() {
            return Err(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
        }
        let fetcher = Fetcher::new(config.provider.allow_private)?;
        let metrics = Arc::new(Metrics::default());
        Ok(Self {
            keys: RemoteKeys::new(&config.provider, fetcher.clone(), metrics.clone()),
            deployment: deployment.clone(),
            audience: config.expected_audience.clone().unwrap_or_default(),
            issuer: config.provider.url.clone().unwrap_or_default(),
            config,
            clock,
            metrics,
            fetcher,
            answers: Answers::default(),
            questions: Shares::new(MAX_INTROSPECTIONS, Portion::QuarterOfFree),
        })
    }

    /// Returns the protected resource metadata (RFC 9728) of an endpoint, which names the provider; `None` is the main one.
    pub fn resource_metadata(&self, endpoint: Option<&str>) -> Value {
        serde_json::json!({
            "resource": self.deployment.resource_of(endpoint),
            "authorization_servers": [self.issuer],
            "scopes_supported": self.config.scopes.keys().collect::<Vec<_>>(),
            "bearer_methods_supported": ["header"],
        })
    }

    /// Returns the routes of the resource metadata (RFC 9728 §3.1): at the root, and with the resource's path inserted.
    pub fn router(self: &Arc<Self>) -> Router {
        let headers = [
            ("content-type", "application/json"),
            ("cache-control", "public, max-age=300"),
            ("access-control-allow-origin", "*"),
        ];
        let body = self.resource_metadata(None).to_string();
        let answer = move || async move { (headers, body) };
        let of_endpoint = {
            let (this, endpoints) = (self.clone(), self.deployment.endpoints.clone());
            async move |Path(name): Path<String>| match endpoints.get(&name) {
                Some(_) => Ok((headers, this.resource_metadata(Some(&name)).to_string())),
                None => Err(http::StatusCode::NOT_FOUND),
            }
        };
        let root = "/.well-known/oauth-protected-resource";
        let path = url::Url::parse(&self.deployment.resource)
            .map(|url| url.path().trim_end_matches('/').to_owned())
            .unwrap_or_default();
        let router = Router::new().route(root, get(answer.clone()));
        let router = router.route(&format!("{root}{path}/{{endpoint}}"), get(of_endpoint));
        if path.is_empty() { router } else { router.route(&format!("{root}{path}"), get(answer)) }
    }

    /// Counters for an operator.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    pub(crate) fn deployment(&self) -> &Deployment {
        &self.deployment
    }

    /// Returns the audiences of tokens that open an endpoint; `None` is the main one.
    fn audiences(&self, endpoint: Option<&str>) -> Vec<String> {
        let own = endpoint.map(|name| {
            let found = self.deployment.endpoints.get(name);
            let expected = found.and_then(|endpoint| endpoint.config.expected_audience.clone());
            expected.unwrap_or_else(|| self.deployment.resource_of(Some(name)))
        });
        let main = self.deployment.is_shared(endpoint).then(|| self.audience.clone());
        own.into_iter().chain(main).collect()
    }

    pub(crate) fn groups(&self, claims: &Claims) -> Groups {
        self.config.provider.groups(claims)
    }

    pub(crate) fn scopes(&self) -> String {
        self.config.scopes.keys().cloned().collect::<Vec<_>>().join(" ")
    }

    /// Returns the API keys of the configuration. Stored ones need the built-in server.
    pub(crate) fn api_keys(&self) -> ApiKeys {
        ApiKeys::new(&self.config, self.clock.clone(), None)
    }

    pub(crate) fn anonymous(&self) -> Option<Scopes> {
        let scopes = || Scopes::Granted(self.config.anonymous_scopes.iter().cloned().collect());
        self.config.allow_default_public.then(scopes)
    }

    /// Returns the claims of a token for an endpoint; `Err(None)` when it cannot be checked now. Its own claims are checked before anything is fetched for
    /// it, and introspections count for the networks of `caller`.
    pub(crate) async fn claims(
        &self,
        text: &str,
        caller: Option<IpAddr>,
        endpoint: Option<&str>,
    ) -> Result<Claims, Option<TokenError>> {
        let audiences = self.audiences(endpoint);
        let opaque = text.split('.').take(4).count() != 3;
        if opaque && let Some(uri) = &self.config.provider.introspection_uri {
            // One answer is good for every endpoint that the token is meant for.
            let claims = self.introspected(uri, text, caller).await?;
            return if is_for(&claims, &audiences) { Ok(claims) } else { Err(Some(TokenError::Audience)) };
        }
        let (token, now_s) = (Token::parse(text)?, self.clock.now_s());
        let types: Vec<&str> = match &self.config.provider.token_types {
            Some(types) => types.iter().map(String::as_str).collect(),
            None => TYPES.to_vec(),
        };
        let audiences: Vec<&str> = audiences.iter().map(String::as_str).collect();
        let issuer = self.issuer.as_str();
        let claims = token.unverified()?;
        Expected { types: &types, issuer, audiences: &audiences, now_s }.check(&token.header, &claims)?;
        self.check_client(&claims)?;
        self.keys.verify(&token, now_s).await
    }

    fn check_client(&self, claims: &Claims) -> Result<(), TokenError> {
        let Some(pinned) = self.config.provider.pinned_client.as_deref() else { return Ok(()) };
        let client = claims.get("azp").or_else(|| claims.get("client_id")).and_then(Value::as_str);
        if client == Some(pinned) { Ok(()) } else { Err(TokenError::Client) }
    }

    /// Returns the claims of an opaque token from the provider's introspection, or from the cache.
    async fn introspected(
        &self,
        uri: &str,
        token: &str,
        caller: Option<IpAddr>,
    ) -> Result<Claims, Option<TokenError>> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(Some(TokenError::TooLong));
        }
        let digest = sha256(token);
        if let Some(answer) = self.answers.get(&digest, self.clock.now_s()) {
            return answer;
        }
        // Of all requests with the same token, one asks.
        let question = self.answers.question(digest);
        let _turn = question.gate.lock().await;
        let now = self.clock.now_s();
        if let Some(answer) = self.answers.get(&digest, now) {
            return answer;
        }
        let room = self.questions.take(caller.map(Claimant::at).unwrap_or_default(), 1).map_err(|_| None)?;
        let answer = self.introspect(uri, token, now).await;
        drop(room);
        self.answers.keep(digest, &answer, now);
        answer
    }

    async fn introspect(&self, uri: &str, token: &str, now: u64) -> Result<Claims, Option<TokenError>> {
        let provider = &self.config.provider;
        let secret = provider.client_secret.as_ref().map(|secret| secret.expose_secret()).unwrap_or_default();
        let basic = provider.client_id.as_deref().map(|id| (id, secret));
        let answer =
            self.fetcher.post_form(uri, &[("token", token)], basic, MAX_ANSWER_BYTES).await.map_err(
                |error| {
                    tracing::error!(%error, "the provider's introspection failed");
                    None
                },
            )?;
        let mut claims: Claims = object(&answer.body).map_err(|_| None)?;
        if claims.get("active") != Some(&Value::Bool(true)) {
            return Err(Some(TokenError::Revoked));
        }
        // Providers introspect refresh tokens as well (RFC 7662 §2.1).
        let is_access = |kind: &str| ["bearer", "dpop"].contains(&kind.to_ascii_lowercase().as_str());
        if claims.get("token_type").is_some_and(|kind| !kind.as_str().is_some_and(is_access)) {
            return Err(Some(TokenError::Type));
        }
        if claims.get("iss").is_some_and(|iss| iss.as_str() != Some(&self.issuer)) {
            return Err(Some(TokenError::Issuer));
        }
        if claims.get("exp").and_then(Value::as_u64).is_some_and(|expires| expires <= now) {
            return Err(Some(TokenError::Expired));
        }
        check_start(&claims, now)?;
        self.check_client(&claims)?;
        claims.retain(|name, _| KEPT_CLAIMS.contains(&name.as_str()) || name == provider.groups_claim_name());
        Ok(claims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_set_with_many_keys_the_first_are_used() {
        let key = crate::keys::Jwk::generate(crate::keys::Algorithm::ES256).unwrap().public();
        let named = |n: usize| crate::keys::Jwk { kid: Some(n.to_string()), ..key.clone() };
        let set = JwkSet { keys: (0..150).map(named).collect() };
        let used = usable(&set);
        assert_eq!(used.len(), MAX_KEYS);
        assert!(used.iter().enumerate().all(|(n, (kid, _))| *kid == Some(n.to_string())));
    }
}
