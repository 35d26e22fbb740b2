//! Fields that environment variables fill.

use super::{AuthConfig, Problem, SignKey, StorageKind};

impl AuthConfig {
    /// Fills fields that the file omits from the contract's environment variables, which `get` reads. Returns the problems of those that
    /// are used.
    pub fn fill_from(&mut self, get: impl Fn(&str) -> Option<String>) -> Vec<Problem> {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let mut problems = Vec::new();
        let storage = &mut self.token_storage.config;
        storage.host = storage.host.take().or_else(|| get("REDIS_HOST"));
        let is_addressed = storage.url.is_some() || storage.sentinel.is_some() || !storage.cluster.is_empty();
        if self.token_storage.kind == StorageKind::Redis && storage.port.is_none() && !is_addressed {
            match get("REDIS_PORT").map(|text| redis_port(&text)) {
                Some(Some(port)) => storage.port = Some(port),
                Some(None) => problems.push(Problem {
                    path: "auth.tokenStorage.config.port".to_owned(),
                    message: "REDIS_PORT must be a port from 1 to 65535; set it to one, or write `port` here"
                        .to_owned(),
                }),
                None => {}
            }
        }
        storage.password = storage.password.take().or_else(|| get("REDIS_PASSWORD").map(Into::into));
        self.local.sign_key =
            self.local.sign_key.take().or_else(|| get("JWT_SIGNING_KEY").map(SignKey::from_text));
        let provider = &mut self.provider;
        provider.url = provider.url.take().or_else(|| get("IDP_PROVIDER_URL"));
        provider.client_id = provider.client_id.take().or_else(|| get("IDP_CLIENT_ID"));
        provider.client_secret =
            provider.client_secret.take().or_else(|| get("IDP_CLIENT_SECRET").map(Into::into));
        self.expected_audience = self.expected_audience.take().or_else(|| get("IDP_EXPECTED_AUDIENCE"));
        problems
    }
}

/// Reads REDIS_PORT: a number, or the address that Kubernetes sets for a Service called `redis` (`tcp://10.0.0.7:6379`).
fn redis_port(text: &str) -> Option<u16> {
    let text = text.trim();
    let port = match text.strip_prefix("tcp://") {
        Some(address) => address.rsplit_once(':')?.1,
        None => text,
    };
    port.parse().ok().filter(|port| *port != 0)
}
