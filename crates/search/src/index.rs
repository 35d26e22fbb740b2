//! The index: an immutable snapshot that readers share and updates replace.

use std::{collections::BTreeMap, sync::Arc};

use crate::{Change, Document, Hit, Query, SearchResult, Visible};

/// An immutable snapshot of searchable documents. Clones share everything and cost nothing.
#[derive(Debug, Clone, Default)]
pub struct Index {
    documents: Arc<BTreeMap<String, Document>>,
}

/// Which documents of one index a caller may see, kept between queries.
///
/// Made for one snapshot: documents added later are not visible through it, so make it anew after an update.
#[derive(Debug, Clone, Default)]
pub struct VisibleSet {
    names: std::collections::BTreeSet<String>,
}

impl Index {
    /// An index over `documents`; of two with one name the later counts.
    #[must_use]
    pub fn build(documents: impl IntoIterator<Item = Document>) -> Self {
        Self::default().updated(documents.into_iter().map(Change::Upsert))
    }

    /// The snapshot after `changes`, applied in order. `self` and its readers are unaffected.
    #[must_use]
    pub fn updated(&self, changes: impl IntoIterator<Item = Change>) -> Self {
        let mut documents = (*self.documents).clone();
        for change in changes {
            match change {
                Change::Upsert(document) => {
                    documents.insert(document.name.clone(), document);
                }
                Change::Remove(name) => {
                    documents.remove(&name);
                }
                Change::ReplaceApp { app_id, documents: new } => {
                    documents.retain(|_, document| document.app_id != app_id);
                    for mut document in new {
                        document.app_id.clone_from(&app_id);
                        documents.insert(document.name.clone(), document);
                    }
                }
            }
        }
        Self { documents: Arc::new(documents) }
    }

    /// How many documents there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether there is no document.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// The documents whose name passes, for use in many queries against this snapshot.
    #[must_use]
    pub fn visible_set(&self, visible: impl Fn(&str) -> bool) -> VisibleSet {
        VisibleSet { names: self.documents.keys().filter(|name| visible(name)).cloned().collect() }
    }

    /// The best tools for a query.
    #[must_use]
    pub fn search(&self, query: &Query<'_>) -> SearchResult {
        let sees = |name: &str| match query.visible {
            Visible::All => true,
            Visible::By(passes) => passes(name),
            Visible::Set(set) => set.names.contains(name),
        };
        let words: Vec<String> = query.text.split_whitespace().map(str::to_lowercase).collect();
        let mut hits = Vec::new();
        let mut total_indexed = 0;
        for document in self.documents.values().filter(|document| sees(&document.name)) {
            total_indexed += 1;
            if query.app_ids.is_some_and(|apps| !apps.contains(&document.app_id)) || words.is_empty() {
                continue;
            }
            let text = format!("{} {}", document.name, document.description).to_lowercase();
            let found = words.iter().filter(|word| text.contains(word.as_str())).count();
            #[expect(clippy::cast_precision_loss, reason = "word counts are small")]
            let score = found as f32 / words.len() as f32;
            if score > query.min_score {
                hits.push(Hit {
                    name: document.name.clone(),
                    app_id: document.app_id.clone(),
                    description: document.description.clone(),
                    score,
                });
            }
        }
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.name.cmp(&b.name)));
        hits.truncate(query.top_k.clamp(1, crate::query::MAX_TOP_K));
        SearchResult { hits, total_indexed }
    }
}
