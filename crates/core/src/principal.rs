//! Principals: the caller's identity and granted scopes.

use std::{
    collections::BTreeSet,
    sync::{Arc, LazyLock},
};

use rmcp::{RoleServer, service::RequestContext};
use serde::{Deserialize, Serialize};

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
        let covers = |above: &str| above.ends_with(':') && scope.starts_with(above);
        granted.iter().any(|granted| granted.strip_suffix('*').is_some_and(covers))
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

/// Groups of a principal, which only policies read. They describe the user and not what a token was granted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeSet<String>", into = "BTreeSet<String>")]
pub struct Groups(Arc<BTreeSet<String>>);

impl Groups {
    /// Most groups of one principal.
    pub const MOST: usize = 200;
    /// Longest name of a group, in bytes.
    pub const LONGEST: usize = 256;

    /// The groups with these names. `None` if there are more than [`Groups::MOST`] of them, or if a name is empty or longer than
    /// [`Groups::LONGEST`].
    pub fn new<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Option<Self> {
        let mut names = names.into_iter().map(Into::into);
        let mut groups = BTreeSet::new();
        for name in names.by_ref().take(Self::MOST) {
            if name.is_empty() || name.len() > Self::LONGEST {
                return None;
            }
            groups.insert(name);
        }
        names.next().is_none().then(|| groups.into())
    }

    /// Their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns `true` if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `true` if all of `others` are among them.
    pub fn contains_all(&self, others: &Self) -> bool {
        self.0.is_superset(&others.0)
    }
}

impl From<BTreeSet<String>> for Groups {
    fn from(names: BTreeSet<String>) -> Self {
        Self(names.into())
    }
}

impl From<Groups> for BTreeSet<String> {
    fn from(groups: Groups) -> Self {
        Arc::unwrap_or_clone(groups.0)
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
    /// Groups that its user is in.
    pub groups: Groups,
    /// Name of the endpoint that it calls through, which narrows what it reaches; none for the main one. Sessions, tasks, runs and sealed values
    /// belong to it.
    pub endpoint: Option<Arc<str>>,
}

impl Principal {
    /// The caller where nobody has to say who they are: unnamed, and allowed everything. Transports without authentication name it;
    /// it is never assumed. It is in no group.
    pub fn local() -> Self {
        static ANONYMOUS: LazyLock<Arc<str>> = LazyLock::new(|| "anonymous".into());
        Self {
            subject: ANONYMOUS.clone(),
            client_id: None,
            scopes: Scopes::All,
            groups: Groups::default(),
            endpoint: None,
        }
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
    fn a_scope_of_many_parts_is_looked_up_in_time_in_proportion_to_its_length() {
        let scopes = Scopes::parse("a:* ::* crm:read");
        let long = format!("b{}", ":".repeat(300_000));
        let began = std::time::Instant::now();
        assert!(!scopes.allows(&long));
        assert!(began.elapsed() < std::time::Duration::from_secs(1), "{:?}", began.elapsed());
        assert!(scopes.allows(&format!("a:{long}")) && scopes.allows("::x") && !scopes.allows(":x"));
    }

    #[test]
    fn everything_is_allowed_without_authentication_and_nothing_by_an_empty_grant() {
        assert!(Principal::local().scopes.allows("x"));
        assert!(!Scopes::parse("").allows("x"));
        assert!(Scopes::parse("*").allows("any:thing"));
    }

    #[test]
    fn groups_are_bounded_in_number_and_length_of_names() {
        let numbered = |most: usize| Groups::new((0..most).map(|n| n.to_string()));
        assert_eq!(numbered(Groups::MOST).unwrap().names().count(), Groups::MOST);
        assert_eq!(numbered(Groups::MOST + 1), None);
        assert_eq!(Groups::new(["a"; Groups::MOST + 1]), None);
        assert!(Groups::new(["x".repeat(Groups::LONGEST)]).is_some());
        assert_eq!(Groups::new(["x".repeat(Groups::LONGEST + 1)]), None);
        assert_eq!(Groups::new(["ops", ""]), None);
        assert!(Groups::new([""; 0]).is_some_and(|groups| groups.is_empty()));
    }

    #[test]
    fn nobody_is_in_a_group_without_authentication() {
        assert!(Principal::local().groups.is_empty());
    }
}
