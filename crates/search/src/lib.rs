//! Tool search: finds the right tool for a sentence, with no model and offline.
//!
//! An [`Index`] is an immutable snapshot; [`Index::updated`] gives the next one without disturbing readers.
#![forbid(unsafe_code)]

mod document;
mod index;
mod query;

pub use document::{Change, Document};
pub use index::{Index, VisibleSet};
pub use query::{DEFAULT_MIN_SCORE, Hit, MAX_TOP_K, Query, SearchResult, Visible};
