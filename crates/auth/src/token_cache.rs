//! A cache of verified tokens, by the digest of each.

use std::{collections::HashMap, sync::Arc};

use gatewright_core::Principal;

use crate::{records::Grant, store::FamilyId, tuning::MAX_CACHED_TOKENS};

/// Number of entries below which unused ones are not removed.
const MIN_SWEPT: usize = 128;
/// Time without a check after which a token counts as unused, in milliseconds.
const UNUSED_MS: u64 = 60_000;

/// A verified token.
#[derive(Clone)]
pub(crate) struct CachedToken {
    pub(crate) principal: Principal,
    pub(crate) expires_s: u64,
    pub(crate) checked_ms: u64,
    /// Revision of the revocation feed when it was checked.
    pub(crate) revision: u64,
    /// Its grant, once that was looked up.
    pub(crate) grant: Option<Arc<(FamilyId, Grant)>>,
    /// Resources that it was issued for; names of endpoints, for an API key.
    pub(crate) audiences: Arc<[String]>,
    /// Thumbprint of the DPoP key that it is bound to.
    pub(crate) jkt: Option<String>,
}

/// The cache.
#[derive(Default)]
pub(crate) struct TokenCache {
    entries: HashMap<[u8; 32], CachedToken>,
    /// Number of entries at which unused ones are removed.
    sweep_at: usize,
}

impl TokenCache {
    pub(crate) fn get(&self, digest: &[u8; 32]) -> Option<CachedToken> {
        self.entries.get(digest).cloned()
    }

    pub(crate) fn remove(&mut self, digest: &[u8; 32]) {
        self.entries.remove(digest);
    }

    pub(crate) fn insert(&mut self, digest: [u8; 32], token: CachedToken, now_ms: u64) {
        if self.entries.len() >= self.sweep_at.max(MIN_SWEPT) {
            self.entries.retain(|_, entry| entry.checked_ms + UNUSED_MS > now_ms);
            if self.entries.len() >= MAX_CACHED_TOKENS {
                self.entries.clear();
            }
            // Not at each token when many are in use.
            self.sweep_at = (2 * self.entries.len()).min(MAX_CACHED_TOKENS);
        }
        self.entries.insert(digest, token);
    }
}

#[cfg(test)]
mod tests {
    use gatewright_core::Scopes;

    use super::*;
    use crate::crypto::sha256;

    #[test]
    fn tokens_that_nobody_uses_any_more_are_forgotten_and_those_in_use_are_not() {
        let mut cache = TokenCache::default();
        let token = |checked_ms| CachedToken {
            principal: Principal {
                subject: "user:a".into(),
                client_id: None,
                scopes: Scopes::Granted(Default::default()),
                ..Principal::local()
            },
            expires_s: 0,
            checked_ms,
            revision: 0,
            grant: None,
            audiences: Arc::default(),
            jkt: None,
        };
        let used = sha256("used");
        for second in 0..10_000_u64 {
            let now = second * 1_000;
            cache.insert(used, token(now), now);
            cache.insert(sha256(second.to_string()), token(now), now);
            assert!(cache.entries.len() <= 2 * MIN_SWEPT, "{} are cached", cache.entries.len());
            assert!(cache.get(&used).is_some());
        }
        let now = 10_000_000;
        for number in 0..3 * MAX_CACHED_TOKENS {
            cache.insert(sha256(format!("at once {number}")), token(now), now);
            assert!(cache.entries.len() <= MAX_CACHED_TOKENS);
        }
    }
}
