//! References whose outcome a validator remembers, for each array and object.
//!
//! `jsonschema` remembers what a reference gave that leads back to a schema around it, while that was compiled. A reference certainly leads
//! back where every way from the root to the schema that it is in passes through the schema that it leads to.

use std::collections::{HashMap, HashSet};

use rmcp::model::JsonObject;

/// Most schemas that are referred to, beyond which nothing is taken to be remembered.
const MOST_TARGETS: usize = 100;

type Schema = *const JsonObject;

/// References that lead back, each from a schema that is referred to, to such a schema.
#[derive(Default)]
pub(super) struct Repeats(HashSet<(Schema, Schema)>);

impl Repeats {
    /// Finds those among all `references`, the first of which leads to the root.
    pub(super) fn of(references: &[(Schema, Schema)]) -> Self {
        let Some((_, root)) = references.first().copied() else { return Self::default() };
        let mut next: HashMap<Schema, Vec<Schema>> = HashMap::new();
        for (from, to) in references.iter().skip(1) {
            next.entry(*from).or_default().push(*to);
        }
        let targets: HashSet<Schema> = references.iter().map(|(_, to)| *to).collect();
        if targets.len() > MOST_TARGETS || references.len() >= super::MOST_REFERENCES {
            return Self::default();
        }
        let mut back = HashSet::new();
        for target in targets {
            let without = reached(root, target, &next);
            let leads_back = |(from, to): &&(Schema, Schema)| {
                *to == target && !from.is_null() && (*from == target || !without.contains(from))
            };
            back.extend(references.iter().filter(leads_back));
        }
        Self(back)
    }

    pub(super) fn contains(&self, reference: &(Schema, Schema)) -> bool {
        self.0.contains(reference)
    }
}

/// The schemas that `root` leads to without passing through `closed`.
fn reached(root: Schema, closed: Schema, next: &HashMap<Schema, Vec<Schema>>) -> HashSet<Schema> {
    let mut found = HashSet::new();
    let mut open = vec![root];
    while let Some(schema) = open.pop() {
        if schema != closed && found.insert(schema) {
            open.extend(next.get(&schema).into_iter().flatten());
        }
    }
    found
}
