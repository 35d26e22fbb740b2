//! What a configuration lacks for production.

use url::{Host, Url};

use super::{AuthConfig, Login, Mode, StorageKind};

/// Where the server is reached and what it is called: what `auth` needs from the other sections.
#[derive(Debug, Clone)]
pub struct Deployment {
    /// The issuer: the server's public address, without a slash at its end.
    pub public_url: String,
    /// The protected resource: the public address of the MCP endpoint.
    pub resource: String,
    /// Name shown on pages.
    pub name: String,
    /// Fields masked in logs (`logging.redact`).
    pub redact: Vec<String>,
}

impl Deployment {
    /// A server at `public_url` whose MCP endpoint is at `path` below it.
    pub fn new(public_url: &str, path: &str, name: &str) -> Self {
        let public_url = public_url.trim_end_matches('/').to_owned();
        let resource = format!("{public_url}{path}");
        let redact = ["access_token", "refresh_token", "client_secret"].map(str::to_owned).to_vec();
        Self { public_url, resource, name: name.to_owned(), redact }
    }

    /// Whether the public address is https.
    pub fn is_https(&self) -> bool {
        self.public_url.starts_with("https://")
    }

    /// Whether the public address is one of this machine.
    pub fn is_loopback(&self) -> bool {
        Url::parse(&self.public_url).is_ok_and(|url| match url.host() {
            Some(Host::Ipv4(ip)) => ip.is_loopback(),
            Some(Host::Ipv6(ip)) => ip.is_loopback(),
            Some(Host::Domain(name)) => name == "localhost",
            None => false,
        })
    }
}

/// One production requirement that a configuration breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The field, from the top of the configuration.
    pub path: &'static str,
    /// What is wrong.
    pub problem: &'static str,
    /// How to fix it.
    pub fix: &'static str,
}

impl AuthConfig {
    /// Every item of the production requirements that this configuration breaks; empty when it is fit.
    pub fn check_production(&self, deployment: &Deployment) -> Vec<Finding> {
        let mut found = Vec::new();
        let mut when = |broken: bool, path, problem, fix| {
            if broken {
                found.push(Finding { path, problem, fix });
            }
        };
        when(
            !deployment.is_https(),
            "http.publicUrl",
            "authentication is reached over plain HTTP",
            "use an https address",
        );
        when(
            self.mode == Mode::Public,
            "auth.mode",
            "authentication is off",
            "set `orchestrated` or `transparent`",
        );
        when(
            self.allow_default_public,
            "auth.allowDefaultPublic",
            "anonymous access is allowed",
            "set it to false",
        );
        when(self.dcr_enabled, "auth.dcrEnabled", "anyone can register a client", "set it to false");
        let redacts = |name: &str| deployment.redact.iter().any(|field| field == name);
        when(
            !["access_token", "refresh_token", "client_secret"].into_iter().all(redacts),
            "logging.redact",
            "tokens or secrets are not masked in logs",
            "list access_token, refresh_token and client_secret",
        );
        if self.mode != Mode::Orchestrated {
            return found;
        }
        let storage = &self.token_storage;
        when(
            storage.kind != StorageKind::Redis,
            "auth.tokenStorage.type",
            "tokens are not in a store that several instances share",
            "use `redis` with `tls: true`",
        );
        when(
            storage.kind == StorageKind::Redis && !storage.config.uses_tls(),
            "auth.tokenStorage.config.tls",
            "the store is reached without TLS",
            "set it to true, or begin `url` with `rediss`",
        );
        let keys = self.local.sign_key.as_ref().and_then(|key| key.keys().ok());
        when(
            keys.is_none(),
            "auth.local.signKey",
            "no stable signing key is given",
            "give an RS256 JWK, or set JWT_SIGNING_KEY",
        );
        when(
            keys.as_ref().is_some_and(|keys| keys.iter().any(|key| key.kty != "RSA")),
            "auth.local.signKey",
            "the signing key is not RSA",
            "give an RS256 key pair of 2048 bits or more",
        );
        when(
            !(30..=90).contains(&self.local.key_rotation_days),
            "auth.local.keyRotationDays",
            "keys are not exchanged every 30 to 90 days",
            "set a value from 30 to 90",
        );
        when(self.local.max_keys == 0, "auth.local.maxKeys", "retired keys are not kept", "set 1 or more");
        when(
            self.local.login == Login::Demo,
            "auth.local.login",
            "the demo login lets anyone in",
            "use `password`",
        );
        when(
            !self.consent.enabled,
            "auth.consent.enabled",
            "users are not asked for consent",
            "set it to true",
        );
        when(
            self.limits.token > 6_000,
            "auth.limits.token",
            "the token endpoint is hardly limited",
            "set 6000 a minute or less",
        );
        when(
            !self.refresh.rotate_refresh_token,
            "auth.refresh.rotateRefreshToken",
            "refresh tokens do not rotate",
            "set it to true",
        );
        when(
            self.refresh.access_token_ttl > 900,
            "auth.refresh.accessTokenTtl",
            "access tokens live longer than 15 minutes",
            "set 900 or less",
        );
        found
    }
}
