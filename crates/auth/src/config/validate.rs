//! Validation of a configuration: the requirements without which a server does not start.

use gatewright_core::Groups;

use super::{AuthConfig, DEFAULT_SCOPE, Deployment, LoginMethod, LoginSource, Mode, StorageKind};
use crate::{
    api_keys::SUBJECT_PREFIX,
    keys::{Algorithm, Jwk, JwkSet, SigningKey},
    net, password, redirect_uri,
    scopes::{USER_SCOPES, is_scope_token},
};

/// A problem with a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Path of the field, from `auth` on.
    pub path: String,
    /// The problem and its fix.
    pub message: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl AuthConfig {
    /// Returns all problems that keep a server from starting.
    pub fn validate(&self, deployment: &Deployment) -> Vec<Problem> {
        let mut found = Vec::new();
        let mut say = |path: &str, message: String| {
            found.push(Problem { path: format!("auth.{path}"), message });
        };
        self.check_api_keys(&mut say);
        if self.mode == Mode::Public {
            if !deployment.is_local() && !self.allow_default_public {
                let problem = "is `public`, which turns authentication off, and the server can be reached from other machines (`http.host`, \
                               `http.publicUrl`): whoever reaches it could call every tool. Set `orchestrated` or `transparent`, or listen \
                               on 127.0.0.1, or set `auth.allowDefaultPublic: true` if another program in front authenticates";
                say("mode", problem.into());
            }
            return found;
        }
        if !deployment.is_https() && !deployment.is_loopback() {
            say("publicUrl", "must be https, or http on loopback".into());
        }
        if self.mode == Mode::Transparent || self.kind == LoginSource::Remote {
            if self.provider.url.is_none() {
                say("provider.url", "is needed (or IDP_PROVIDER_URL)".into());
            }
            let is_private = |set: &JwkSet| set.keys.iter().any(Jwk::has_private_part);
            if self.provider.jwks.as_ref().is_some_and(is_private) {
                say(
                    "provider.jwks",
                    "holds a key with its private part (`d`, `k`): list public keys only".into(),
                );
            }
            if self.mode == Mode::Transparent && self.expected_audience.as_deref().unwrap_or("").is_empty() {
                say("expectedAudience", "is needed in transparent mode (or IDP_EXPECTED_AUDIENCE)".into());
            }
            if self.kind == LoginSource::Remote
                && self.mode == Mode::Orchestrated
                && self.provider.client_id.is_none()
            {
                say("provider.clientId", "is needed (or IDP_CLIENT_ID)".into());
            }
        }
        if self.mode == Mode::Transparent {
            return found;
        }
        self.check_store(&mut say);
        self.check_local(deployment.is_local(), &mut say);
        self.check_passkeys(deployment, &mut say);
        self.check_scopes(&mut say);
        let refresh = &self.refresh;
        if !(1..=86_400).contains(&refresh.access_token_ttl) {
            say("refresh.accessTokenTtl", "must be 1 to 86400 seconds".into());
        }
        if refresh.refresh_token_ttl == 0 || refresh.absolute_ttl < refresh.refresh_token_ttl {
            say(
                "refresh.absoluteTtl",
                "must not be shorter than `refreshTokenTtl`, which must not be 0".into(),
            );
        }
        for (at, client) in self.clients.iter().enumerate() {
            let id = &client.client_id;
            if id.is_empty()
                || id.starts_with("user:")
                || id.starts_with("idp:")
                || id.starts_with(SUBJECT_PREFIX)
                || id == "anonymous"
            {
                say(
                    &format!("clients[{at}].clientId"),
                    "is empty, or reserved for users and API keys".into(),
                );
            }
            if self.clients[..at].iter().any(|other| other.client_id == *id) {
                say(&format!("clients[{at}].clientId"), "is used twice".into());
            }
            for (n, uri) in client.redirect_uris.iter().enumerate() {
                if let Err(why) = redirect_uri::parse(uri) {
                    say(&format!("clients[{at}].redirectUris[{n}]"), why.into());
                }
            }
            if client.introspects.as_ref().is_some_and(|resource| !deployment.resources().contains(resource))
            {
                let problem = format!(
                    "must be `{}` or that of an endpoint: tokens are issued for no other resource",
                    deployment.resource
                );
                say(&format!("clients[{at}].introspects"), problem);
            }
            if let Err(why) = crate::clients::OAuthClient::from_config(client) {
                say(&format!("clients[{at}]"), why);
            }
        }
        for (at, proxy) in self.trusted_proxies.iter().enumerate() {
            if net::Network::parse(proxy).is_none() {
                say(
                    &format!("trustedProxies[{at}]"),
                    "is not an address or a network such as 10.0.0.0/8".into(),
                );
            }
        }
        found
    }

    /// Checks that all scopes exist: an unknown scope would never be granted.
    fn check_scopes(&self, say: &mut impl FnMut(&str, String)) {
        let exists = |scope: &str| match self.scopes.is_empty() {
            true => scope == DEFAULT_SCOPE,
            false => self.scopes.contains_key(scope),
        };
        let mut check = |path: &str, scopes: &[String]| {
            for (at, scope) in scopes.iter().enumerate() {
                if !exists(scope) && !USER_SCOPES.contains(&scope.as_str()) {
                    say(&format!("{path}[{at}]"), "is not one of `auth.scopes`; add it there".into());
                }
            }
        };
        check("defaultScopes", &self.default_scopes);
        for (at, user) in self.local.users.iter().enumerate() {
            check(&format!("local.users[{at}].scopes"), user.scopes.as_deref().unwrap_or_default());
        }
        for (at, client) in self.clients.iter().enumerate() {
            check(&format!("clients[{at}].scopes"), client.scopes.as_deref().unwrap_or_default());
        }
        if !self.scopes.keys().all(|scope| is_scope_token(scope)) {
            let problem = "has a name that no request can ask for; use printable ASCII without spaces, quotes and backslashes (RFC 6749 §3.3)";
            say("scopes", problem.into());
        }
    }

    fn check_store(&self, say: &mut impl FnMut(&str, String)) {
        let config = &self.token_storage.config;
        match self.token_storage.kind {
            StorageKind::Redis => {
                if let Err(problem) = config.redis_endpoint() {
                    say(problem.path.trim_start_matches("auth."), problem.message);
                }
            }
            StorageKind::Sqlite if config.path.is_none() => {
                say("tokenStorage.config.path", "is needed for sqlite".into());
            }
            _ => {}
        }
    }

    fn check_local(&self, is_local: bool, say: &mut impl FnMut(&str, String)) {
        let local = &self.local;
        if let Some(key) = &local.sign_key {
            match key.keys() {
                Err(why) => say("local.signKey", why.to_string()),
                Ok(keys) if keys.len() > local.max_keys.saturating_add(1) => {
                    let problem = "holds more keys than the one that signs and `local.maxKeys` retired ones; take the last ones out";
                    say("local.signKey", problem.into());
                }
                Ok(keys) => match keys.iter().find(|key| key.d.is_some()).or(keys.first()) {
                    Some(key) => {
                        if let Err(why) = SigningKey::from_jwk(key) {
                            say("local.signKey", why.to_string());
                        }
                    }
                    None => say("local.signKey", "holds no key".into()),
                },
            }
        }
        if !matches!(local.algorithm, Algorithm::ES256 | Algorithm::EdDSA | Algorithm::RS256) {
            say(
                "local.algorithm",
                "must be ES256, EdDSA or RS256: keys of other algorithms cannot be made".into(),
            );
        }
        if local.key_rotation_days == 0 {
            say("local.keyRotationDays", "must be 1 or more".into());
        }
        if local.login == LoginMethod::Demo && !is_local {
            let problem = "`demo` lets anyone in; it works only where `http.publicUrl` and `http.host`, the address listened on, are loopback";
            say("local.login", problem.into());
        }
        if self.cimd.allow_private && !is_local {
            say(
                "cimd.allowPrivate",
                "lets strangers have this server ask private addresses; it works only on loopback".into(),
            );
        }
        let mut names = std::collections::BTreeSet::new();
        for (at, user) in local.users.iter().enumerate() {
            if user.username.is_empty() || !names.insert(&user.username) {
                say(&format!("local.users[{at}].username"), "is empty or used twice".into());
            }
            if user.username.contains(char::is_control) {
                say(
                    &format!("local.users[{at}].username"),
                    "has line breaks or other control characters".into(),
                );
            }
            if Groups::new(user.groups.iter().map(String::as_str)).is_none() {
                let problem =
                    format!("must be at most {} names of 1 to {} bytes", Groups::MOST, Groups::LONGEST);
                say(&format!("local.users[{at}].groups"), problem);
            }
            let path = format!("local.users[{at}].passwordHash");
            match &user.password_hash {
                Some(hash) => {
                    if let Err(why) = password::PasswordHash::parse(hash) {
                        say(&path, why.into());
                    }
                }
                None if !local.passkeys.enabled => {
                    say(&path, "is missing; make one with `gatewright user hash`, or turn `local.passkeys` on and give the user a link with `gatewright user enrol`".into());
                }
                None => {}
            }
        }
    }
}
