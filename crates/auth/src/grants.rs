//! The life of grants: token families, revocations, and the bounds of what can be granted.

use std::{sync::Arc, time::Duration};

use gatewright_core::{Groups, Principal};
use url::Url;

use crate::{
    ceiling::{Ceiling, GrantedScopes, Grantor},
    clients::OAuthClient,
    context::Context,
    error::OAuthError,
    error_codes::Code,
    records::Grant,
    scopes::{ANONYMOUS, RecordedScopes},
    store::{FamilyId, Key, StoreError},
    users::Users,
};

/// A revocation of everything that was granted until now to, by or in one of these.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Revocation<'a> {
    /// A user, by subject.
    User(&'a str),
    /// A client, by identifier.
    Client(&'a str),
    /// The consent of a user for a client.
    Consent { user: &'a str, client: &'a str },
    /// A browser session, by digest.
    Session(&'a str),
}

impl Revocation<'_> {
    fn key(self) -> Key {
        match self {
            Self::User(sub) => Key::named("cutoff", &["user", sub]),
            Self::Client(id) => Key::named("cutoff", &["client", id]),
            Self::Consent { user, client } => {
                Key::named("cutoff", &["consent", &format!("{user}\n{client}")])
            }
            Self::Session(digest) => Key::named("cutoff", &["session", digest]),
        }
    }
}

/// Grants of users and clients.
pub(crate) struct Grants {
    ctx: Arc<Context>,
    users: Arc<Users>,
}

impl Grants {
    pub(crate) fn new(ctx: Arc<Context>, users: Arc<Users>) -> Self {
        Self { ctx, users }
    }

    /// Ends a token family, at every instance.
    pub(crate) async fn end_family(&self, family: &FamilyId) -> Result<(), StoreError> {
        self.ctx.store.end_family(family).await?;
        self.ctx.store.announce().await;
        Ok(())
    }

    /// Ends everything that was granted until now, at every instance.
    pub(crate) async fn revoke(&self, revocation: Revocation<'_>) -> Result<(), StoreError> {
        let now = self.ctx.clock.now_ms().to_string();
        let config = &self.ctx.config;
        let lifetime = Duration::from_secs(config.refresh.absolute_ttl + config.session.absolute_ttl);
        self.ctx.store.put(&revocation.key(), now.as_bytes(), lifetime).await?;
        self.ctx.store.announce().await;
        Ok(())
    }

    /// Returns the records of the revocations that can end `grant`.
    pub(crate) fn revocation_keys(grant: &Grant) -> Vec<Key> {
        let mut keys = vec![
            Revocation::User(&grant.sub).key(),
            Revocation::Client(&grant.client).key(),
            Revocation::Consent { user: &grant.sub, client: &grant.client }.key(),
        ];
        keys.extend(grant.session.as_deref().map(|session| Revocation::Session(session).key()));
        keys
    }

    /// Returns whether nothing has ended `grant` since it was given.
    pub(crate) async fn is_active(&self, grant: &Grant) -> Result<bool, StoreError> {
        let revocations = self.ctx.store.get_many(&Self::revocation_keys(grant)).await?;
        Ok(self.is_active_given(grant, revocations.into_iter().flatten()))
    }

    /// Returns the same as [`Grants::is_active`], with the records of [`Grants::revocation_keys`] that exist.
    pub(crate) fn is_active_given(
        &self,
        grant: &Grant,
        revocations: impl IntoIterator<Item = Vec<u8>>,
    ) -> bool {
        let at = |value: Vec<u8>| std::str::from_utf8(&value).ok().and_then(|text| text.parse::<u64>().ok());
        let is_revoked =
            revocations.into_iter().any(|value| at(value).is_none_or(|at| grant.issued_ms <= at));
        !is_revoked && self.users.is_unchanged(grant)
    }

    /// Returns whether the user `sub`, where the configuration knows users, may sign in.
    pub(crate) fn may_sign_in(&self, sub: &str) -> bool {
        self.users.may_sign_in(sub)
    }

    /// Returns the groups of the user behind `grant`: those of the configuration, or those that the identity provider named last.
    pub(crate) fn groups_of(&self, grant: &Grant) -> Groups {
        self.users.groups_of(&grant.sub).unwrap_or_else(|| grant.person.groups.clone())
    }

    /// Returns the groups that `principal` is in now. Only those of users of the configuration can be looked up.
    pub(crate) fn groups_now(&self, principal: &Principal) -> Groups {
        self.users.groups_of(&principal.subject).unwrap_or_else(|| principal.groups.clone())
    }

    /// Returns the ceiling of a grant by `sub` to `client`. Before the login `sub` is empty, and no user limits it.
    pub(crate) fn ceiling<'a>(&'a self, sub: &str, client: &'a OAuthClient) -> Ceiling<'a> {
        self.ceiling_for(sub, &client.id, client.scopes.as_deref())
    }

    /// Returns the same as [`Grants::ceiling`] for a client whose identifier and scopes are known.
    pub(crate) fn ceiling_for<'a>(
        &'a self,
        sub: &str,
        client_id: &str,
        client: Option<&'a [String]>,
    ) -> Ceiling<'a> {
        let user = self.users.by_subject(sub);
        let grantor = match client_id {
            ANONYMOUS => Grantor::Anonymous,
            id if sub == id => Grantor::Client,
            _ => Grantor::User(user.and_then(|user| user.config.scopes.as_deref())),
        };
        Ceiling { config: &self.ctx.config, grantor, client }
    }

    /// Returns the scopes of callers without a login; `None` when they are refused.
    pub(crate) fn anonymous_scopes(&self) -> Option<GrantedScopes> {
        let config = &self.ctx.config;
        let all = RecordedScopes::new(config.anonymous_scopes.clone());
        let granted = || self.ceiling_for(ANONYMOUS, ANONYMOUS, None).narrow(&all);
        config.allow_default_public.then(granted)
    }

    /// Returns the resource that a request names (RFC 8707), or that of the main endpoint when it names none.
    ///
    /// # Errors
    /// `invalid_target` when it names another, or several: a grant is for one.
    pub(crate) fn resources(&self, requested: &[String]) -> Result<Vec<String>, OAuthError> {
        let named = self.named_resource(requested)?;
        Ok(vec![named.unwrap_or_else(|| self.ctx.deployment.resource.clone())])
    }

    /// Returns the resource that a request names; `None` when it names none.
    ///
    /// # Errors
    /// As [`Grants::resources`].
    pub(crate) fn named_resource(&self, requested: &[String]) -> Result<Option<String>, OAuthError> {
        let invalid = || OAuthError::new(Code::InvalidTarget, "the resource is not served here");
        let mut named: Option<String> = None;
        for resource in requested {
            let url = Url::parse(resource).ok().filter(|_| !resource.contains('#')).ok_or_else(invalid)?;
            let ours = self.ctx.deployment.resource_at(&url).ok_or_else(invalid)?;
            if named.as_ref().is_some_and(|before| *before != ours) {
                let text = "several resources are named; ask for a token for each";
                return Err(OAuthError::new(Code::InvalidTarget, text));
            }
            named = Some(ours);
        }
        Ok(named)
    }
}
