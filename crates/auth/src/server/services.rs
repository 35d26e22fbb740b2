//! The services behind the endpoints, as they depend on each other.

use std::sync::{Arc, OnceLock, Weak};

use gatewright_core::{ApprovalRecord, ApprovalStore, Approver, PlanQuestions};

use crate::{
    accounts::Accounts,
    authorizations::Authorizations,
    ceiling::{Ceiling, Grantor},
    clients::Clients,
    config::SessionMode,
    connections::Connections,
    consent_tools::{ConsentApp, ConsentTools, apps_in_reach},
    consents::Consents,
    context::Context,
    fetch::Fetcher,
    grants::Grants,
    keys::KeyRing,
    provider::Provider,
    relying_party::RelyingParty,
    scopes::RecordedScopes,
    sessions::Sessions,
    tokens::Tokens,
    users::Users,
};

/// Path of the account page.
pub(crate) const ACCOUNT_PATH: &str = "/oauth/account";
/// Path of the page where users decide on approvals.
pub(crate) const APPROVALS_PATH: &str = "/oauth/account/approvals";
/// Path of the page where users answer questions of plans.
pub(crate) const QUESTIONS_PATH: &str = "/oauth/account/questions";

/// The services of an authorization server.
pub(crate) struct Services {
    pub(crate) ctx: Arc<Context>,
    pub(crate) clients: Arc<Clients>,
    pub(crate) users: Arc<Users>,
    pub(crate) grants: Arc<Grants>,
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) sessions: Sessions,
    pub(crate) authorizations: Authorizations,
    pub(crate) consents: Consents,
    pub(crate) tokens: Tokens,
    /// The identity provider that logins are delegated to (`type: remote`).
    pub(crate) provider: Option<Provider>,
    /// Present when passkeys are on.
    pub(crate) relying_party: Option<RelyingParty>,
    consent_tools: OnceLock<Arc<dyn ConsentTools>>,
    /// Refers to these services in turn, so it must not own them.
    connections: OnceLock<Weak<dyn Connections>>,
    approvals: OnceLock<Arc<ApprovalStore>>,
    plans: OnceLock<Arc<dyn PlanQuestions>>,
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
        let accounts = Arc::new(Accounts::new(ctx.clone()));
        let passkeys = ctx.config.local.passkeys.enabled;
        Self {
            sessions: Sessions::new(ctx.clone(), grants.clone(), accounts.clone()),
            authorizations: Authorizations::new(ctx.clone()),
            consents: Consents::new(ctx.clone(), grants.clone()),
            tokens: Tokens::new(ctx.clone(), keys, clients.clone(), grants.clone()),
            relying_party: passkeys.then(|| RelyingParty::of(&ctx.deployment)).flatten(),
            provider,
            accounts,
            clients,
            users,
            grants,
            ctx,
            consent_tools: OnceLock::new(),
            connections: OnceLock::new(),
            approvals: OnceLock::new(),
            plans: OnceLock::new(),
        }
    }

    /// Sets the source of the tools on the consent page. The first one stays.
    pub(crate) fn set_consent_tools(&self, tools: Arc<dyn ConsentTools>) {
        let _ = self.consent_tools.set(tools);
    }

    /// Sets the source of the connections on the account page. The first one stays.
    pub(crate) fn set_connections(&self, connections: Weak<dyn Connections>) {
        let _ = self.connections.set(connections);
    }

    /// Returns the source of the connections on the account page.
    pub(crate) fn connections(&self) -> Option<Arc<dyn Connections>> {
        self.connections.get()?.upgrade()
    }

    /// Sets the approvals on the account page. The first ones stay.
    pub(crate) fn set_approvals(&self, approvals: Arc<ApprovalStore>) {
        let _ = self.approvals.set(approvals);
    }

    /// Returns the approvals that wait for a user; `None` where there are no approvals, or they cannot be read.
    pub(crate) async fn waiting_approvals(&self, sub: &str) -> Option<Vec<ApprovalRecord>> {
        let holds = |scope: &str| self.may_hold(sub, scope);
        let listed = self.approvals.get()?.list(Approver::User { subject: sub, holds: &holds }).await;
        listed.inspect_err(|error| tracing::warn!(%error, "approvals cannot be read")).ok()
    }

    /// Sets the plans whose questions are on the account page. The first ones stay.
    pub(crate) fn set_plans(&self, plans: Arc<dyn PlanQuestions>) {
        let _ = self.plans.set(plans);
    }

    /// Returns the number of plans that wait for a user, 50 at most; `None` where there are no plans, or they cannot be read.
    pub(crate) async fn waiting_plans(&self, sub: &str) -> Option<usize> {
        let waiting = self.plans.get()?.waiting(sub).await;
        let waiting =
            waiting.inspect_err(|error| tracing::warn!(%error, "questions of plans cannot be read"));
        Some(waiting.ok()?.len())
    }

    /// Returns `true` if a configured user may have `scope`. Users of another identity provider hold none here: their tokens elsewhere are not known.
    pub(crate) fn may_hold(&self, sub: &str, scope: &str) -> bool {
        let Some(user) = self.users.by_subject(sub) else { return false };
        let grantor = Grantor::User(user.config.scopes.as_deref());
        let ceiling = Ceiling { config: &self.ctx.config, grantor, client: None };
        !ceiling.narrow(&RecordedScopes::new(vec![scope.to_owned()])).is_empty()
    }

    /// Returns the address of the account page; `None` where sessions are not kept.
    pub(crate) fn account_url(&self) -> Option<String> {
        (self.ctx.config.session_mode == SessionMode::Stateful).then(|| self.ctx.url(ACCOUNT_PATH))
    }

    /// Returns the apps and tools that `scopes` reach; `None` when the tools are not known.
    pub(crate) fn apps_in_reach(&self, scopes: &[String]) -> Option<Vec<ConsentApp>> {
        Some(apps_in_reach(scopes, self.consent_tools.get()?.tools()))
    }
}
