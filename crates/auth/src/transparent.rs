//! Tokens of an external provider (`mode: transparent`): its keys, and introspection of tokens that are not JWTs.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{Router, routing::get};
use gatewright_core::Scopes;
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tokio::sync::Mutex as AsyncMutex;

use crate::{
    clock::Clock,
    config::{AuthConfig, Deployment, ProviderConfig},
    crypto::sha256,
    fetch::Fetcher,
    keys::{Claims, Expected, JwkSet, Refused, Token, VerifyingKey},
    metrics::Metrics,
};

const MOST_KEYS_BYTES: usize = 1024 * 1024;
/// A key set is asked for again at most this often, whatever keys tokens name. The fetch that fills an empty or old cache does
/// not count: a key that comes into use right after it is believed at once.
const COOL_DOWN_S: u64 = 30;
/// Introspection answers are kept this long at most.
const ANSWER_S: u64 = 30;
const MOST_ANSWERS: usize = 10_000;
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

/// A key set at an address: cached, fetched again for unknown names with a cool-down, and used for a bounded time when it cannot be.
pub(crate) struct RemoteKeys {
    fetcher: Fetcher,
    issuer: String,
    uri: Option<String>,
    fresh_s: u64,
    stale_s: u64,
    pinned: bool,
    metrics: Arc<Metrics>,
    held: AsyncMutex<Held>,
}

fn usable(set: &JwkSet) -> Vec<(Option<String>, VerifyingKey)> {
    let signs = |jwk: &&crate::keys::Jwk| jwk.usage.as_deref().is_none_or(|usage| usage == "sig");
    set.keys
        .iter()
        .filter(signs)
        .filter_map(|jwk| Some((jwk.kid.clone(), VerifyingKey::from_jwk(jwk).ok()?)))
        .collect()
}

impl RemoteKeys {
    pub(crate) fn new(provider: &ProviderConfig, fetcher: Fetcher, metrics: Arc<Metrics>) -> Self {
        let issuer = provider.url.clone().unwrap_or_default();
        let keys = provider.jwks.as_ref().map(usable).unwrap_or_default();
        Self {
            fetcher,
            issuer,
            uri: provider.jwks_uri.clone(),
            fresh_s: provider.jwks_cache_seconds.unwrap_or(600),
            stale_s: provider.jwks_stale_seconds.unwrap_or(3600),
            pinned: provider.jwks.is_some(),
            metrics,
            held: AsyncMutex::new(Held { keys, ..Held::default() }),
        }
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

    /// The keys a token may be signed with. `None` when there are none that may still be used.
    async fn candidates(&self, token: &Token<'_>, now_s: u64) -> Option<Vec<VerifyingKey>> {
        let mut held = self.held.lock().await;
        let named = |held: &Held| -> Vec<VerifyingKey> {
            let fits = |kid: &Option<String>| token.header.kid.is_none() || *kid == token.header.kid;
            held.keys
                .iter()
                .filter(|(kid, _)| fits(kid))
                .filter_map(|(_, key)| key.for_algorithm(token.algorithm()))
                .collect()
        };
        let found = named(&held);
        if self.pinned {
            return Some(found);
        }
        let fresh = held.fetched_s > 0 && now_s < held.fetched_s + self.fresh_s;
        let pause = COOL_DOWN_S << held.failures.min(4);
        let may_ask = held.tried_s == 0 || now_s >= held.tried_s + pause;
        if (fresh && !found.is_empty()) || !may_ask {
            let usable = held.fetched_s > 0 && now_s < held.fetched_s + self.fresh_s + self.stale_s;
            return usable.then_some(found);
        }
        held.tried_s = now_s;
        match self.fetch().await {
            Ok(set) => {
                let tried_s = if fresh { now_s } else { 0 };
                *held = Held { keys: usable(&set), fetched_s: now_s, tried_s, failures: 0 };
            }
            Err(error) => {
                held.failures += 1;
                self.metrics.jwks_failed();
                tracing::error!(issuer = self.issuer, error, "the provider's keys could not be fetched");
            }
        }
        let usable = held.fetched_s > 0 && now_s < held.fetched_s + self.fresh_s + self.stale_s;
        usable.then(|| named(&held))
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
    answers: Mutex<HashMap<[u8; 32], (Claims, u64)>>,
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
            answers: Mutex::default(),
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

    /// The claims of a token; `Err(None)` when it cannot be told whether it is good.
    pub(crate) async fn claims(&self, text: &str) -> Result<Claims, Option<Refused>> {
        let opaque = text.split('.').count() != 3;
        if opaque && let Some(uri) = &self.config.provider.introspection_uri {
            return self.introspected(uri, text).await;
        }
        let token = Token::parse(text)?;
        let claims = self.keys.verify(&token, self.clock.now_s()).await?;
        let types: Vec<&str> = match &self.config.provider.token_types {
            Some(types) => types.iter().map(String::as_str).collect(),
            None => TYPES.to_vec(),
        };
        let (issuer, audiences) = (self.issuer.as_str(), [self.audience.as_str()]);
        Expected { types: &types, issuer, audiences: &audiences, now_s: self.clock.now_s() }
            .check(&token.header, &claims)?;
        self.check_client(&claims)?;
        Ok(claims)
    }

    fn check_client(&self, claims: &Claims) -> Result<(), Refused> {
        let Some(pinned) = self.config.provider.pinned_client.as_deref() else { return Ok(()) };
        let client = claims.get("azp").or_else(|| claims.get("client_id")).and_then(Value::as_str);
        if client == Some(pinned) { Ok(()) } else { Err(Refused::Client) }
    }

    async fn introspected(&self, uri: &str, token: &str) -> Result<Claims, Option<Refused>> {
        let (digest, now) = (sha256(token), self.clock.now_s());
        let held = self.answers.lock().unwrap_or_else(PoisonError::into_inner).get(&digest).cloned();
        if let Some((claims, until)) = held
            && now < until
        {
            return Ok(claims);
        }
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
        let expires = claims.get("exp").and_then(Value::as_u64).unwrap_or(u64::MAX);
        if expires <= now {
            return Err(Some(Refused::Expired));
        }
        self.check_client(&claims)?;
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= MOST_ANSWERS {
            answers.retain(|_, (_, until)| *until > now);
            if answers.len() >= MOST_ANSWERS {
                answers.clear();
            }
        }
        answers.insert(digest, (claims.clone(), expires.min(now + ANSWER_S)));
        Ok(claims)
    }
}
