//! The resource server: who sends a request to the MCP endpoint.
//!
//! Tokens of our own server are verified once and remembered until they expire; whether they were revoked is asked of the store
//! again when an ending was announced ([`Endings`](crate::store::Endings)), and after [`RECHECK`] in any case. Tokens of an external provider are in `transparent`.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::body::Body;
use futures::future::BoxFuture;
use gatewright_core::{CallerAddress, Principal, Scopes, counted_address};
use http::{HeaderValue, Response, StatusCode, header, request::Parts};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use crate::{
    AuthorizationServer,
    ceiling::{ANONYMOUS, is_scope_token},
    crypto::sha256,
    dpop,
    keys::{Claims, Refused},
    metrics::Metrics,
    records::Grant,
    server::Core,
    store::{FamilyId, StoreError},
    transparent::Transparent,
};

/// How long a token that was revoked at another instance may still pass on one that saw it shortly before and did not hear of it: the
/// channel is not permitted, or broken at that moment.
pub const RECHECK: Duration = Duration::from_secs(5);
/// How often a stream looks whether its token of our own server is still good.
const STREAM_LOOK: Duration = Duration::from_secs(1);
/// Tokens remembered at most.
const MOST_REMEMBERED: usize = 10_000;
/// Fewer are not searched for those that nobody uses any more.
const LEAST_SWEPT: usize = 128;
/// A token that was not checked for that long, in milliseconds, is not used any more: it may be forgotten.
const UNUSED_MS: u64 = 60_000;

#[derive(Clone)]
struct Known {
    principal: Principal,
    expires_s: u64,
    checked_ms: u64,
    /// How many endings were known of before it was checked.
    endings: u64,
    /// What it came of, once that was looked up.
    grant: Option<Arc<(FamilyId, Grant)>>,
    jkt: Option<String>,
}

/// Tokens by their digests.
#[derive(Default)]
struct Remembered {
    all: HashMap<[u8; 32], Known>,
    /// At how many those that are not used any more are forgotten.
    sweep_at: usize,
}

impl Remembered {
    fn keep(&mut self, digest: [u8; 32], known: Known, now_ms: u64) {
        if self.all.len() >= self.sweep_at.max(LEAST_SWEPT) {
            self.all.retain(|_, held| held.checked_ms + UNUSED_MS > now_ms);
            if self.all.len() >= MOST_REMEMBERED {
                self.all.clear();
            }
            // Not at each token when many are in use.
            self.sweep_at = (2 * self.all.len()).min(MOST_REMEMBERED);
        }
        self.all.insert(digest, known);
    }
}

enum Source {
    Own(Arc<Core>),
    External(Arc<Transparent>),
}

struct Inner {
    source: Source,
    known: Mutex<Remembered>,
    metadata_url: String,
    scopes: String,
    /// Scopes of callers without a token; `None` when they are refused.
    anonymous: Option<Scopes>,
    metrics: Arc<Metrics>,
}

/// Checks the callers of a protected resource.
#[derive(Clone)]
pub struct ResourceServer {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for ResourceServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResourceServer").field("metadata", &self.inner.metadata_url).finish_non_exhaustive()
    }
}

/// What an `Authorization` header shows.
enum Shown<'a> {
    Nothing,
    Bearer(&'a str),
    Dpop(&'a str),
}

enum Denied {
    /// The header cannot be read.
    Malformed,
    Token(Refused),
    Proof(crate::server::OAuthError),
    Unavailable,
}

impl From<Refused> for Denied {
    fn from(why: Refused) -> Self {
        Self::Token(why)
    }
}

impl From<StoreError> for Denied {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "a caller cannot be checked: the token store failed");
        Self::Unavailable
    }
}

/// The address of the resource metadata (RFC 9728 §3.1): the path of the resource comes after the well-known part.
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
    /// The resource server for tokens of this authorization server.
    pub fn resource_server(&self) -> ResourceServer {
        let core = self.core().clone();
        let config = &core.config;
        let scopes = config.scopes.keys().cloned().collect::<Vec<_>>().join(" ");
        let anonymous = core.anonymous_scopes().map(Scopes::from);
        ResourceServer::new(
            Source::Own(core.clone()),
            metadata_url(&core.deployment.resource),
            scopes,
            anonymous,
        )
    }
}

impl ResourceServer {
    fn new(source: Source, metadata_url: String, scopes: String, anonymous: Option<Scopes>) -> Self {
        let metrics = match &source {
            Source::Own(core) => core.metrics.clone(),
            Source::External(validator) => validator.metrics().clone(),
        };
        let known = Mutex::default();
        Self { inner: Arc::new(Inner { source, known, metadata_url, scopes, anonymous, metrics }) }
    }

    /// The resource server for tokens of an external provider.
    pub fn transparent(validator: Transparent) -> Self {
        let validator = Arc::new(validator);
        let url = metadata_url(validator.resource());
        let scopes = validator.scopes();
        let anonymous = validator.anonymous();
        Self::new(Source::External(validator), url, scopes, anonymous)
    }

    /// The caller of a request, or the response to send instead: 401 with a challenge, or 503 when it cannot be told.
    pub fn authenticate<'a>(&'a self, parts: &'a Parts) -> BoxFuture<'a, Result<Principal, Response<Body>>> {
        Box::pin(async move {
            match self.who(parts).await {
                Ok(Some(principal)) => Ok(principal),
                Ok(None) => match &self.inner.anonymous {
                    Some(scopes) => {
                        Ok(Principal { subject: ANONYMOUS.into(), client_id: None, scopes: scopes.clone() })
                    }
                    None => Err(self.challenge(StatusCode::UNAUTHORIZED, None, "authentication is required")),
                },
                Err(denied) => Err(self.deny(denied)),
            }
        })
    }

    /// Done once the token that `parts` show would be refused: at its expiry, and within a second of a revocation that this instance
    /// hears of. A store that does not answer ends nothing. Never done for callers without a token.
    pub fn until_ended(&self, parts: &Parts) -> BoxFuture<'static, ()> {
        let token = match shown(parts) {
            Ok(Shown::Bearer(token) | Shown::Dpop(token)) => SecretString::from(token),
            Ok(Shown::Nothing) | Err(_) => return Box::pin(std::future::pending()),
        };
        let this = self.clone();
        let pause = match &self.inner.source {
            Source::Own(_) => STREAM_LOOK,
            // Nothing tells of endings, and each look may verify a signature.
            Source::External(_) => RECHECK,
        };
        Box::pin(async move {
            loop {
                tokio::time::sleep(pause).await;
                if matches!(this.known(token.expose_secret(), None).await, Err(Denied::Token(_))) {
                    return;
                }
            }
        })
    }

    /// The answer to a call that needs scopes its caller lacks: 403, with each of them once in the challenge and in the message
    /// (RFC 6750 §3.1).
    pub fn insufficient_scope(&self, missing: &[String]) -> Response<Body> {
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
            self.inner.metadata_url
        );
        respond(StatusCode::FORBIDDEN, &challenge, "insufficient_scope", &text)
    }

    fn challenge(&self, status: StatusCode, error: Option<&str>, text: &str) -> Response<Body> {
        let mut challenge = format!("Bearer resource_metadata=\"{}\"", self.inner.metadata_url);
        match error {
            Some(error) => challenge.push_str(&format!(", error=\"{error}\"")),
            None if !self.inner.scopes.is_empty() => {
                challenge.push_str(&format!(", scope=\"{}\"", self.inner.scopes))
            }
            None => {}
        }
        respond(status, &challenge, error.unwrap_or("unauthorized"), text)
    }

    fn deny(&self, denied: Denied) -> Response<Body> {
        match denied {
            // Of an external provider the keys cannot be had, which is counted where they are fetched.
            Denied::Unavailable if matches!(self.inner.source, Source::External(_)) => {}
            Denied::Unavailable => self.inner.metrics.store_failed(),
            _ => self.inner.metrics.auth_failed(),
        }
        match denied {
            Denied::Malformed => self.challenge(
                StatusCode::UNAUTHORIZED,
                Some("invalid_request"),
                "the Authorization header is malformed",
            ),
            Denied::Token(why) => {
                tracing::info!(%why, "a token was refused");
                self.challenge(StatusCode::UNAUTHORIZED, Some("invalid_token"), "the token is not usable")
            }
            Denied::Proof(error) => {
                let challenge = format!(
                    "DPoP error=\"{}\", resource_metadata=\"{}\"",
                    error.code, self.inner.metadata_url
                );
                let mut response =
                    respond(StatusCode::UNAUTHORIZED, &challenge, error.code, "the proof is not usable");
                if let Some(value) = error.dpop_nonce.and_then(|nonce| HeaderValue::try_from(nonce).ok()) {
                    response.headers_mut().insert("dpop-nonce", value);
                }
                response
            }
            Denied::Unavailable => {
                let mut response = respond(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "",
                    "temporarily_unavailable",
                    "try again later",
                );
                response.headers_mut().remove(header::WWW_AUTHENTICATE);
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
                response
            }
        }
    }

    async fn who(&self, parts: &Parts) -> Result<Option<Principal>, Denied> {
        let (token, is_dpop) = match shown(parts)? {
            Shown::Nothing => return Ok(None),
            Shown::Bearer(token) => (token, false),
            Shown::Dpop(token) => (token, true),
        };
        let caller = parts.extensions.get::<CallerAddress>();
        let network = caller.map(|caller| counted_address(caller.0));
        let known = self.known(token, network).await?;
        match (&known.jkt, is_dpop) {
            (None, false) => {}
            (Some(jkt), true) => {
                let Source::Own(core) = &self.inner.source else { return Err(Refused::Binding.into()) };
                let url = &core.deployment.resource;
                let shown =
                    dpop::of_resource(core, parts, url, token).await.map_err(|error| match error.status {
                        StatusCode::SERVICE_UNAVAILABLE => Denied::Unavailable,
                        _ => Denied::Proof(error),
                    })?;
                if shown.as_ref() != Some(jkt) {
                    return Err(Refused::Binding.into());
                }
            }
            _ => return Err(Refused::Binding.into()),
        }
        Ok(Some(known.principal))
    }

    /// What is known of a token that is good, which a caller of `network` shows.
    async fn known(&self, token: &str, network: Option<IpAddr>) -> Result<Known, Denied> {
        match &self.inner.source {
            Source::Own(core) => self.own(core, token).await,
            Source::External(validator) => {
                let claims = validator
                    .claims(token, network)
                    .await
                    .map_err(|why| why.map_or(Denied::Unavailable, Denied::Token))?;
                Ok(known(&claims, told_scopes(&claims))?)
            }
        }
    }

    /// The same of a token of our own server.
    async fn own(&self, core: &Core, token: &str) -> Result<Known, Denied> {
        if token.len() > crate::keys::MOST_TOKEN_BYTES {
            return Err(Refused::TooLong.into());
        }
        let digest = sha256(token);
        let (now, endings) = (core.clock.now_ms(), core.store.endings());
        let remembered = self.remembered().all.get(&digest).cloned();
        if let Some(held) = &remembered
            && held.expires_s + crate::keys::SKEW_S > now / 1000
            && held.endings == endings
            && now < held.checked_ms + RECHECK.as_millis() as u64
        {
            return Ok(held.clone());
        }
        let looked_up = self.look_up(core, token, remembered.and_then(|held| held.grant)).await;
        let entry = looked_up.inspect_err(|_| self.forget(&digest))?;
        let entry = Known { checked_ms: now, endings, ..entry };
        self.remembered().keep(digest, entry.clone(), now);
        Ok(entry)
    }

    /// The same asked of the keys and the store. `grant` is what the token came of, when that was looked up before.
    async fn look_up(
        &self,
        core: &Core,
        token: &str,
        grant: Option<Arc<(FamilyId, Grant)>>,
    ) -> Result<Known, Denied> {
        let claims = core.own_claims(token, &[&core.deployment.resource]).await?;
        let grant = match grant {
            Some(grant) => grant,
            None => Arc::new(core.grant_of(&claims).await?.ok_or(Refused::Revoked)?),
        };
        let scopes = core.live_scopes(&grant.0, &grant.1, &claims).await?.ok_or(Refused::Revoked)?;
        Ok(Known { grant: Some(grant), ..known(&claims, scopes.into())? })
    }

    fn forget(&self, digest: &[u8; 32]) {
        self.remembered().all.remove(digest);
    }

    fn remembered(&self) -> MutexGuard<'_, Remembered> {
        // Nothing panics while it holds the lock.
        self.inner.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the one `Authorization` header. Tokens anywhere else are not looked at.
fn shown(parts: &Parts) -> Result<Shown<'_>, Denied> {
    let mut headers = parts.headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = headers.next() else { return Ok(Shown::Nothing) };
    if headers.next().is_some() {
        return Err(Denied::Malformed);
    }
    let (scheme, token) =
        value.to_str().ok().and_then(|text| text.split_once(' ')).ok_or(Denied::Malformed)?;
    let token = token.trim();
    let fits =
        !token.is_empty() && token.bytes().all(|c| c.is_ascii_alphanumeric() || b"-._~+/=".contains(&c));
    match scheme {
        _ if !fits => Err(Denied::Malformed),
        scheme if scheme.eq_ignore_ascii_case("bearer") => Ok(Shown::Bearer(token)),
        scheme if scheme.eq_ignore_ascii_case("dpop") => Ok(Shown::Dpop(token)),
        _ => Err(Denied::Malformed),
    }
}

/// The scopes that a token of an external provider names.
fn told_scopes(claims: &Claims) -> Scopes {
    match claims.get("scope").or_else(|| claims.get("scp")) {
        Some(Value::String(text)) => Scopes::parse(text),
        Some(Value::Array(list)) => {
            Scopes::Granted(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        _ => Scopes::Granted(Default::default()),
    }
}

/// The caller that `claims` name. A token that names nobody is refused: two of them would be one caller, with one set of sessions.
fn known(claims: &Claims, scopes: Scopes) -> Result<Known, Refused> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let subject = text("sub").filter(|sub| !sub.is_empty()).ok_or(Refused::Subject)?;
    let client = text("client_id").or_else(|| text("azp"));
    Ok(Known {
        principal: Principal { subject: subject.into(), client_id: client.map(Into::into), scopes },
        expires_s: claims.get("exp").and_then(Value::as_u64).unwrap_or_default(),
        checked_ms: 0,
        endings: 0,
        grant: None,
        jkt: claims
            .get("cnf")
            .map(|cnf| cnf.get("jkt").and_then(Value::as_str).unwrap_or("unsupported").to_owned()),
    })
}

fn respond(status: StatusCode, challenge: &str, error: &str, text: &str) -> Response<Body> {
    let body = json!({"error": error, "error_description": text}).to_string();
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(value) = HeaderValue::try_from(challenge) {
        headers.insert(header::WWW_AUTHENTICATE, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_that_nobody_uses_any_more_are_forgotten_and_those_in_use_are_not() {
        let mut remembered = Remembered::default();
        let claims = Claims::from_iter([("sub".to_owned(), json!("user:a"))]);
        let token =
            |checked_ms| Known { checked_ms, ..known(&claims, Scopes::Granted(Default::default())).unwrap() };
        let used = sha256("used");
        for second in 0..10_000_u64 {
            let now = second * 1_000;
            remembered.keep(used, token(now), now);
            remembered.keep(sha256(second.to_string()), token(now), now);
            assert!(remembered.all.len() <= 2 * LEAST_SWEPT, "{} are remembered", remembered.all.len());
            assert!(remembered.all.contains_key(&used));
        }
        let now = 10_000_000;
        for number in 0..3 * MOST_REMEMBERED {
            remembered.keep(sha256(format!("at once {number}")), token(now), now);
            assert!(remembered.all.len() <= MOST_REMEMBERED);
        }
    }
}
