//! A matcher as the argument of another.

use std::sync::Arc;

use crate::matchers::matching::Match;

/// A matcher for the items of a list.
#[derive(Clone)]
pub struct ItemMatcher(pub(in crate::matchers) Arc<dyn Match + Send + Sync>);

impl std::fmt::Debug for ItemMatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ItemMatcher")
    }
}
