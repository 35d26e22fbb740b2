//! The grants that work without a request rests on, by name.

use std::fmt;

use crate::{context::Context, records::Grant, store::FamilyId};

/// The grant that work rests on.
pub(crate) struct WorkGrant {
    pub(crate) family: FamilyId,
    /// The time from which its record may be gone although nobody ended it.
    pub(crate) ends_ms: u64,
}

impl WorkGrant {
    pub(crate) fn of(ctx: &Context, (family, grant): &(FamilyId, Grant)) -> Self {
        let lifetime = u64::try_from(ctx.family_lifetime(grant.refreshes).as_millis()).unwrap_or(u64::MAX);
        Self { family: family.clone(), ends_ms: grant.issued_ms.saturating_add(lifetime) }
    }

    /// Reads what [`Display`](fmt::Display) wrote.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (family, ends_ms) = text.split_once(' ')?;
        Some(Self { family: FamilyId::parse(family)?, ends_ms: ends_ms.parse().ok()? })
    }
}

impl fmt::Display for WorkGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.family.as_str(), self.ends_ms)
    }
}
