//! Login at an external OpenID provider (`type: remote`): code flow with PKCE, state, nonce and issuer checks.
//!
//! Here is what is asked of the provider and how its answers are checked. The browser comes back in `callback`; the provider's tokens go to the
//! `vault` of the session, encrypted; ours are issued as for any other login, and refreshed only while the provider confirms the user
//! (`recheck`).

mod callback;
mod recheck;
mod vault;

use std::{sync::Arc, time::Duration};

use axum::response::Response;
use http::StatusCode;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::{
    config::{AuthConfig, Kind, Mode},
    crypto::{b64, mint, same, sha256},
    fetch::{FetchError, Fetched, Fetcher},
    keys::{Claims, Expected, Token},
    records::{Pending, Upstream},
    server::{
        Core, Elsewhere,
        steps::{page, redirect, with_query},
    },
    store::{Key, StoreError},
    transparent::{Discovered, RemoteKeys, discover},
};

use self::vault::Vaulted;
pub(crate) use self::{callback::callback, recheck::Standing};

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
            issuer: self.issuer.clone(),
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

/// The provider does not answer: nothing that the user did, and not the store either.
fn down_page() -> Response {
    let text = "The sign-in service is not available at the moment. Try again in a little while.";
    let mut response = page(StatusCode::SERVICE_UNAVAILABLE, text);
    response.headers_mut().insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("5"));
    response.extensions_mut().insert(Elsewhere);
    response
}
