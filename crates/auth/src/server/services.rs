//! The services behind the endpoints, as they depend on each other.

use std::sync::{Arc, OnceLock};

use crate::{
    authorizations::Authorizations,
    clients::Clients,
    consent_tools::{ConsentApp, ConsentTools, apps_in_reach},
    consents::Consents,
    context::Context,
    fetch::Fetcher,
    grants::Grants,
    keys::KeyRing,
    provider::Provider,
    relying_party::RelyingParty,
    sessions::Sessions,
    tokens::Tokens,
    users::Users,
};

/// The services of an authorization server.
pub(crate) struct Services {
    pub(crate) ctx: Arc<Context>,
    pub(crate) clients: Arc<Clients>,
    pub(crate) users: Arc<Users>,
    pub(crate) grants: Arc<Grants>,
    pub(crate) sessions: Sessions,
    pub(crate) authorizations: Authorizations,
    pub(crate) consents: Consents,
    pub(crate) tokens: Tokens,
    /// The identity provider that logins are delegated to (`type: remote`).
    pub(crate) provider: Option<Provider>,
    /// Present when passkeys are on.
    pub(crate) relying_party: Option<RelyingParty>,
    consent_tools: OnceLock<Arc<dyn ConsentTools>>,
}

impl Services {
    pub(crate) async fn new(
        ctx: Arc<Context>,
        keys: KeyRing,
        fetcher: Fetcher,
        provider: Option<Provider>,
    ) -> Self {
        let clients = Arc::new(Clients::new(ctx.clone(), fetcher));
        let users = Arc::new(Users::new(ctx.clone()).await);
        let grants = Arc::new(Grants::new(ctx.clone(), users.clone()));
        let passkeys = ctx.config.local.passkeys.enabled;
        Self {
            sessions: Sessions::new(ctx.clone(), grants.clone()),
            authorizations: Authorizations::new(ctx.clone()),
            consents: Consents::new(ctx.clone(), grants.clone()),
            tokens: Tokens::new(ctx.clone(), keys, clients.clone(), grants.clone()),
            relying_party: passkeys.then(|| RelyingParty::of(&ctx.deployment)).flatten(),
            provider,
            clients,
            users,
            grants,
            ctx,
            consent_tools: OnceLock::new(),
        }
    }

    /// Sets the source of the tools on the consent page. The first one stays.
    pub(crate) fn set_consent_tools(&self, tools: Arc<dyn ConsentTools>) {
        let _ = self.consent_tools.set(tools);
    }

    /// Returns the apps and tools that `scopes` reach; `None` when the tools are not known.
    pub(crate) fn apps_in_reach(&self, scopes: &[String]) -> Option<Vec<ConsentApp>> {
        Some(apps_in_reach(scopes, self.consent_tools.get()?.tools()))
    }
}
