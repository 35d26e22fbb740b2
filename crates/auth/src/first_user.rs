//! The user that is made when the configuration has none: without one nobody could sign in.
//!
//! The password is derived from the secret that encrypts the store's records, so that all instances have the same and it outlives a
//! restart whenever that secret does.

use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};

use crate::{
    clock::Entropy,
    config::{AuthConfig, LoginMethod, LoginSource, Mode, UserConfig},
    crypto::{Sealer, b64, sha256_hex},
    password::hash_password,
};

/// The only user of a configuration without users.
#[derive(Debug)]
pub struct FirstUser {
    /// The user name.
    pub username: &'static str,
    password: SecretString,
}

impl FirstUser {
    /// The name of the user.
    pub const NAME: &'static str = "admin";

    /// The password: 128 bits. For the operator's eyes only.
    pub fn expose_password(&self) -> &str {
        self.password.expose_secret()
    }
}

impl AuthConfig {
    /// Returns whether users sign in at the built-in login and none is configured. The server then makes one.
    pub fn makes_first_user(&self) -> bool {
        self.mode == Mode::Orchestrated
            && self.kind == LoginSource::Local
            && self.local.login == LoginMethod::Password
            && self.local.users.is_empty()
    }
}

/// Makes the user when the configuration has none, and returns their configuration and credential fingerprint, too.
pub(crate) async fn make(
    config: &AuthConfig,
    sealer: &Sealer,
    entropy: &Arc<dyn Entropy>,
) -> Option<(FirstUser, UserConfig, String)> {
    if !config.makes_first_user() {
        return None;
    }
    let password = b64(&sealer.root_for("password of the first user")[..16]);
    let (entropy, text) = (entropy.clone(), password.clone());
    // Hashing takes 19 MiB and some 50 ms.
    let hash = tokio::task::spawn_blocking(move || hash_password(&*entropy, &text)).await.ok()?;
    // Made from the password, not from its hash, whose salt is another at each start.
    let credential = sha256_hex(format!("first user {password}"))[..16].to_owned();
    let user = UserConfig {
        username: FirstUser::NAME.to_owned(),
        password_hash: Some(hash),
        ..UserConfig::default()
    };
    Some((FirstUser { username: FirstUser::NAME, password: password.into() }, user, credential))
}
