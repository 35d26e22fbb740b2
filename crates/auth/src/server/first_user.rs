//! The user there is where the configuration names none: without one nobody could sign in.
//!
//! The password is derived from the secret that encrypts the store's records, so that all instances have the same and it outlives a
//! restart whenever that secret does.

use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};

use super::{AuthorizationServer, User};
use crate::{
    clock::Entropy,
    config::{AuthConfig, Kind, Login, Mode, UserConfig},
    crypto::{Sealer, b64, sha256_hex},
    password::{Phc, hash_password},
};

/// Name and password of the only user of a configuration without users.
#[derive(Debug)]
pub struct FirstUser {
    /// What they type as their name.
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
    /// Whether users sign in at the built-in login and none is configured: the server then makes one.
    pub fn makes_first_user(&self) -> bool {
        self.mode == Mode::Orchestrated
            && self.kind == Kind::Local
            && self.local.login == Login::Password
            && self.local.users.is_empty()
    }
}

impl AuthorizationServer {
    /// The user that was made because the configuration has none.
    pub fn first_user(&self) -> Option<&FirstUser> {
        self.core().first_user.as_ref()
    }
}

/// Makes the user when there is no other.
pub(super) async fn make(
    config: &AuthConfig,
    sealer: &Sealer,
    entropy: &Arc<dyn Entropy>,
) -> Option<(FirstUser, User)> {
    if !config.makes_first_user() {
        return None;
    }
    let password = b64(&sealer.root_for("password of the first user")[..16]);
    let (entropy, text) = (entropy.clone(), password.clone());
    // Hashing takes 19 MiB and some 50 ms.
    let hash = tokio::task::spawn_blocking(move || hash_password(&*entropy, &text)).await.ok()?;
    let user = User {
        phc: Phc::parse(&hash).ok(),
        // Of the password, not of its hash, whose salt is another at each start.
        credential: sha256_hex(format!("first user {password}"))[..16].to_owned(),
        config: UserConfig {
            username: FirstUser::NAME.to_owned(),
            password_hash: Some(hash),
            name: None,
            email: None,
            scopes: None,
            disabled: false,
        },
    };
    Some((FirstUser { username: FirstUser::NAME, password: password.into() }, user))
}
