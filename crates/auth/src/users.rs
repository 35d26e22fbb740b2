//! Users of the built-in login, and their passwords.

use std::{collections::HashMap, sync::Arc, time::Duration};

use gatewright_core::Groups;

use crate::{
    config::{LoginMethod, UserConfig},
    context::Context,
    crypto::{derive, sha256_hex},
    error::OAuthError,
    first_user::FirstUser,
    hashing::PasswordCheckQueue,
    lockout::Lockout,
    net::ClientAddress,
    password::{Decoys, PasswordHash},
    records::{Grant, Session, UserClaims},
    tuning::LOCKOUT_WINDOW,
};

/// Prefix of the subject of a configured user.
pub(crate) const USER_PREFIX: &str = "user:";
/// Prefix of the subject of a user of the identity provider.
pub(crate) const PROVIDER_PREFIX: &str = "idp:";

/// A configured user.
pub(crate) struct User {
    pub(crate) config: UserConfig,
    /// Password hash; `None` when the user signs in with passkeys only.
    pub(crate) hash: Option<PasswordHash>,
    /// Fingerprint of the password hash.
    pub(crate) credential: String,
    pub(crate) groups: Groups,
}

impl User {
    /// Returns the user of a configuration; `None` when the password hash cannot be read.
    pub(crate) fn from_config(config: &UserConfig) -> Option<Self> {
        let text = config.password_hash.as_deref();
        let hash = text.map(PasswordHash::parse).transpose().ok()?;
        let credential = sha256_hex(text.unwrap_or_default())[..16].to_owned();
        let groups = Groups::new(config.groups.iter().map(String::as_str)).unwrap_or_default();
        Some(Self { config: config.clone(), hash, credential, groups })
    }

    pub(crate) fn subject(&self) -> String {
        format!("{USER_PREFIX}{}", self.config.username)
    }
}

/// The configured users.
pub(crate) struct Users {
    ctx: Arc<Context>,
    by_name: HashMap<String, User>,
    first_user: Option<FirstUser>,
    password_checks: PasswordCheckQueue,
    /// Hashes that are verified for unknown names, so that the answer takes as long.
    decoys: Decoys,
    /// Key that chooses among the decoys.
    decoy_key: [u8; 32],
}

impl Users {
    /// The users of the configuration, or the one that is made when it has none.
    pub(crate) async fn new(ctx: Arc<Context>) -> Self {
        let configured = ctx.config.local.users.iter().filter_map(User::from_config);
        let mut by_name: HashMap<String, User> =
            configured.map(|user| (user.config.username.clone(), user)).collect();
        let made = crate::first_user::make(&ctx.config, &ctx.sealer, &ctx.entropy).await;
        let first_user = made.map(|(first, config, credential)| {
            let hash = config.password_hash.as_deref().and_then(|hash| PasswordHash::parse(hash).ok());
            by_name.insert(
                config.username.clone(),
                User { config, hash, credential, groups: Groups::default() },
            );
            first
        });
        let decoys = Decoys::like(by_name.values().filter_map(|user| user.hash.as_ref()));
        let decoy_key = ctx.sealer.root_for("decoy");
        Self { ctx, by_name, first_user, password_checks: PasswordCheckQueue::default(), decoys, decoy_key }
    }

    pub(crate) fn first_user(&self) -> Option<&FirstUser> {
        self.first_user.as_ref()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&User> {
        self.by_name.get(name)
    }

    pub(crate) fn by_subject(&self, sub: &str) -> Option<&User> {
        self.by_name.get(sub.strip_prefix(USER_PREFIX)?)
    }

    /// Returns whether the user of a grant, where the configuration knows users, may still sign in with the same password.
    pub(crate) fn is_unchanged(&self, grant: &Grant) -> bool {
        let Some(credential) = &grant.credential else { return true };
        self.by_subject(&grant.sub)
            .is_some_and(|user| !user.config.disabled && user.credential == *credential)
    }

    /// Returns whether the user `sub`, where the configuration knows users, may sign in.
    pub(crate) fn may_sign_in(&self, sub: &str) -> bool {
        match sub.strip_prefix(USER_PREFIX) {
            Some(name) if self.ctx.config.local.login != LoginMethod::Demo => {
                self.by_name.get(name).is_some_and(|user| !user.config.disabled)
            }
            _ => true,
        }
    }

    /// Returns the groups of the user `sub` in the configuration; `None` for users of an identity provider, whom it does not know.
    pub(crate) fn groups_of(&self, sub: &str) -> Option<Groups> {
        let name = sub.strip_prefix(USER_PREFIX)?;
        Some(self.by_name.get(name).map(|user| user.groups.clone()).unwrap_or_default())
    }

    /// Returns a new session of `user`.
    pub(crate) fn session_of(&self, user: &User) -> Session {
        self.new_session(&user.config.username, Some(user.credential.clone()))
    }

    fn new_session(&self, name: &str, credential: Option<String>) -> Session {
        let now = self.ctx.clock.now_ms();
        Session {
            sub: format!("{USER_PREFIX}{name}"),
            name: name.to_owned(),
            auth_s: now / 1000,
            started_ms: now,
            seen_ms: now,
            credential,
            person: UserClaims::default(),
            earlier: Vec::new(),
        }
    }

    /// Returns a new session of the user with this name and password; `None` when they do not match. An unknown name takes as long as a
    /// wrong password.
    ///
    /// # Errors
    /// Too many failures or too many checks at once, or the store does not answer.
    pub(crate) async fn check_password(
        &self,
        name: &str,
        password: &str,
        caller: ClientAddress,
    ) -> Result<Option<Session>, OAuthError> {
        if self.ctx.config.local.login == LoginMethod::Demo {
            let is_acceptable = !name.is_empty() && name.len() <= 64;
            return Ok(is_acceptable.then(|| self.new_session(name, None)));
        }
        let store = &*self.ctx.store;
        let lockout = Lockout::of(name, caller);
        let limit = self.ctx.config.limits.wrong_passwords;
        let refuse_locked = async || match lockout.locked_for(store, limit).await? {
            Some(left) => Err(OAuthError::too_many(left)),
            None => Ok(()),
        };
        refuse_locked().await?;
        let permit = self.password_checks.acquire(caller.widest_network()).await;
        let permit = permit.map_err(|_| OAuthError::too_many(Duration::from_secs(1)))?;
        // Checks that were waiting before this one may have failed.
        refuse_locked().await?;
        if !lockout.begin(store, limit).await? {
            return Err(OAuthError::too_many(LOCKOUT_WINDOW));
        }
        let (hash, has_password) = self.hash_for(name);
        let (hash, password) = (hash.cloned(), password.to_owned());
        let checked =
            tokio::task::spawn_blocking(move || (hash.is_some_and(|hash| hash.verify(&password)), permit));
        // The permit is kept until the outcome is counted, so that the next check sees it.
        let (matches, _permit) =
            checked.await.map_or((false, None), |(matches, permit)| (matches, Some(permit)));
        self.ctx.metrics.password_hashed();
        match self.get(name) {
            Some(user) if matches && has_password && !user.config.disabled => {
                lockout.record_success(store).await?;
                self.password_checks.remember(caller.widest_network());
                Ok(Some(self.session_of(user)))
            }
            _ => {
                lockout.record_failure(store).await?;
                Ok(None)
            }
        }
    }

    /// Returns the hash to verify a password of `name` with, and whether it is that of a user.
    pub(crate) fn hash_for(&self, name: &str) -> (Option<&PasswordHash>, bool) {
        let known = self.get(name).and_then(|user| user.hash.as_ref());
        let decoy = || self.decoys.pick(derive(&self.decoy_key, name.as_bytes()));
        (known.or_else(decoy), known.is_some())
    }
}
