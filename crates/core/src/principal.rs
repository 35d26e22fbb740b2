//! Principals: the caller's identity and granted scopes.

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

use rmcp::{RoleServer, service::RequestContext};

/// The scopes of a principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scopes {
    /// Everything: authentication is off.
    All,
    /// The scopes of the token. A grant of `a:*` covers every scope that begins with `a:`; `*` covers all.
    Granted(BTreeSet<String>),
}

impl Scopes {
    /// Reads a space-separated scope string (RFC 6749 §3.3).
    pub fn parse(text: &str) -> Self {
        Self::Granted(text.split(' ').filter(|scope| !scope.is_empty()).map(str::to_owned).collect())
    }

    /// Returns `true` if `scope` is granted, by name or through a `*` grant above it.
    pub fn allows(&self, scope: &str) -> bool {
        let Self::Granted(granted) = self else { return true };
        if granted.contains(scope) || granted.contains("*") {
            return true;
        }
        let covering = |(at, _): (usize, char)| granted.contains(&format!("{}:*", &scope[..at]));
        scope.char_indices().filter(|(_, c)| *c == ':').any(covering)
    }

    /// Returns `true` if every one of `others` is granted.
    pub fn allows_all(&self, others: &Self) -> bool {
        match (self, others) {
            (Self::All, _) => true,
            (Self::Granted(_), Self::All) => self.allows("*"),
            (Self::Granted(_), Self::Granted(others)) => others.iter().all(|scope| self.allows(scope)),
        }
    }
}

/// The caller of a request: the same value for direct calls, `codecall:invoke` and calls inside a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// Subject of the token; `anonymous` without one.
    pub subject: Arc<str>,
    /// OAuth client the token was issued to.
    pub client_id: Option<Arc<str>>,
    /// The granted scopes.
    pub scopes: Scopes,
    /// Name of the endpoint that it calls through, which narrows what it reaches; none for the main one. Sessions, tasks, runs and sealed values
    /// belong to it.
    pub endpoint: Option<Arc<str>>,
}

impl Principal {
    /// The caller where nobody has to say who they are: unnamed, and allowed everything. Transports without authentication name it;
    /// it is never assumed.
    pub fn local() -> Self {
        static ANONYMOUS: LazyLock<Arc<str>> = LazyLock::new(|| "anonymous".into());
        Self { subject: ANONYMOUS.clone(), client_id: None, scopes: Scopes::All, endpoint: None }
    }

    /// The same at the endpoint of this name; `None` is the main one.
    #[must_use]
    pub fn at(self, endpoint: Option<Arc<str>>) -> Self {
        Self { endpoint, ..self }
    }

    /// The principal that a transport, or the gateway on its behalf, put on the request.
    pub fn of(context: &RequestContext<RoleServer>) -> Option<&Self> {
        let of_http = context.extensions.get::<http::request::Parts>();
        of_http.and_then(|parts| parts.extensions.get::<Self>()).or_else(|| context.extensions.get::<Self>())
    }

    /// The scopes of `required` that are not granted.
    pub fn missing<'a>(&self, required: &'a [String]) -> Vec<&'a str> {
        required.iter().map(String::as_str).filter(|scope| !self.scopes.allows(scope)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_grant_covers_what_is_below_it_only() {
        let scopes = Scopes::parse("crm:* billing:read");
        assert!(scopes.allows("crm:read") && scopes.allows("crm:users:write"));
        assert!(scopes.allows("billing:read"));
        assert!(!scopes.allows("billing:write") && !scopes.allows("crm") && !scopes.allows("crmx:read"));
    }

    #[test]
    fn everything_is_allowed_without_authentication_and_nothing_by_an_empty_grant() {
        assert!(Principal::local().scopes.allows("x"));
        assert!(!Scopes::parse("").allows("x"));
        assert!(Scopes::parse("*").allows("any:thing"));
    }
}
