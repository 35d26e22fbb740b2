//! Queries and results.

use std::{fmt, time::SystemTime};

use serde::Serialize;

/// Most hits one query may ask for.
pub const MAX_TOP_K: usize = 100;

/// The documents that the caller may know about.
#[derive(Clone, Copy, Default)]
pub enum Visible<'a> {
    /// Every document.
    #[default]
    All,
    /// Documents whose public name passes. Called once per document of the index, so prefer
    /// [`Visible::Set`] where the answer can be kept between queries.
    By(&'a (dyn Fn(&str) -> bool + Sync)),
    /// A set made once with [`Index::visible_set`](crate::Index::visible_set).
    Set(&'a crate::VisibleSet),
}

impl fmt::Debug for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "All",
            Self::By(_) => "By(..)",
            Self::Set(_) => "Set(..)",
        })
    }
}

/// One search.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// The text to search for, in any language. Empty text finds nothing.
    pub text: &'a str,
    /// Most hits to return, clamped to 1-100. Default 5.
    pub top_k: usize,
    /// Only these apps. `None` means every app; an empty list finds nothing.
    pub app_ids: Option<&'a [String]>,
    /// Documents that the caller may see. Default [`Visible::All`].
    pub visible: Visible<'a>,
    /// Hits scoring less are left out, 0-1. Default [`DEFAULT_MIN_SCORE`].
    pub min_score: f32,
    /// Nothing is returned when the best hit scores less, 0-1. Default [`DEFAULT_MIN_BEST`].
    pub min_best: f32,
    /// Calls that followed searches, and the time. Default: none.
    pub usage: Option<(&'a crate::Usage, SystemTime)>,
}

/// [`Hit::score`] (0 to 1) below which a hit is noise: behind the best, such tools share a common word with the query.
pub const DEFAULT_MIN_SCORE: f32 = 0.05;

/// [`Hit::score`] (0 to 1) below which the best hit counts as a near-miss and nothing is returned. Set so that hardly a query
/// with an answer loses it (0.4 % of those of the development sets), so many near-misses stay: 28 % of 122 short texts
/// that no tool answers come back empty (`docs/benchmarks/search.md`). [`Query::min_score`] replaces it.
pub const DEFAULT_MIN_BEST: f32 = 0.06;

impl<'a> Query<'a> {
    /// A query for five hits among everything.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            top_k: 5,
            app_ids: None,
            visible: Visible::All,
            min_score: DEFAULT_MIN_SCORE,
            min_best: DEFAULT_MIN_BEST,
            usage: None,
        }
    }

    /// Most hits to return, clamped to 1-100.
    #[must_use]
    pub fn top_k(mut self, top_k: usize) -> Self {
        self.top_k = top_k;
        self
    }

    /// Only these apps; `None` for every app.
    #[must_use]
    pub fn app_ids(mut self, app_ids: Option<&'a [String]>) -> Self {
        self.app_ids = app_ids;
        self
    }

    /// Limits the documents to those that the caller may see.
    #[must_use]
    pub fn visible(mut self, visible: Visible<'a>) -> Self {
        self.visible = visible;
        self
    }

    /// Documents that were called after searches for the same words rise, by their use as of `now`.
    #[must_use]
    pub fn usage(mut self, usage: &'a crate::Usage, now: SystemTime) -> Self {
        self.usage = Some((usage, now));
        self
    }

    /// Leave out hits scoring less than this, 0-1, and nothing else.
    #[must_use]
    pub fn min_score(mut self, min_score: f32) -> Self {
        self.min_score = min_score;
        self.min_best = min_score;
        self
    }
}

/// One tool found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    /// Public name of the tool.
    pub name: String,
    /// The app it belongs to.
    pub app_id: String,
    /// Its description, whole.
    pub description: String,
    /// Share of the query that the tool's text answers, above 0 and up to 1, and comparable between queries: the share of a
    /// perfect match, marked down where that is little evidence (common words, a corrected spelling, one telling word out of
    /// several; see `docs/SEARCH.md`, "Scores"). Not a probability: the best hit of most requests scores between 0.1 and 0.6,
    /// and 1 means that the query is the tool's name. Never less than that of the hits behind it.
    pub score: f32,
}

/// The answer to a [`Query`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchResult {
    /// Best first. Empty when nothing answers the query.
    pub hits: Vec<Hit>,
    /// Documents the caller may see, whatever the query and its app filter.
    pub total_indexed: usize,
}

/// A document ranked by the lexical index, for blending with another ranking.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// Public name of the tool.
    pub name: String,
    /// Sort key: higher is better, comparable within one query only.
    pub order: f32,
    /// As [`Hit::score`].
    pub score: f32,
    /// The query is this tool's name.
    pub exact: bool,
}
