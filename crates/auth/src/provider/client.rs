//! A client of the OpenID provider: code flow with PKCE, state, nonce and issuer checks.

use std::{sync::Arc, time::Duration};

use axum::response::Response;
use gatewright_core::read_json;
use http::StatusCode;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::tokens::{ProviderTokens, TokenResponse};
use crate::{
    authorizations::Authorizations,
    config::{LoginSource, Mode},
    context::Context,
    crypto::{b64, same, sha256},
    fetch::{FetchError, Fetched, Fetcher},
    keys::{Claims, Expected, Token},
    records::{AuthorizationRequest, ProviderLogin},
    store::{Key, StoreError},
    transparent::{ProviderMetadata, RemoteKeys, discover},
    users::PROVIDER_PREFIX,
    web::responses::{ProviderUnavailable, bad_request, page, redirect, with_query},
};

const MAX_RESPONSE_BYTES: usize = 256 * 1024;

/// The identity provider.
pub(crate) struct Provider {
    pub(super) ctx: Arc<Context>,
    issuer: String,
    client_id: String,
    secret: Option<SecretString>,
    scopes: String,
    fetcher: Fetcher,
    keys: RemoteKeys,
    discovered: OnceCell<ProviderMetadata>,
}

/// A login at the provider that failed.
pub(crate) enum LoginError {
    /// The provider does not answer.
    Unavailable(String),
    /// The provider did not confirm the user.
    Refused(String),
}

impl Provider {
    /// The provider of the configuration, if it has one.
    ///
    /// # Errors
    /// No client for outgoing requests can be made.
    pub(crate) fn from_config(ctx: Arc<Context>) -> Result<Option<Self>, String> {
        let config = &ctx.config;
        if config.mode != Mode::Orchestrated || config.kind != LoginSource::Remote {
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
            keys: RemoteKeys::new(provider, fetcher.clone(), ctx.metrics.clone()),
            fetcher,
            discovered: OnceCell::new(),
            ctx: ctx.clone(),
        }))
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    pub(crate) async fn metadata(&self) -> Result<&ProviderMetadata, String> {
        self.discovered.get_or_try_init(|| discover(&self.fetcher, &self.issuer)).await
    }

    /// Sends the browser to the provider.
    pub(crate) async fn begin(
        &self,
        authorizations: &Authorizations,
        id: &str,
        mut request: AuthorizationRequest,
        status: StatusCode,
    ) -> Result<Response, StoreError> {
        let metadata = match self.metadata().await {
            Ok(metadata) => metadata,
            Err(error) => {
                tracing::error!(error, "the identity provider cannot be used");
                return Ok(unavailable_page());
            }
        };
        let Some(endpoint) = &metadata.authorization_endpoint else {
            tracing::error!("the identity provider's metadata names no authorization_endpoint");
            return Ok(unavailable_page());
        };
        let ctx = &self.ctx;
        let Some(record) = authorizations.record(id).await? else {
            return Ok(bad_request("This sign-in is over."));
        };
        let login = ProviderLogin {
            issuer: self.issuer.clone(),
            state: ctx.new_secret(),
            nonce: ctx.new_secret(),
            verifier: ctx.new_secret(),
        };
        let challenge = b64(sha256(&login.verifier));
        let callback = self.ctx.url("/oauth/callback");
        let pairs = [
            ("response_type", "code"),
            ("client_id", self.client_id.as_str()),
            ("redirect_uri", &callback),
            ("scope", &self.scopes),
            ("state", &login.state),
            ("nonce", &login.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        let max_age = request.login.max_age.map(|seconds| seconds.to_string());
        let mut pairs = pairs.to_vec();
        pairs.extend(request.login.force.then_some(("prompt", "login")));
        pairs.extend(max_age.as_deref().map(|seconds| ("max_age", seconds)));
        pairs.extend(request.login.hint.as_deref().map(|hint| ("login_hint", hint)));
        let target = with_query(endpoint, &pairs);
        let life = Duration::from_millis(request.expires_ms.saturating_sub(ctx.clock.now_ms()).max(1));
        ctx.store.put(&Key::secret("upstream", &login.state), id.as_bytes(), life).await?;
        request.upstream = Some(login);
        authorizations.save(id, &record, &request).await?;
        Ok(redirect(status, &target))
    }

    /// Exchanges a code, and returns the claims of the user and the provider's tokens.
    pub(crate) async fn exchange(
        &self,
        code: &str,
        login: &ProviderLogin,
    ) -> Result<(Claims, ProviderTokens), LoginError> {
        let metadata = self.metadata().await.map_err(LoginError::Unavailable)?;
        let callback = self.ctx.url("/oauth/callback");
        let pairs = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", callback.as_str()),
            ("code_verifier", &login.verifier),
        ];
        let answer = self.request(metadata, pairs).await.map_err(|error| match error.is_temporary() {
            true => LoginError::Unavailable(error.to_string()),
            false => LoginError::Refused(error.to_string()),
        })?;
        let tokens = answer.tokens(&self.ctx).map_err(LoginError::Refused)?;
        let missing = || LoginError::Refused("the token answer has no id_token".to_owned());
        let id_token = answer.id_token.as_deref().ok_or_else(missing)?;
        let claims = self.verify_id_token(id_token, Some(&login.nonce)).await?;
        if tokens.refresh_token.is_none() {
            tracing::info!(
                "the identity provider gave no refresh token, so whether it still knows the user cannot be asked: refreshing ends \
                 with `session.absoluteTtl`; `provider.scopes` may need `offline_access`"
            );
        }
        Ok((claims, tokens))
    }

    /// Sends a token request.
    pub(super) async fn request<'a>(
        &'a self,
        metadata: &ProviderMetadata,
        mut pairs: Vec<(&'a str, &'a str)>,
    ) -> Result<TokenResponse, FetchError> {
        let basic = self.secret.as_ref().map(|secret| (self.client_id.as_str(), secret.expose_secret()));
        if basic.is_none() {
            pairs.push(("client_id", &self.client_id));
        }
        let endpoint = metadata.token_endpoint.as_ref().ok_or(FetchError::Refused)?;
        let Fetched { body, .. } =
            self.fetcher.post_form(endpoint, &pairs, basic, MAX_RESPONSE_BYTES).await?;
        Ok(read_json(&body).unwrap_or_default())
    }

    /// Returns the subject of a user of the provider. The issuer and its `sub` make the identity; a mail address never does.
    pub(crate) fn subject(&self, sub: &str) -> String {
        format!("{PROVIDER_PREFIX}{}#{sub}", self.issuer)
    }

    /// Verifies an ID token (OpenID Connect Core §3.1.3.7). `nonce` is that of the authorization request, if the token answers one.
    pub(super) async fn verify_id_token(
        &self,
        text: &str,
        nonce: Option<&str>,
    ) -> Result<Claims, LoginError> {
        let refused = |why: &str| LoginError::Refused(why.to_owned());
        let token = Token::parse(text).map_err(|why| refused(&why.to_string()))?;
        let now_s = self.ctx.clock.now_s();
        let claims = self.keys.verify(&token, now_s).await.map_err(|why| match why {
            None => LoginError::Unavailable("the keys cannot be had".to_owned()),
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
            return Err(refused("the ID token has no sub"));
        }
        Ok(claims)
    }
}

/// The page for a provider that does not answer.
pub(crate) fn unavailable_page() -> Response {
    let text = "The sign-in service is not available at the moment. Try again in a little while.";
    let mut response = page(StatusCode::SERVICE_UNAVAILABLE, text);
    response.headers_mut().insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("5"));
    response.extensions_mut().insert(ProviderUnavailable);
    response
}
