//! State of the authorization server: issued codes and refresh tokens, faults, keys.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
};

use url::Url;

use super::{
    clients::KnownClient,
    fault::{Endpoint, Fault},
    options::{MockOAuthServerOptions, MockTestUser},
};
use crate::token::{TestKey, TokenFactory};

/// Lifetime of an authorization code, in seconds.
pub(super) const CODE_LIFETIME: i64 = 60;

/// An authorization code that was not redeemed yet.
#[derive(Debug, Clone)]
pub(super) struct AuthorizationCode {
    pub(super) client_id: String,
    pub(super) redirect_uri: String,
    pub(super) challenge: String,
    /// The tokens of one login.
    pub(super) family: String,
    /// The DPoP key that the request names (`dpop_jkt`, RFC 9449 §10).
    pub(super) jkt: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) resource: Option<String>,
    pub(super) user: MockTestUser,
    pub(super) login: Login,
    pub(super) expires: i64,
}

/// Claims of an ID token about the login.
#[derive(Debug, Clone, Default)]
pub(super) struct Login {
    pub(super) at: i64,
    /// From the authorization request; absent after a refresh (OpenID Connect Core §12.2).
    pub(super) nonce: Option<String>,
}

/// The grant of a refresh token.
#[derive(Debug, Clone)]
pub(super) struct RefreshGrant {
    pub(super) client_id: String,
    pub(super) family: String,
    /// The DPoP key of a public client, to which its refresh tokens are bound (RFC 9449 §5).
    pub(super) jkt: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) resource: Option<String>,
    pub(super) user: MockTestUser,
    pub(super) login: Login,
    pub(super) expires: i64,
}

pub(super) struct Issuer {
    pub(super) options: MockOAuthServerOptions,
    pub(super) factory: TokenFactory,
    pub(super) codes: HashMap<String, AuthorizationCode>,
    pub(super) refresh_tokens: HashMap<String, RefreshGrant>,
    /// Families of codes and refresh tokens that were used: using one again ends its family.
    pub(super) used: HashMap<String, String>,
    /// Families of access tokens, by `jti`.
    pub(super) families: HashMap<String, String>,
    /// Revoked access tokens (`jti`) and families.
    pub(super) revoked: HashSet<String>,
    /// Proofs and assertions, which are accepted once.
    pub(super) seen: HashSet<String>,
    /// Clients that registered themselves.
    pub(super) registered: HashMap<String, KnownClient>,
    /// Faults with the number of requests they still affect.
    pub(super) faults: Vec<(Endpoint, Fault, Option<u32>)>,
    /// Keys in `/jwks.json`. The factory signs with its own key.
    pub(super) published: Vec<Arc<TestKey>>,
    pub(super) requests: Vec<String>,
}

pub(super) type SharedIssuer = Arc<Mutex<Issuer>>;

impl Issuer {
    pub(super) fn new(factory: TokenFactory, options: MockOAuthServerOptions) -> Self {
        Self {
            options,
            published: vec![factory.key().clone()],
            factory,
            codes: HashMap::new(),
            refresh_tokens: HashMap::new(),
            used: HashMap::new(),
            families: HashMap::new(),
            revoked: HashSet::new(),
            seen: HashSet::new(),
            registered: HashMap::new(),
            faults: Vec::new(),
            requests: Vec::new(),
        }
    }

    /// Ends all tokens of a login.
    pub(super) fn end_family(&mut self, family: &str) {
        self.refresh_tokens.retain(|_, grant| grant.family != family);
        self.revoked.insert(family.to_owned());
    }

    /// The advertised issuer: its own, or that of [`Fault::WrongIssuer`].
    pub(super) fn advertised(&self) -> String {
        let wrong = self.faults.iter().rev().find_map(|(_, fault, _)| match fault {
            Fault::WrongIssuer(issuer) => Some(issuer.clone()),
            _ => None,
        });
        wrong.unwrap_or_else(|| self.factory.get_issuer().to_owned())
    }

    pub(super) fn has_fault(&self, wanted: &Fault) -> bool {
        self.faults.iter().any(|(_, fault, _)| fault == wanted)
    }

    pub(super) fn wrong_audience(&self) -> Option<String> {
        self.faults.iter().rev().find_map(|(_, fault, _)| match fault {
            Fault::WrongAudience(audience) => Some(audience.clone()),
            _ => None,
        })
    }

    /// Takes the latest fault that affects responses of the endpoint, and counts its use.
    pub(super) fn take_fault(&mut self, endpoint: Endpoint) -> Option<Fault> {
        let breaks = |fault: &Fault| {
            matches!(fault, Fault::Slow(_) | Fault::Status(_) | Fault::Garbage | Fault::Error(_))
        };
        let at = self.faults.iter().rposition(|(of, fault, times)| {
            (*of == endpoint || *of == Endpoint::All) && breaks(fault) && *times != Some(0)
        })?;
        let (_, fault, times) = &mut self.faults[at];
        *times = times.map(|times| times - 1);
        Some(fault.clone())
    }

    /// Returns true if the client may be redirected to `uri`, written as `text`.
    pub(super) fn may_redirect_to(&self, text: &str, uri: &Url) -> bool {
        let valid = &self.options.valid_redirect_uris;
        if valid.is_empty() {
            return matches!(uri.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
        }
        valid.iter().any(|pattern| matches(pattern, text))
    }
}

/// Matches a redirect URI; `*` matches any characters except `/`, `?` and `#`.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            let reach = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            (0..=reach).filter(|at| rest.is_char_boundary(*at)).any(|at| matches(after, &rest[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stays_within_one_part_of_the_uri() {
        assert!(matches("http://localhost:*/callback", "http://localhost:3000/callback"));
        assert!(matches("https://*.example.com/cb", "https://a.b.example.com/cb"));
        assert!(!matches("https://*.example.com/cb", "https://evil.com/x.example.com/cb"));
        assert!(!matches("http://localhost:*/callback", "http://localhost:1/callback/more"));
        assert!(!matches("https://a.example/cb", "https://a.example/cb2"));
    }
}
