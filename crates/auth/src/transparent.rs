//! Tokens of an external provider (`mode: transparent`): its keys, and introspection of tokens that are not JWTs.

mod answers;

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{Router, routing::get};
use gatewright_core::{Scopes, Shares};
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tokio::sync::Mutex as AsyncMutex;

use self::answers::Answers;
use crate::{
    clock::Clock,
    config::{AuthConfig, Deployment, ProviderConfig},
    crypto::sha256,
    fetch::Fetcher,
    keys::{Claims, Expected, JwkSet, MOST_TOKEN_BYTES, Refused, Token, VerifyingKey},
    metrics::Metrics,
};

const MOST_KEYS_BYTES: usize = 1024 * 1024;
/// A key set is asked for again at most this often, whatever keys tokens name. The fetch that fills an empty or old cache does
/// not count: a key that comes into use right after it is believed at once.
const COOL_DOWN_S: u64 = 30;
/// Introspections at once.
const MOST_QUESTIONS: usize = 64;
const TYPES: [&str; 3] = ["at+jwt", "jwt", ""];

/// Keys with the time they were fetched at.
#[derive(Default)]
struct Held {
    keys: Vec<(Option<String>, VerifyingKey)>,
    fetched_s: u64,
    /// When it was asked for beyond the cache's own needs, or in vain; 0 when not since the cache was filled.
    tried_s: u64,
    failures: u32,
}

impl Held {
    /// The keys that fit what a token says of its key.
    fn named(&self, token: &Token<'_>) -> Vec<VerifyingKey> {
        let fits = |kid: &Option<String>| token.header.kid.is_none() || *kid == token.header.kid;
        let named = self.keys.iter().filter(|(kid, _)| fits(kid));
        named.filter_map(|(_, key)| key.for_algorithm(token.algorithm())).collect()
    }
}

/// A key set at an address: cached, fetched again for unknown names with a cool-down, and used for a bounded time when it cannot be.
pub(crate) struct RemoteKeys(Arc<KeySource>);

struct KeySource {
    fetcher: Fetcher,
    issuer: String,
    uri: Option<String>,
    fresh_s: u64,
    stale_s: u64,
    pinned: bool,
    metrics: Arc<Metrics>,
    held: Mutex<Held>,
    /// Locked while the provider is asked. What is held can be used meanwhile.
    asking: Arc<AsyncMutex<()>>,
}

/// What the keys that are held say of a token.
enum Look {
    Use(Vec<VerifyingKey>),
    /// There is nothing that may still be used, and the provider was asked a moment ago.
    Nothing,
    /// The provider is to be asked. The keys that could be used meanwhile.
    Ask(Vec<VerifyingKey>),
}

fn usable(set: &JwkSet) -> Vec<(Option<String>, VerifyingKey)> {
    let signs = |jwk: &&crate::keys::Jwk| jwk.usage.as_deref().is_none_or(|usage| usage == "sig");
    set.keys
        .iter()
        .filter(signs)
        .filter_map(|jwk| Some((jwk.kid.clone(), VerifyingKey::from_jwk(jwk).ok()?)))
        .collect()
}

impl KeySource {
    fn held(&self) -> MutexGuard<'_, Held> {
        // Nothing panics while it holds the lock.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch(&self) -> Result<JwkSet, String> {
        let text = |error: crate::fetch::FetchError| error.to_string();
        let uri = match &self.uri {
            Some(uri) => uri.clone(),
            None => discover(&self.fetcher, &self.issuer).await?.jwks_uri,
        };
        let body = self.fetcher.get(&uri, MOST_KEYS_BYTES).await.map_err(text)?.body;
        serde_json::from_slice(&body).map_err(|_| "the key set is not one".to_owned())
    }

    fn is_fresh(&self, held: &Held, now_s: u64) -> bool {
        held.fetched_s > 0 && now_s < held.fetched_s + self.fresh_s
    }

    fn look(&self, token: &Token<'_>, now_s: u64) -> Look {
        let held = self.held();
        let found = held.named(token);
        if self.pinned || (self.is_fresh(&held, now_s) && !found.is_empty()) {
            return Look::Use(found);
        }
        let is_usable = held.fetched_s > 0 && now_s < held.fetched_s + self.fresh_s + self.stale_s;
        let pause = COOL_DOWN_S << held.failures.min(4);
        match held.tried_s == 0 || now_s >= held.tried_s + pause {
            true => Look::Ask(if is_usable { found } else { Vec::new() }),
            false if is_usable => Look::Use(found),
            false => Look::Nothing,
        }
    }

    async fn refresh(&self, now_s: u64) {
        let fetched = self.fetch().await;
        let mut held = self.held();
        match fetched {
            Ok(set) => {
                let tried_s = if self.is_fresh(&held, now_s) { now_s } else { 0 };
                *held = Held { keys: usable(&set), fetched_s: now_s, tried_s, failures: 0 };
            }
            Err(error) => {
                held.tried_s = now_s;
                held.failures += 1;
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
            held: Mutex::new(Held { keys, ..Held::default() }),
            asking: Arc::default(),
        }))
    }

    /// The keys a token may be signed with. `None` when there are none that may still be used. One caller asks the provider; others wait
    /// for the answer only when nothing that is held fits.
    async fn candidates(&self, token: &Token<'_>, now_s: u64) -> Option<Vec<VerifyingKey>> {
        let source = &self.0;
        let meanwhile = match source.look(token, now_s) {
            Look::Use(found) => return Some(found),
            Look::Nothing => return None,
            Look::Ask(meanwhile) => meanwhile,
        };
        let asking = match source.asking.clone().try_lock_owned() {
            Ok(asking) => asking,
            Err(_) if !meanwhile.is_empty() => return Some(meanwhile),
            Err(_) => source.asking.clone().lock_owned().await,
        };
        if let Look::Ask(_) = source.look(token, now_s) {
            // In a task of its own: whoever asks may go away, and others wait for the answer.
            let source = source.clone();
            let asked = tokio::spawn(async move {
                source.refresh(now_s).await;
                drop(asking);
            });
            let _ = asked.await;
        }
        let held = source.held();
        let is_usable = held.fetched_s > 0 && now_s < held.fetched_s + source.fresh_s + source.stale_s;
        is_usable.then(|| held.named(token))
    }

    /// The claims of a token signed with one of the keys; `Err(None)` when the keys cannot be had.
    pub(crate) async fn verify(&self, token: &Token<'_>, now_s: u64) -> Result<Claims, Option<Refused>> {
        let keys = self.candidates(token, now_s).await.ok_or(None)?;
        if keys.is_empty() {
            return Err(Some(Refused::UnknownKey));
        }
        keys.iter().find_map(|key| token.verify(key).ok()).ok_or(Some(Refused::Signature))
    }
}

/// What is needed of a provider's metadata.
#[derive(Debug, Clone, serde::Deserialize)]
pub(crate) struct Discovered {
    pub(crate) issuer: String,
    pub(crate) jwks_uri: String,
    #[serde(default)]
    pub(crate) authorization_endpoint: String,
    #[serde(default)]
    pub(crate) token_endpoint: String,
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
}

/// Reads the provider's metadata: OpenID form first, then RFC 8414.
pub(crate) async fn discover(fetcher: &Fetcher, issuer: &str) -> Result<Discovered, String> {
    let base = issuer.trim_end_matches('/');
    let url = url::Url::parse(issuer).map_err(|_| "the provider's address is not one".to_owned())?;
    let inserted = format!(
        "{}/.well-known/oauth-authorization-server{}",
        url.origin().ascii_serialization(),
        url.path().trim_end_matches('/')
    );
    let mut last = String::new();
    for address in [format!("{base}/.well-known/openid-configuration"), inserted] {
        match fetcher.get(&address, MOST_KEYS_BYTES).await {
            Ok(fetched) => {
                let found: Discovered = serde_json::from_slice(&fetched.body)
                    .map_err(|_| "the provider's metadata is not usable".to_owned())?;
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
    resource: String,
    audience: String,
    issuer: String,
    clock: Arc<dyn Clock>,
    metrics: Arc<Metrics>,
    fetcher: Fetcher,
    answers: Answers,
    /// Room for questions to the provider, by the network of who shows the token.
    questions: Arc<Shares<IpAddr>>,
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
    /// The problems of the configuration, as text.
    pub fn new(config: AuthConfig, deployment: &Deployment, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let problems = config.validate(deployment);
        if !problems.is_empty() {
            return Err(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
        }
        let fetcher = Fetcher::new(config.provider.allow_private)?;
        let metrics = Arc::new(Metrics::default());
        Ok(Self {
            keys: RemoteKeys::new(&config.provider, fetcher.clone(), metrics.clone()),
            resource: deployment.resource.clone(),
            audience: config.expected_audience.clone().unwrap_or_default(),
            issuer: config.provider.url.clone().unwrap_or_default(),
            config,
            clock,
            metrics,
            fetcher,
            answers: Answers::default(),
            questions: Shares::new(MOST_QUESTIONS),
        })
    }

    /// The protected resource metadata (RFC 9728), which names the provider.
    pub fn resource_metadata(&self) -> Value {
        serde_json::json!({
            "resource": self.resource,
            "authorization_servers": [self.issuer],
            "scopes_supported": self.config.scopes.keys().collect::<Vec<_>>(),
            "bearer_methods_supported": ["header"],
        })
    }

    /// The two paths that tell clients of the provider (RFC 9728 §3.1): at the root and with the resource's path inserted.
    pub fn router(&self) -> Router {
        let body = self.resource_metadata().to_string();
        let answer = move || {
            let body = body.clone();
            async move {
                (
                    [
                        ("content-type", "application/json"),
                        ("cache-control", "public, max-age=300"),
                        ("access-control-allow-origin", "*"),
                    ],
                    body,
                )
            }
        };
        let root = "/.well-known/oauth-protected-resource";
        let path = url::Url::parse(&self.resource)
            .map(|url| url.path().trim_end_matches('/').to_owned())
            .unwrap_or_default();
        let router = Router::new().route(root, get(answer.clone()));
        if path.is_empty() { router } else { router.route(&format!("{root}{path}"), get(answer)) }
    }

    /// Counts for an operator.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    pub(crate) fn resource(&self) -> &str {
        &self.resource
    }

    pub(crate) fn scopes(&self) -> String {
        self.config.scopes.keys().cloned().collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn anonymous(&self) -> Option<Scopes> {
        let scopes = || Scopes::Granted(self.config.anonymous_scopes.iter().cloned().collect());
        self.config.allow_default_public.then(scopes)
    }

    /// The claims of a token; `Err(None)` when it cannot be told whether it is good. What the token says of itself is checked before
    /// anything is fetched for it, and `network` is whose room for questions to the provider is used.
    pub(crate) async fn claims(
        &self,
        text: &str,
        network: Option<IpAddr>,
    ) -> Result<Claims, Option<Refused>> {
        let opaque = text.split('.').take(4).count() != 3;
        if opaque && let Some(uri) = &self.config.provider.introspection_uri {
            return self.introspected(uri, text, network).await;
        }
        let (token, now_s) = (Token::parse(text)?, self.clock.now_s());
        let types: Vec<&str> = match &self.config.provider.token_types {
            Some(types) => types.iter().map(String::as_str).collect(),
            None => TYPES.to_vec(),
        };
        let (issuer, audiences) = (self.issuer.as_str(), [self.audience.as_str()]);
        let claims = token.unverified()?;
        Expected { types: &types, issuer, audiences: &audiences, now_s }.check(&token.header, &claims)?;
        self.check_client(&claims)?;
        self.keys.verify(&token, now_s).await
    }

    fn check_client(&self, claims: &Claims) -> Result<(), Refused> {
        let Some(pinned) = self.config.provider.pinned_client.as_deref() else { return Ok(()) };
        let client = claims.get("azp").or_else(|| claims.get("client_id")).and_then(Value::as_str);
        if client == Some(pinned) { Ok(()) } else { Err(Refused::Client) }
    }

    /// The claims of an opaque token, as the provider's introspection says or said a moment ago.
    async fn introspected(
        &self,
        uri: &str,
        token: &str,
        network: Option<IpAddr>,
    ) -> Result<Claims, Option<Refused>> {
        if token.len() > MOST_TOKEN_BYTES {
            return Err(Some(Refused::TooLong));
        }
        let digest = sha256(token);
        if let Some(answer) = self.answers.get(&digest, self.clock.now_s()) {
            return answer;
        }
        // Of those who show the same token, one asks.
        let question = self.answers.question(digest);
        let _turn = question.gate.lock().await;
        let now = self.clock.now_s();
        if let Some(answer) = self.answers.get(&digest, now) {
            return answer;
        }
        let room = self.questions.take(network, 1).ok_or(None)?;
        let answer = self.introspect(uri, token, now).await;
        drop(room);
        self.answers.keep(digest, &answer, now);
        answer
    }

    async fn introspect(&self, uri: &str, token: &str, now: u64) -> Result<Claims, Option<Refused>> {
        let provider = &self.config.provider;
        let secret = provider.client_secret.as_ref().map(|secret| secret.expose_secret()).unwrap_or_default();
        let basic = provider.client_id.as_deref().map(|id| (id, secret));
        let answer = self.fetcher.post_form(uri, &[("token", token)], basic, MOST_KEYS_BYTES).await.map_err(
            |error| {
                tracing::error!(%error, "the provider's introspection failed");
                None
            },
        )?;
        let claims: Claims = serde_json::from_slice(&answer.body).map_err(|_| None)?;
        if claims.get("active") != Some(&Value::Bool(true)) {
            return Err(Some(Refused::Revoked));
        }
        let named = |value: &Value| value.as_str() == Some(&self.audience);
        let meant = match claims.get("aud") {
            Some(Value::Array(list)) => list.iter().any(named),
            Some(one) => named(one),
            None => false,
        };
        if !meant {
            return Err(Some(Refused::Audience));
        }
        if claims.get("iss").is_some_and(|iss| iss.as_str() != Some(&self.issuer)) {
            return Err(Some(Refused::Issuer));
        }
        if claims.get("exp").and_then(Value::as_u64).is_some_and(|expires| expires <= now) {
            return Err(Some(Refused::Expired));
        }
        self.check_client(&claims)?;
        Ok(claims)
    }
}
