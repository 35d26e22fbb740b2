//! Users' tokens at upstream servers: asked for by apps, which start before the authorization server that keeps them.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use gatewright_auth::{UpstreamProvider, UpstreamVault};
use gatewright_core::{AppFuture, Authorize, BearerToken, Principal, UserCredentials};
use gatewright_upstream::{OauthClient, UpstreamConfig};

/// The vault, once there is one. Clones are one.
#[derive(Clone, Default)]
pub struct UserTokens(Arc<Inner>);

#[derive(Default)]
struct Inner {
    vault: OnceLock<UpstreamVault>,
    /// Apps that started before there was a vault.
    early: Mutex<Vec<UpstreamProvider>>,
}

impl UserTokens {
    /// Serves the app `id` from now on.
    ///
    /// # Errors
    /// When no client for outgoing requests can be made.
    pub fn serve(&self, id: &str, upstream: &UpstreamConfig, oauth: &OauthClient) -> Result<(), String> {
        let provider = UpstreamProvider {
            app: id.to_owned(),
            resource: upstream.url.clone().unwrap_or_default(),
            client_id: oauth.client_id.clone(),
            client_secret: oauth.client_secret.as_ref().map(|secret| secret.expose().to_owned().into()),
            scopes: oauth.scopes.clone(),
            issuer: oauth.issuer.clone(),
            allow_private: oauth.allow_private,
        };
        let mut early = self.0.early.lock().unwrap_or_else(PoisonError::into_inner);
        match self.0.vault.get() {
            Some(vault) => vault.serve(provider),
            None => {
                early.push(provider);
                Ok(())
            }
        }
    }

    /// Gives the apps their vault.
    ///
    /// # Errors
    /// When no client for outgoing requests can be made.
    pub fn open(&self, vault: &UpstreamVault) -> Result<(), String> {
        let mut early = self.0.early.lock().unwrap_or_else(PoisonError::into_inner);
        let vault = self.0.vault.get_or_init(|| vault.clone());
        early.drain(..).try_for_each(|provider| vault.serve(provider))
    }

    fn vault(&self) -> Result<&UpstreamVault, String> {
        self.0.vault.get().ok_or_else(|| {
            "it needs users who sign in: serve over HTTP with `auth.mode: orchestrated`".to_owned()
        })
    }
}

impl UserCredentials for UserTokens {
    fn bearer<'a>(
        &'a self,
        app: &'a str,
        principal: &'a Principal,
    ) -> AppFuture<'a, Result<Option<BearerToken>, String>> {
        Box::pin(async move { self.vault()?.bearer(app, principal).await })
    }

    fn authorize<'a>(
        &'a self,
        app: &'a str,
        principal: &'a Principal,
    ) -> AppFuture<'a, Result<Authorize, String>> {
        Box::pin(async move { self.vault()?.authorize(app, principal).await })
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
