//! Users' tokens at upstream servers. Apps ask for them, and start before the authorization server that stores them.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use gatewright_auth::{OauthEndpoints, UpstreamProvider, UpstreamVault};
use gatewright_core::{AppFuture, Authorize, BearerToken, Principal, UserCredentials};
use gatewright_openapi::{ApiSignIn, SignInServer, UserSignIn};
use gatewright_upstream::{OauthClient, UpstreamConfig};

/// The vault of tokens, once the authorization server has started. Clones share it.
#[derive(Clone, Default)]
pub struct UserTokens(Arc<VaultSlot>);

#[derive(Default)]
struct VaultSlot {
    vault: OnceLock<UpstreamVault>,
    /// Providers of apps that started before the vault was open.
    waiting: Mutex<Vec<UpstreamProvider>>,
}

impl std::fmt::Debug for UserTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserTokens").finish_non_exhaustive()
    }
}

impl UserTokens {
    /// Stores tokens for the app `id` from now on.
    ///
    /// # Errors
    /// No client for outgoing requests can be made.
    pub fn serve(&self, id: &str, upstream: &UpstreamConfig, oauth: &OauthClient) -> Result<(), String> {
        let provider = UpstreamProvider {
            app: id.to_owned(),
            resource: upstream.url.clone().unwrap_or_default(),
            client_id: oauth.client_id.clone(),
            client_secret: oauth.client_secret.as_ref().map(|secret| secret.expose().to_owned().into()),
            scopes: oauth.scopes.clone(),
            issuer: oauth.issuer.clone(),
            allow_private: oauth.allow_private,
            is_mcp: true,
            endpoints: None,
            parameters: Vec::new(),
        };
        self.connect(provider)
    }

    fn connect(&self, provider: UpstreamProvider) -> Result<(), String> {
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match self.0.vault.get() {
            Some(vault) => vault.serve(provider),
            None => {
                waiting.push(provider);
                Ok(())
            }
        }
    }

    /// Opens the vault for all apps.
    ///
    /// # Errors
    /// No client for outgoing requests can be made.
    pub(super) fn open(&self, vault: &UpstreamVault) -> Result<(), String> {
        let mut waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let vault = self.0.vault.get_or_init(|| vault.clone());
        waiting.drain(..).try_for_each(|provider| vault.serve(provider))
    }

    fn vault(&self) -> Result<&UpstreamVault, String> {
        self.0.vault.get().ok_or_else(|| {
            "the app needs users who sign in: serve over HTTP with `auth.mode: orchestrated`".to_owned()
        })
    }
}

impl UserCredentials for UserTokens {
    fn bearer<'a>(
        &'a self,
        app: &'a str,
        principal: &'a Principal,
        scopes: &'a [String],
    ) -> AppFuture<'a, Result<Option<BearerToken>, String>> {
        Box::pin(async move { self.vault()?.bearer(app, principal, scopes).await })
    }

    fn authorize<'a>(
        &'a self,
        app: &'a str,
        principal: &'a Principal,
        scopes: &'a [String],
    ) -> AppFuture<'a, Result<Authorize, String>> {
        Box::pin(async move { self.vault()?.authorize(app, principal, scopes).await })
    }

    fn refused<'a>(
        &'a self,
        app: &'a str,
        principal: &'a Principal,
        token: &'a BearerToken,
    ) -> AppFuture<'a, Result<Option<BearerToken>, String>> {
        Box::pin(async move { self.vault()?.refused(app, principal, token).await })
    }
}

impl UserSignIn for UserTokens {
    fn serve(&self, app: &str, sign_in: ApiSignIn) -> Result<(), String> {
        let (issuer, endpoints) = match sign_in.server {
            SignInServer::Issuer(issuer) => (Some(issuer), None),
            SignInServer::Endpoints { authorization, token, refresh } => {
                let secret_in_form = sign_in.secret_in_body;
                (sign_in.issuer, Some(OauthEndpoints { authorization, token, refresh, secret_in_form }))
            }
        };
        self.connect(UpstreamProvider {
            app: app.to_owned(),
            resource: sign_in.resource,
            is_mcp: false,
            client_id: sign_in.client_id,
            client_secret: sign_in.client_secret.map(|secret| secret.expose().to_owned().into()),
            scopes: sign_in.scopes,
            issuer,
            endpoints,
            parameters: sign_in.parameters,
            allow_private: sign_in.allow_private,
        })
    }
}
