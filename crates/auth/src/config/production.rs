//! Production requirements of a configuration.

use std::{collections::HashSet, net::IpAddr, sync::Arc};

use gatewright_core::{EndpointAudience, Endpoints, MAIN_ENDPOINT};
use secrecy::{ExposeSecret as _, SecretString};
use url::{Host, Url};

use super::{AuthConfig, LoginMethod, Mode, StorageKind};

const DAY_S: u64 = 86_400;
/// Fewest characters of a secret.
const LEAST_SECRET: usize = 32;
/// Fewest different characters of a secret: 32 random hexadecimal digits have more, with a probability of one to some ten thousand.
const LEAST_DIFFERENT: usize = 8;
/// Longest part of a secret that is recognised when the secret is its repetition.
const LONGEST_PERIOD: usize = 64;

/// Returns `true` if a secret is too short, or too monotonous, to be random: it has few different characters, repeats its
/// beginning, or is mostly rows such as `abcdef` and `4321`.
pub fn is_guessable(secret: &str) -> bool {
    let different: HashSet<char> = secret.chars().collect();
    let bytes = secret.as_bytes();
    let repeats = (1..=LONGEST_PERIOD.min(bytes.len() / 2))
        .any(|period| bytes[period..] == bytes[..bytes.len() - period]);
    let steps = bytes.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 1).count();
    let is_row = 2 * steps >= bytes.len();
    secret.chars().count() < LEAST_SECRET || different.len() < LEAST_DIFFERENT || repeats || is_row
}

/// Returns `true` if an entry of `trustedProxies` covers so many addresses that it trusts whoever connects.
pub fn trusts_everybody(network: &str) -> bool {
    let least = if network.contains(':') { 7 } else { 8 };
    network.split_once('/').and_then(|(_, bits)| bits.parse::<u32>().ok()).is_some_and(|bits| bits < least)
}

/// The addresses and the name of a server: the values that `auth` needs from the other sections.
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
    /// The address it listens on, if known.
    pub listens_on: Option<IpAddr>,
    /// The endpoints beside the main one, each of which is a resource of its own.
    pub endpoints: Arc<Endpoints>,
}

impl Deployment {
    /// A server at `public_url` whose MCP endpoint is at `path` below it.
    pub fn new(public_url: &str, path: &str, name: &str) -> Self {
        let public_url = public_url.trim_end_matches('/').to_owned();
        let resource = format!("{public_url}{path}");
        let redact = ["access_token", "refresh_token", "client_secret"].map(str::to_owned).to_vec();
        Self {
            public_url,
            resource,
            name: name.to_owned(),
            redact,
            listens_on: None,
            endpoints: Arc::default(),
        }
    }

    /// Sets the address that the server listens on. Settings meant for one machine are then refused where other machines reach it, even if
    /// the public address is local.
    #[must_use]
    pub fn listening_on(self, address: IpAddr) -> Self {
        Self { listens_on: Some(address), ..self }
    }

    /// Sets the endpoints beside the main one.
    #[must_use]
    pub fn with_endpoints(self, endpoints: Arc<Endpoints>) -> Self {
        Self { endpoints, ..self }
    }

    /// Returns the resource of an endpoint (RFC 8707); `None` is the main one.
    pub fn resource_of(&self, endpoint: Option<&str>) -> String {
        match endpoint {
            None => self.resource.clone(),
            Some(name) => format!("{}/{name}", self.resource.trim_end_matches('/')),
        }
    }

    /// Returns all resources, that of the main endpoint first.
    pub(crate) fn resources(&self) -> Vec<String> {
        let others = self.endpoints.all().into_iter().map(|endpoint| self.resource_of(Some(&endpoint.name)));
        std::iter::once(self.resource.clone()).chain(others).collect()
    }

    /// Returns the resource that `url` is the address of. Takes the same time however many endpoints there are.
    pub(crate) fn resource_at(&self, url: &Url) -> Option<String> {
        let is_at_url = |ours: &String| Url::parse(ours).is_ok_and(|ours| ours == *url);
        let of_endpoint = || {
            let name = url.path_segments()?.next_back()?;
            self.endpoints.get(name).map(|endpoint| self.resource_of(Some(&endpoint.name)))
        };
        let main = Some(self.resource.clone()).filter(is_at_url);
        main.or_else(|| of_endpoint().filter(is_at_url))
    }

    /// Returns whether what opens the main endpoint opens this one, too.
    pub(crate) fn is_shared(&self, endpoint: Option<&str>) -> bool {
        let shared = |name| {
            self.endpoints
                .get(name)
                .is_some_and(|endpoint| endpoint.config.audience == EndpointAudience::Shared)
        };
        endpoint.is_none_or(shared)
    }

    /// Returns whether an API key that names the endpoint `name` opens an endpoint.
    pub(crate) fn is_opened_by_key(&self, endpoint: Option<&str>, name: &str) -> bool {
        if name == MAIN_ENDPOINT { self.is_shared(endpoint) } else { endpoint == Some(name) }
    }

    /// Returns whether a token for `audience`, one of [`Deployment::resources`], opens an endpoint.
    pub(crate) fn opens(&self, endpoint: Option<&str>, audience: &str) -> bool {
        (self.is_shared(endpoint) && audience == self.resource)
            || endpoint.is_some_and(|name| audience == self.resource_of(Some(name)))
    }

    /// Returns whether only this machine reaches the server, by its public address and the address it listens on.
    pub fn is_local(&self) -> bool {
        self.is_loopback() && self.listens_on.is_none_or(|address| address.to_canonical().is_loopback())
    }

    /// Returns whether the public address is https.
    pub fn is_https(&self) -> bool {
        self.public_url.starts_with("https://")
    }

    /// Returns whether the public address is one of this machine.
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
    pub path: String,
    /// The problem.
    pub problem: &'static str,
    /// The fix.
    pub fix: &'static str,
}

/// The requirements that are broken, in the order of the checks.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn when(&mut self, broken: bool, path: &str, problem: &'static str, fix: &'static str) {
        if broken {
            self.0.push(Finding { path: path.to_owned(), problem, fix });
        }
    }
}

impl AuthConfig {
    /// Returns all production requirements that this configuration breaks.
    pub fn check_production(&self, deployment: &Deployment) -> Vec<Finding> {
        let mut found = Findings::default();
        self.check_exposure(deployment, &mut found);
        self.check_keys_of_machines(&mut found);
        if self.mode == Mode::Orchestrated {
            self.check_store_and_keys(&mut found);
            self.check_login(&mut found);
            self.check_lifetimes(&mut found);
            self.check_rates(&mut found);
            self.check_sessions(&mut found);
            self.check_secrets(&mut found);
        }
        found.0
    }

    /// Checks who reaches the server, and whom it trusts.
    fn check_exposure(&self, deployment: &Deployment, found: &mut Findings) {
        found.when(
            !deployment.is_https(),
            "http.publicUrl",
            "authentication is reached over plain HTTP",
            "use an https address",
        );
        found.when(
            self.mode == Mode::Public,
            "auth.mode",
            "authentication is off",
            "set `orchestrated` or `transparent`",
        );
        found.when(
            self.allow_default_public,
            "auth.allowDefaultPublic",
            "anonymous access is allowed",
            "set it to false",
        );
        found.when(self.dcr_enabled, "auth.dcrEnabled", "anyone can register a client", "set it to false");
        let redacts = |name: &str| deployment.redact.iter().any(|field| field == name);
        found.when(
            !["access_token", "refresh_token", "client_secret"].into_iter().all(redacts),
            "logging.redact",
            "tokens or secrets are not masked in logs",
            "list access_token, refresh_token and client_secret",
        );
        found.when(
            self.provider.allow_private,
            "auth.provider.allowPrivate",
            "the provider may be on a private address, over plain HTTP",
            "set it to false",
        );
        let provider = &self.provider;
        for (field, address) in [
            ("url", &provider.url),
            ("jwksUri", &provider.jwks_uri),
            ("introspectionUri", &provider.introspection_uri),
        ] {
            found.when(
                self.mode != Mode::Public
                    && !provider.allow_private
                    && address.as_ref().is_some_and(|address| !address.starts_with("https://")),
                &format!("auth.provider.{field}"),
                "the provider is not reached over HTTPS, and every token or login fails",
                "use an https address",
            );
        }
        found.when(
            self.trusted_proxies.iter().any(|network| trusts_everybody(network)),
            "auth.trustedProxies",
            "whoever connects is believed about the caller's address and about HTTPS",
            "name the addresses or the networks of your proxies, /8 or smaller",
        );
    }

    /// Checks that API keys expire.
    fn check_keys_of_machines(&self, found: &mut Findings) {
        for (at, key) in self.api_keys.iter().enumerate() {
            let path = format!("auth.apiKeys[{at}].expires");
            let fix = "set `expires`, and replace the key before that day";
            found.when(key.expires.is_none(), &path, "an API key never expires", fix);
        }
    }

    /// Checks the token store and the signing keys.
    fn check_store_and_keys(&self, found: &mut Findings) {
        let storage = &self.token_storage;
        found.when(
            storage.kind != StorageKind::Redis,
            "auth.tokenStorage.type",
            "tokens are not in a store that several instances share",
            "use `redis` with `tls: true`",
        );
        found.when(
            storage.kind == StorageKind::Redis && !storage.config.uses_tls(),
            "auth.tokenStorage.config.tls",
            "the store is reached without TLS",
            "set it to true, or begin `url` with `rediss`",
        );
        let keys = self.local.sign_key.as_ref().and_then(|key| key.keys().ok());
        found.when(
            keys.is_none(),
            "auth.local.signKey",
            "no stable signing key is given",
            "give an RS256 JWK, or set JWT_SIGNING_KEY",
        );
        found.when(
            keys.as_ref().is_some_and(|keys| keys.iter().any(|key| key.kty != "RSA")),
            "auth.local.signKey",
            "the signing key is not RSA",
            "give an RS256 key pair of 2048 bits or more",
        );
        found.when(
            !(30..=90).contains(&self.local.key_rotation_days),
            "auth.local.keyRotationDays",
            "keys are not exchanged every 30 to 90 days",
            "set a value from 30 to 90",
        );
        found.when(
            self.local.max_keys == 0,
            "auth.local.maxKeys",
            "retired keys are not kept",
            "set 1 or more",
        );
    }

    /// Checks the login and the consent of users.
    fn check_login(&self, found: &mut Findings) {
        found.when(
            self.local.login == LoginMethod::Demo,
            "auth.local.login",
            "the demo login lets anyone in",
            "use `password`",
        );
        found.when(
            !self.consent.enabled,
            "auth.consent.enabled",
            "users are not asked for consent",
            "set it to true",
        );
    }

    /// Checks the lifetimes of tokens.
    fn check_lifetimes(&self, found: &mut Findings) {
        found.when(
            !self.refresh.rotate_refresh_token,
            "auth.refresh.rotateRefreshToken",
            "refresh tokens do not rotate",
            "set it to true",
        );
        found.when(
            self.refresh.access_token_ttl > 900,
            "auth.refresh.accessTokenTtl",
            "access tokens live longer than 15 minutes",
            "set 900 or less",
        );
        for (field, seconds) in
            [("refreshTokenTtl", self.refresh.refresh_token_ttl), ("absoluteTtl", self.refresh.absolute_ttl)]
        {
            found.when(
                self.refresh.enabled && !(7 * DAY_S..=30 * DAY_S).contains(&seconds),
                &format!("auth.refresh.{field}"),
                "refresh tokens do not live 7 to 30 days",
                "set a value from 604800 to 2592000",
            );
        }
    }

    /// Checks the limits on requests, and on fetches for strangers.
    fn check_rates(&self, found: &mut Findings) {
        found.when(
            self.cimd.allow_private,
            "auth.cimd.allowPrivate",
            "strangers can have this server ask private addresses",
            "set it to false",
        );
        let limits = &self.limits;
        for (field, per_minute, most) in [
            ("token", limits.token, 6_000),
            ("authorize", limits.authorize, 6_000),
            ("login", limits.login, 600),
            ("register", limits.register, 600),
            ("revoke", limits.revoke, 6_000),
            ("fetch", limits.fetch, 600),
            ("wrongPasswords", limits.wrong_passwords, 100),
            ("unknownKeys", limits.unknown_keys, 6_000),
        ] {
            let path = format!("auth.limits.{field}");
            found.when(
                per_minute == 0,
                &path,
                "a limit of 0 lets nobody in",
                "leave it out, or set 1 or more",
            );
            found.when(
                per_minute > most,
                &path,
                "the endpoint is hardly limited",
                match most {
                    6_000 => "set 6000 a minute or less",
                    600 => "set 600 a minute or less",
                    _ => "set 100 or less",
                },
            );
        }
    }

    /// Checks the lifetimes of logins.
    fn check_sessions(&self, found: &mut Findings) {
        for (field, seconds, most) in [
            ("idleTtl", self.session.idle_ttl, DAY_S),
            ("absoluteTtl", self.session.absolute_ttl, 30 * DAY_S),
        ] {
            found.when(
                !(60..=most).contains(&seconds),
                &format!("auth.session.{field}"),
                "logins last an absurd time",
                "set at least 60 seconds, and at most a day for `idleTtl`, 30 days for `absoluteTtl`",
            );
        }
    }

    /// Checks that no secret can be guessed.
    fn check_secrets(&self, found: &mut Findings) {
        let is_short = |secret: &Option<SecretString>| {
            secret.as_ref().is_some_and(|secret| is_guessable(secret.expose_secret()))
        };
        let problem = "the secret is short or monotonous enough to be guessed";
        let fix = "use 32 random characters or more, such as `openssl rand -base64 32` makes";
        found.when(is_short(&self.encryption_key), "auth.encryptionKey", problem, fix);
        found.when(is_short(&self.dcr.initial_access_token), "auth.dcr.initialAccessToken", problem, fix);
        for (at, client) in self.clients.iter().enumerate() {
            let path = format!("auth.clients[{at}].clientSecret");
            found.when(is_short(&client.client_secret), &path, problem, fix);
        }
    }
}
