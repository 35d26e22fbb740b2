//! Tool search: finds the right tool for a sentence, with no model and offline.
//!
//! An [`Index`] is an immutable snapshot; [`Index::updated`] gives the next one without disturbing readers.
//!
//! ```
//! use gatewright_search::{Document, Index, Query};
//!
//! let index = Index::build([Document {
//!     name: "files:delete_file".to_owned(),
//!     app_id: "files".to_owned(),
//!     description: "Delete a file for good".to_owned(),
//!     input_schema: std::sync::Arc::default(),
//! }]);
//! let found = index.search(&Query::new("remove the file"));
//! assert_eq!(found.hits[0].name, "files:delete_file");
//! ```
#![forbid(unsafe_code)]

mod apps;
mod builder;
mod candidates;
mod document;
mod document_vectors;
mod explain;
mod features;
mod fields;
mod fuzzy;
mod index;
mod intents;
mod meaning;
mod merge;
mod nearest;
mod parsed_query;
mod pieces;
mod places;
mod query;
mod rank;
mod removal;
mod score;
mod segment;
mod synonyms;
mod terms;
mod tokenize;
mod trigrams;
mod usage;
mod used;
mod values;
mod variety;
pub mod vectors;
mod weights;

pub mod eval;

pub use document::{Change, Document};
pub use explain::{Explanation, Relation, TermMatch, word_of};
pub use index::{Entry, Index, VisibleSet};
pub use intents::clauses;
#[doc(hidden)]
pub use pieces::pieces;
pub use query::{DEFAULT_MIN_BEST, DEFAULT_MIN_SCORE, Hit, MAX_TOP_K, Query, Ranked, SearchResult, Visible};
pub use usage::{MOST_PAIRS, Usage, UsageTerm, UsedDocument};
#[doc(hidden)]
pub use weights::{FieldWeight, RankWeights, Weights};
