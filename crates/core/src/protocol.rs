//! Revisions of MCP, and what they change for a gateway.
//!
//! A new revision is a variant of [`Revision`]; the compiler then names the decisions that depend on it.

use http::{HeaderMap, HeaderName};
use rmcp::{RoleServer, model::ProtocolVersion, service::RequestContext};

/// Header in which a client names the revision of its request.
static VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// A published revision of MCP; older ones are less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are the dates")]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

impl Revision {
    /// Every revision that is served, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;
    /// The newest revision with `initialize` and sessions.
    pub const LATEST_WITH_SESSIONS: Self = Self::V2025_11_25;

    /// The revision's name in messages and headers: its date.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == name)
    }

    /// The era that the revision belongs to.
    pub const fn era(self) -> Era {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => Era::Session,
            Self::V2026_07_28 => Era::Stateless,
        }
    }
}

impl From<Revision> for ProtocolVersion {
    fn from(revision: Revision) -> Self {
        match revision {
            Revision::V2024_11_05 => Self::V_2024_11_05,
            Revision::V2025_03_26 => Self::V_2025_03_26,
            Revision::V2025_06_18 => Self::V_2025_06_18,
            Revision::V2025_11_25 => Self::V_2025_11_25,
            Revision::V2026_07_28 => Self::V_2026_07_28,
        }
    }
}

/// Revisions that clients and servers talk in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// Up to 2025-11-25: `initialize` begins a session, and servers send requests to their clients.
    Session,
    /// From 2026-07-28 on: each request stands alone and names its revision (SEP-2567).
    Stateless,
}

/// Methods of the era with sessions alone.
const WITH_SESSIONS: [&str; 5] =
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

impl Era {
    /// The era of a revision by its name: for one that is not known, that of the revision before it.
    pub fn of_version(version: &str) -> Self {
        // Names are ISO dates: they compare as text.
        let known = Revision::ALL.into_iter().rev().find(|known| known.as_str() <= version);
        known.map_or(Self::Session, Revision::era)
    }

    /// The era of a request.
    pub fn of(request: &RequestContext<RoleServer>) -> Self {
        request.protocol_version().map_or(Self::Session, |version| Self::of_version(version.as_str()))
    }

    /// The era that the headers of an HTTP request name.
    pub fn of_headers(headers: &HeaderMap) -> Self {
        let version = headers.get(&VERSION_HEADER).and_then(|value| value.to_str().ok());
        version.map_or(Self::Session, Self::of_version)
    }

    /// Returns `true` for the era without sessions.
    pub fn is_stateless(self) -> bool {
        self == Self::Stateless
    }

    /// Returns `false` for a method that the era does not have any more.
    pub(crate) fn has_method(self, method: &str) -> bool {
        match self {
            Self::Session => true,
            Self::Stateless => !WITH_SESSIONS.contains(&method),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_that_the_sdk_knows_is_served_under_its_name() {
        let names: Vec<&str> = Revision::ALL.into_iter().map(Revision::as_str).collect();
        let known: Vec<&str> = ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect();
        assert_eq!(names, known);
        for revision in Revision::ALL {
            let version = ProtocolVersion::from(revision);
            assert_eq!(version.as_str(), revision.as_str());
            assert_eq!(revision.era() == Era::Session, version.has_initialize());
        }
        assert_eq!(ProtocolVersion::from(Revision::LATEST), ProtocolVersion::LATEST);
        let latest = ProtocolVersion::from(Revision::LATEST_WITH_SESSIONS);
        assert_eq!(latest, ProtocolVersion::LATEST_WITH_INITIALIZE);
    }

    #[test]
    fn an_unknown_revision_is_of_the_era_of_the_one_before_it() {
        for (version, era) in [
            ("1999-01-01", Era::Session),
            ("", Era::Session),
            ("2026-01-01", Era::Session),
            ("2026-07-28", Era::Stateless),
            ("2031-01-01", Era::Stateless),
        ] {
            assert_eq!(Era::of_version(version), era, "{version}");
        }
    }
}
