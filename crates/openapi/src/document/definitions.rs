//! Names of definitions in `$defs`: the last part of the reference, in characters that need no escape.

use std::{cell::RefCell, collections::HashMap};

use super::sources::{ByNode, Node, reference};

/// Longest name of a definition, in characters.
const LONGEST: usize = 60;

/// Names of the definitions of a document. A definition has the same name in all schemas.
#[derive(Default)]
pub(super) struct DefinitionNames {
    names: RefCell<ByNode<String>>,
    taken: RefCell<HashMap<String, usize>>,
}

impl DefinitionNames {
    /// The name of `target`, to which `referrer` refers.
    pub(super) fn name(&self, referrer: Node<'_>, target: Node<'_>) -> String {
        let mut names = self.names.borrow_mut();
        if let Some(name) = names.get(&target.identity()) {
            return name.clone();
        }
        let written = reference(referrer.value).unwrap_or("Schema");
        let last = written.rsplit(['/', '#']).find(|part| !part.is_empty()).unwrap_or("Schema");
        let mut name: String = last
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' })
            .take(LONGEST)
            .collect();
        let mut taken = self.taken.borrow_mut();
        let count = taken.entry(name.clone()).or_insert(0);
        *count += 1;
        if *count > 1 {
            let mut number = *count;
            while taken.contains_key(&format!("{name}_{number}")) {
                number += 1;
            }
            let last_name = std::mem::take(&mut name);
            name = format!("{last_name}_{number}");
            // The next one begins behind it.
            taken.insert(last_name, number);
            taken.insert(name.clone(), 1);
        }
        names.insert(target.identity(), name.clone());
        name
    }
}
