//! Apps: those that a query names, and those so large that they would crowd others out.

use std::{ops::Range, sync::Arc};

use crate::{
    Index,
    candidates::Candidate,
    index::Part,
    parsed_query::{Alternative, ParsedQuery, Slot, Why},
    segment::squeezed,
    values::Looks,
};

/// Apps named by one query that are looked at.
const MOST_NAMED_APPS: usize = 8;

/// Tools with a word beyond which the word names no app.
const MOST_OF_WORD: u32 = 4096;

/// Conditions on which a word names an app.
struct Naming {
    /// Part of the tools with the word that are the app's, at least.
    of_word: f32,
    /// Part of the app's tools that have the word, at least.
    of_tools: f32,
    /// Tools of the app, at least: the words of one tool say nothing about its app.
    tools: usize,
}

/// A word akin to the id, as `DuckDB` is to `duck`.
const AKIN: Naming = Naming { of_word: 0.8, of_tools: 0.5, tools: 1 };
/// Another word, as `SQLite` for `db`.
const OTHER: Naming = Naming { of_word: 0.95, of_tools: 0.6, tools: 3 };

/// An app that the query names.
pub(crate) struct NamedApp {
    pub(crate) id: Arc<str>,
    /// Clauses that name it, as bits.
    pub(crate) clauses: u64,
    /// Named by all words of its id, and not by a word that its tools have.
    pub(crate) by_id: bool,
    /// Per part, its documents.
    pub(crate) ranges: Vec<Vec<Range<u32>>>,
}

impl Index {
    /// The documents of `ranges` without those of apps that crowd others out, if there are such apps.
    pub(crate) fn outside_of_a_crowd(&self, ranges: &[Vec<Range<u32>>]) -> Option<Vec<Vec<Range<u32>>>> {
        if self.inner.crowds.is_empty() {
            return None;
        }
        let of_part = |(part, ranges): (&Part, &Vec<Range<u32>>)| {
            let apps = part.segment.apps.iter().filter(|app| self.crowding(&app.id) == 0.0);
            let apps = apps.map(|app| &app.documents);
            apps.filter(|app| ranges.iter().any(|range| range.contains(&app.start))).cloned().collect()
        };
        Some(self.inner.parts.iter().zip(ranges).map(of_part).collect())
    }

    /// Excess of an app's tools over a quarter of all: 0 up to there, 1 for an app that has every tool.
    pub(crate) fn crowding(&self, app: &str) -> f32 {
        self.inner.crowds.iter().find(|(id, _)| **id == *app).map_or(0.0, |(_, crowding)| *crowding)
    }

    /// The apps that the query names, with all words of their ids, where an app crowds others out. Elsewhere, words say enough.
    pub(crate) fn named_apps(&self, parsed: &ParsedQuery, ranges: &[Vec<Range<u32>>]) -> Vec<NamedApp> {
        let mut named: Vec<NamedApp> = Vec::new();
        if self.inner.crowds.is_empty() {
            return named;
        }
        for (part, ranges) in ranges.iter().enumerate() {
            let same = |slot: &Slot| slot.alternatives.iter().find(|one| one.why == Why::Same)?.numbers[part];
            let asked: Vec<u32> = parsed.slots.iter().filter_map(same).collect();
            for app in &self.inner.parts[part].segment.apps {
                let is_named = !app.terms.is_empty() && app.terms.iter().all(|term| asked.contains(term));
                if !is_named || !ranges.iter().any(|range| range.contains(&app.documents.start)) {
                    continue;
                }
                let of_id = |slot: &&Slot| same(slot).is_some_and(|term| app.terms.contains(&term));
                let clauses = parsed.slots.iter().filter(of_id).fold(0, |all, slot| all | slot.clauses);
                let at = named.iter().position(|known| known.id == app.id).unwrap_or_else(|| {
                    let ranges = vec![Vec::new(); self.inner.parts.len()];
                    named.push(NamedApp { id: app.id.clone(), clauses, by_id: true, ranges });
                    named.len() - 1
                });
                named[at].ranges[part].push(app.documents.clone());
            }
        }
        named.truncate(MOST_NAMED_APPS);
        named
    }

    /// Adds the apps that a single word of the query names: one that most of the app's tools have and hardly any others.
    pub(crate) fn add_apps_of_words(
        &self,
        parsed: &ParsedQuery,
        ranges: &[Vec<Range<u32>>],
        named: &mut Vec<NamedApp>,
    ) {
        for slot in parsed.slots.iter().filter(|slot| slot.looks != Looks::Value) {
            let own = slot.alternatives.iter().find(|one| one.why == Why::Same);
            let Some(id) = own.and_then(|word| self.app_of_word(word)) else { continue };
            if let Some(known) = named.iter_mut().find(|known| known.id == id) {
                known.clauses |= slot.clauses;
                continue;
            }
            if named.len() == MOST_NAMED_APPS {
                return;
            }
            let of_part = |(part, ranges): (&Part, &Vec<Range<u32>>)| {
                let app = part.segment.app(&id).map(|app| app.documents.clone());
                app.into_iter().filter(|app| ranges.iter().any(|range| range.contains(&app.start))).collect()
            };
            let ranges: Vec<Vec<Range<u32>>> = self.inner.parts.iter().zip(ranges).map(of_part).collect();
            if ranges.iter().any(|ranges| !ranges.is_empty()) {
                named.push(NamedApp { id, clauses: slot.clauses, by_id: false, ranges });
            }
        }
    }

    /// The app that a word names, if there is one.
    fn app_of_word(&self, word: &Alternative) -> Option<Arc<str>> {
        if word.frequency > MOST_OF_WORD {
            return None;
        }
        let parts = || self.inner.parts.iter().zip(&word.numbers);
        parts().find_map(|(part, term)| {
            let with_word = part.live_of(part.segment.postings((*term)?).documents);
            // An app with most of all has most of those of some part, and therefore the one in the middle.
            let id = &part.segment.app_of(*with_word.get(with_word.len() / 2)?).id;
            let (mut tools, mut having) = (0, 0);
            for (part, term) in parts() {
                let Some(app) = part.segment.app(id) else { continue };
                tools += part.live_in(&app.documents);
                let Some(term) = *term else { continue };
                having += part.live_of(part.segment.postings(term).within(&app.documents).documents).len();
            }
            let naming = if is_akin(&squeezed(id), &word.term) { AKIN } else { OTHER };
            let most = tools >= naming.tools
                && having as f32 >= naming.of_word * word.frequency as f32
                && having as f32 >= naming.of_tools * tools as f32;
            most.then(|| id.clone())
        })
    }

    /// The bonus of a tool for an app that the query names by its id, beside an app that crowds others out. `share` is that part
    /// of the query's that names the app.
    pub(crate) fn bonus(
        &self,
        named: &[NamedApp],
        candidate: &Candidate,
        share: impl Fn(&NamedApp) -> f32,
    ) -> f32 {
        if self.inner.crowds.is_empty() || named.is_empty() {
            return 0.0;
        }
        let id = self.tie(candidate).0;
        let Some(app) = named.iter().find(|app| app.by_id && *app.id == *id) else { return 0.0 };
        // A large app is full of tools that have all words of the query.
        let crowded = self.inner.crowds.iter().map(|(_, crowding)| *crowding).fold(0.0, f32::max);
        (crowded - self.crowding(id)) * self.inner.weights.named * share(app)
    }

    /// Moves tools of a large app back, each one further, so that it leaves room for others.
    pub(crate) fn thin_out(&self, order: &mut [(f32, Candidate)]) {
        let weights = &self.inner.weights;
        let mut seen: Vec<(&str, f32)> = self.inner.crowds.iter().map(|(id, _)| (&**id, 0.0)).collect();
        for (key, candidate) in order {
            let app = self.tie(candidate).0;
            let Some((_, before)) = seen.iter_mut().find(|(id, _)| *id == app) else { continue };
            *before += 1.0;
            *key -= weights.crowd * self.crowding(app) * (*before - weights.crowd_from).max(0.0);
            candidate.order = *key;
        }
    }
}

/// Returns true if one of an id and a word begins with the other.
fn is_akin(id: &str, word: &str) -> bool {
    const LEAST: usize = 3;
    id.len().min(word.len()) >= LEAST && (id.starts_with(word) || word.starts_with(id))
}
