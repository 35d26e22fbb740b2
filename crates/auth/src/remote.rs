//! Login at an external OpenID provider (`type: remote`): code flow with PKCE, state, nonce and issuer checks.
//!
//! The provider's tokens go to the vault of the session, encrypted; ours are issued as for any other login, and refreshed only while the
//! provider confirms the user (`recheck`).

mod recheck;

use std::{sync::Arc, time::Duration};

use axum::{body::Body, extract::State, response::Response};
use http::{Request, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::{
    config::{AuthConfig, Kind, Mode},
    crypto::{b64, mint, same, sha256, sha256_hex},
    fetch::{FetchError, Fetched, Fetcher},
    keys::{Claims, Expected, SKEW_S, Token},
    records::{Pending, Person, Session, Upstream},
    server::{
        Core, Elsewhere,
        steps::{PENDING_LIFE, cookie, page, redirect, store_page, with_query},
    },
    store::{Key, StoreError},
    transparent::{Discovered, RemoteKeys, discover},
};

pub(crate) use self::recheck::Standing;

const MOST_ANSWER: usize = 256 * 1024;

/// The provider logins are delegated to.
pub(crate) struct Provider {
    issuer: String,
    client_id: String,
    secret: Option<SecretString>,
    scopes: String,
    fetcher: Fetcher,
    keys: RemoteKeys,
    discovered: OnceCell<Discovered>,
}

/// What the vault holds.
#[derive(Serialize, Deserialize)]
struct Vaulted {
    access_token: String,
    refresh_token: Option<String>,
    expires_s: u64,
    /// When the provider confirmed the user last, in seconds.
    #[serde(default)]
    checked_s: u64,
}

/// Why a login came to nothing.
enum NotConfirmed {
    /// The provider does not answer.
    Down(String),
    Refused(String),
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    access_token: Option<String>,
    refresh_token: Option<String>,
    id_token: Option<String>,
    expires_in: Option<u64>,
}

impl Provider {
    pub(crate) fn from_config(
        config: &AuthConfig,
        metrics: Arc<crate::Metrics>,
    ) -> Result<Option<Self>, String> {
        if config.mode != Mode::Orchestrated || config.kind != Kind::Remote {
            return Ok(None);
        }
        let provider = &config.provider;
        let fetcher = Fetcher::new(provider.allow_private)?;
        let mut scopes = provider.scopes.clone();
        if !scopes.iter().any(|scope| scope == "openid") {
            scopes.insert(0, "openid".to_owned());
        }
        Ok(Some(Self {
            issuer: provider.url.clone().unwrap_or_default(),
            client_id: provider.client_id.clone().unwrap_or_default(),
            secret: provider.client_secret.clone(),
            scopes: scopes.join(" "),
            keys: RemoteKeys::new(provider, fetcher.clone(), metrics),
            fetcher,
            discovered: OnceCell::new(),
        }))
    }

    async fn metadata(&self) -> Result<&Discovered, String> {
        self.discovered.get_or_try_init(|| discover(&self.fetcher, &self.issuer)).await
    }

    /// Sends the browser to the provider.
    pub(crate) async fn begin(
        &self,
        core: &Core,
        id: &str,
        mut pending: Pending,
        status: StatusCode,
    ) -> Result<Response, StoreError> {
        let metadata = match self.metadata().await {
            Ok(metadata) => metadata,
            Err(error) => {
                tracing::error!(error, "the identity provider cannot be used");
                return Ok(down_page());
            }
        };
        let held = core.store.get(&Key::secret("pending", id)).await?;
        let upstream = Upstream {
            state: mint::<32>(&*core.entropy),
            nonce: mint::<32>(&*core.entropy),
            verifier: mint::<32>(&*core.entropy),
        };
        let challenge = b64(sha256(&upstream.verifier));
        let callback = core.url("/oauth/callback");
        let pairs = [
            ("response_type", "code"),
            ("client_id", self.client_id.as_str()),
            ("redirect_uri", &callback),
            ("scope", &self.scopes),
            ("state", &upstream.state),
            ("nonce", &upstream.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        let max_age = pending.wish.max_age.map(|seconds| seconds.to_string());
        let mut pairs = pairs.to_vec();
        pairs.extend(pending.wish.again.then_some(("prompt", "login")));
        pairs.extend(max_age.as_deref().map(|seconds| ("max_age", seconds)));
        pairs.extend(pending.wish.hint.as_deref().map(|hint| ("login_hint", hint)));
        let target = with_query(&metadata.authorization_endpoint, &pairs);
        let life = Duration::from_millis(pending.expires_ms.saturating_sub(core.clock.now_ms()).max(1));
        core.store.put(&Key::secret("upstream", &upstream.state), id.as_bytes(), life).await?;
        pending.upstream = Some(upstream);
        core.keep_pending(id, held.as_deref(), &pending).await?;
        Ok(redirect(status, &target))
    }

    async fn exchange(
        &self,
        core: &Core,
        code: &str,
        upstream: &Upstream,
    ) -> Result<(Claims, Vaulted), NotConfirmed> {
        let metadata = self.metadata().await.map_err(NotConfirmed::Down)?;
        let callback = core.url("/oauth/callback");
        let pairs = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", callback.as_str()),
            ("code_verifier", &upstream.verifier),
        ];
        let answer =
            self.ask(&metadata.token_endpoint, pairs).await.map_err(|error| match error.passes() {
                true => NotConfirmed::Down(error.to_string()),
                false => NotConfirmed::Refused(error.to_string()),
            })?;
        let vaulted = answer.vaulted(core).map_err(NotConfirmed::Refused)?;
        let missing = || NotConfirmed::Refused("the token answer has no id_token".to_owned());
        let id_token = answer.id_token.as_deref().ok_or_else(missing)?;
        let claims = self.identity(core, id_token, Some(&upstream.nonce)).await?;
        if vaulted.refresh_token.is_none() {
            tracing::info!(
                "the identity provider gave no refresh token, so whether it still knows the user cannot be asked: refreshing ends \
                 with `session.absoluteTtl`; `provider.scopes` may need `offline_access`"
            );
        }
        Ok((claims, vaulted))
    }

    /// A token request as the client that we are there.
    async fn ask<'a>(
        &'a self,
        token_endpoint: &str,
        mut pairs: Vec<(&'a str, &'a str)>,
    ) -> Result<Answer, FetchError> {
        let basic = self.secret.as_ref().map(|secret| (self.client_id.as_str(), secret.expose_secret()));
        if basic.is_none() {
            pairs.push(("client_id", &self.client_id));
        }
        let Fetched { body, .. } = self.fetcher.post_form(token_endpoint, &pairs, basic, MOST_ANSWER).await?;
        Ok(serde_json::from_slice(&body).unwrap_or_default())
    }

    /// What a user of the provider is called here.
    fn subject(&self, sub: &str) -> String {
        format!("idp:{}#{sub}", self.issuer)
    }

    /// Checks an ID token (OpenID Connect Core §3.1.3.7).
    /// `nonce` is that of the request, for an answer to one.
    async fn identity(&self, core: &Core, text: &str, nonce: Option<&str>) -> Result<Claims, NotConfirmed> {
        let refused = |why: &str| NotConfirmed::Refused(why.to_owned());
        let token = Token::parse(text).map_err(|why| refused(&why.to_string()))?;
        let now_s = core.clock.now_s();
        let claims = self.keys.verify(&token, now_s).await.map_err(|why| match why {
            None => NotConfirmed::Down("the keys cannot be had".to_owned()),
            Some(why) => refused(&why.to_string()),
        })?;
        let audiences = [self.client_id.as_str()];
        Expected { types: &["jwt", ""], issuer: &self.issuer, audiences: &audiences, now_s }
            .check(&token.header, &claims)
            .map_err(|why| refused(&why.to_string()))?;
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        let several = claims.get("aud").and_then(Value::as_array).is_some_and(|list| list.len() > 1);
        if (several || claims.contains_key("azp")) && text("azp") != Some(&self.client_id) {
            return Err(refused("the ID token is for another party"));
        }
        if nonce.is_some_and(|nonce| !same(text("nonce").unwrap_or_default(), nonce)) {
            return Err(refused("the ID token has another nonce"));
        }
        if text("sub").is_none_or(str::is_empty) {
            return Err(refused("the ID token names nobody"));
        }
        Ok(claims)
    }
}

/// Where the provider sends the browser back to.
pub(crate) async fn callback(State(core): State<Arc<Core>>, request: Request<Body>) -> Response {
    let (parts, _) = request.into_parts();
    match core.come_back(&parts).await {
        Ok(response) | Err(response) => response,
    }
}

impl Core {
    async fn come_back(&self, parts: &http::request::Parts) -> Result<Response, Response> {
        let bad = |text: &str| page(StatusCode::BAD_REQUEST, text);
        let provider = self.provider.as_ref().ok_or_else(|| bad("No sign-in service is configured."))?;
        let query: Vec<(String, String)> =
            url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes())
                .into_owned()
                .collect();
        let get = |name: &str| query.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str());
        let state =
            get("state").ok_or_else(|| bad("The answer of the sign-in service cannot be matched."))?;
        // Single use: taken before anything else is looked at.
        let id = self.store.take(&Key::secret("upstream", state)).await.map_err(store_page)?;
        let id = id
            .and_then(|id| String::from_utf8(id).ok())
            .ok_or_else(|| bad("The answer of the sign-in service cannot be matched."))?;
        let (mut pending, held, _) = self.pending(&parts.headers, &id).await?;
        let upstream = pending
            .upstream
            .take()
            .filter(|upstream| same(&upstream.state, state))
            .ok_or_else(|| bad("The answer of the sign-in service cannot be matched."))?;
        let metadata = provider.metadata().await.map_err(|_| down_page())?;
        let other = get("iss").is_some_and(|iss| iss != provider.issuer);
        if other || (metadata.authorization_response_iss_parameter_supported && get("iss").is_none()) {
            return Err(bad("The answer is from another sign-in service."));
        }
        if get("error").is_some() {
            self.store.remove(&Key::secret("pending", &id)).await.map_err(store_page)?;
            return Ok(self.refuse(
                &pending,
                "access_denied",
                "the sign-in service said no",
                StatusCode::FOUND,
            ));
        }
        let code = get("code").ok_or_else(|| bad("The answer of the sign-in service has no code."))?;
        let ip = self.caller(parts);
        let (claims, tokens) = provider.exchange(self, code, &upstream).await.map_err(|error| {
            self.tell("login.failed", None, Some(&pending.grant.client), Some(ip), None);
            match error {
                NotConfirmed::Down(why) => {
                    tracing::error!(why, "the identity provider cannot be used");
                    down_page()
                }
                NotConfirmed::Refused(why) => {
                    tracing::warn!(why, "a login at the identity provider failed");
                    bad("The sign-in service did not confirm who you are.")
                }
            }
        })?;
        let text = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default();
        let known = |name: &str| Some(crate::pages::plain(text(name), 254)).filter(|text| !text.is_empty());
        let now = self.clock.now_ms();
        let Some(auth_s) = login_time(&claims, &pending, now / 1000) else {
            self.store.remove(&Key::secret("pending", &id)).await.map_err(store_page)?;
            let text = "the sign-in service did not ask the user to sign in again";
            return Ok(self.refuse(&pending, "login_required", text, StatusCode::FOUND));
        };
        // The issuer and its subject make the identity; a mail address never does.
        let sub = provider.subject(text("sub"));
        let session = Session {
            name: crate::pages::plain(text("name"), 80),
            sub,
            auth_s,
            started_ms: now,
            seen_ms: now,
            credential: None,
            person: Person { name: known("name"), email: known("email") },
        };
        self.tell("login.ok", Some(&session.sub), Some(&pending.grant.client), Some(ip), None);
        let response =
            self.logged_in(&parts.headers, &id, &mut pending, &held, &session).await.map_err(store_page)?;
        if let Some(session_id) = session_cookie(&response, &self.cookie_name("session")) {
            self.keep_tokens(&sha256_hex(&session_id), &tokens).await.map_err(store_page)?;
        }
        Ok(response)
    }

    /// Puts the provider's tokens into the vault of the session with this digest. They are needed as long as what came of the session.
    async fn keep_tokens(&self, session: &str, tokens: &Vaulted) -> Result<(), StoreError> {
        let key = Key::of_digest("vault", session);
        let plain = serde_json::to_vec(tokens).unwrap_or_default();
        let sealed = self.sealer.seal(&*self.entropy, key.as_str(), &plain);
        let refresh = &self.config.refresh;
        let granted_s = if refresh.enabled { refresh.absolute_ttl } else { 0 };
        let life = Duration::from_secs(self.config.session.absolute_ttl.max(granted_s));
        self.store.put(&key, &sealed, life).await
    }

    /// Those tokens. What cannot be opened was given up with its key.
    async fn provider_tokens(&self, key: &Key) -> Result<Option<Vaulted>, StoreError> {
        let held = self.store.get(key).await?;
        let plain = held.and_then(|sealed| self.sealer.open(key.as_str(), &sealed));
        Ok(plain.and_then(|plain| serde_json::from_slice(&plain).ok()))
    }
}

impl Answer {
    fn vaulted(&self, core: &Core) -> Result<Vaulted, String> {
        let access_token = self.access_token.clone().filter(|token| !token.is_empty());
        let now_s = core.clock.now_s();
        Ok(Vaulted {
            access_token: access_token.ok_or("the token answer has no access_token")?,
            refresh_token: self.refresh_token.clone().filter(|token| !token.is_empty()),
            expires_s: now_s + self.expires_in.unwrap_or(300),
            checked_s: now_s,
        })
    }
}

/// The provider does not answer: nothing that the user did, and not the store either.
fn down_page() -> Response {
    let text = "The sign-in service is not available at the moment. Try again in a little while.";
    let mut response = page(StatusCode::SERVICE_UNAVAILABLE, text);
    response.headers_mut().insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("5"));
    response.extensions_mut().insert(Elsewhere);
    response
}

/// When the user signed in at the provider; `None` when that is not as recent as the client wants, or the provider does not tell although
/// the client wants to know.
fn login_time(claims: &Claims, pending: &Pending, now_s: u64) -> Option<u64> {
    let told = claims.get("auth_time").and_then(Value::as_u64).map(|at| at.min(now_s));
    let (wish, began_s) = (&pending.wish, pending.expires_ms / 1000 - PENDING_LIFE.as_secs());
    let oldest = match wish.max_age {
        _ if wish.again => Some(began_s),
        Some(seconds) => Some(now_s.saturating_sub(seconds).min(began_s)),
        None => None,
    };
    match told {
        Some(at) => oldest.is_none_or(|oldest| at + SKEW_S >= oldest).then_some(at),
        // `auth_time` is owed when `max_age` is asked for (OpenID Connect Core §2).
        None => wish.max_age.is_none().then_some(now_s),
    }
}

fn session_cookie(response: &Response, name: &str) -> Option<String> {
    let mut as_request = http::HeaderMap::new();
    for value in response.headers().get_all(http::header::SET_COOKIE) {
        let pair = value.to_str().ok()?.split(';').next()?.to_owned();
        as_request.append(http::header::COOKIE, http::HeaderValue::try_from(pair).ok()?);
    }
    cookie(&as_request, name)
}
