//! MCP's own schemas: the definition of a message, compiled at its first use. `revisions/README.md` has their origin and licence.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, OnceLock},
};

use gatewright_core::{InputProblem, InputSchema, Revision};
use serde_json::{Map, Value, json};

use crate::base::lock;

/// Problems told of one message: enough to mend it, short enough to read.
const MOST_PROBLEMS: usize = 5;

const fn text(revision: Revision) -> &'static str {
    match revision {
        Revision::V2024_11_05 => include_str!("revisions/2024-11-05.json"),
        Revision::V2025_03_26 => include_str!("revisions/2025-03-26.json"),
        Revision::V2025_06_18 => include_str!("revisions/2025-06-18.json"),
        Revision::V2025_11_25 => include_str!("revisions/2025-11-25.json"),
        Revision::V2026_07_28 => include_str!("revisions/2026-07-28.json"),
    }
}

/// The schema of one revision.
pub(super) struct RevisionSchema {
    definitions: Map<String, Value>,
    /// Definitions of notifications and requests of the server, by method.
    messages: BTreeMap<String, String>,
    compiled: Mutex<HashMap<String, Arc<InputSchema>>>,
}

impl RevisionSchema {
    /// The schema of a revision that is read once for the process.
    pub(super) fn of(revision: Revision) -> &'static Self {
        static SCHEMAS: [OnceLock<RevisionSchema>; Revision::ALL.len()] =
            [const { OnceLock::new() }; Revision::ALL.len()];
        let at = Revision::ALL.iter().position(|one| *one == revision).unwrap_or_default();
        SCHEMAS[at].get_or_init(|| Self::read(text(revision)))
    }

    fn read(text: &str) -> Self {
        let mut whole: Map<String, Value> = serde_json::from_str(text).expect("the schemas are JSON");
        let definitions = ["$defs", "definitions"].iter().find_map(|key| whole.shift_remove(*key));
        let Some(Value::Object(definitions)) = definitions else {
            unreachable!("the schemas have definitions")
        };
        let method = |(name, definition): (&String, &Value)| {
            let method = definition["properties"]["method"]["const"].as_str()?;
            Some((method.to_owned(), name.clone()))
        };
        let messages = definitions.iter().filter_map(method).collect();
        Self { definitions, messages, compiled: Mutex::default() }
    }

    /// The definition of a notification or a request of the server.
    pub(super) fn message(&self, method: &str) -> Option<&str> {
        self.messages.get(method).map(String::as_str)
    }

    /// True if the revision has this definition.
    pub(super) fn has(&self, definition: &str) -> bool {
        self.definitions.contains_key(definition)
    }

    /// Problems of a value that is meant to fit a definition.
    pub(super) fn problems(&self, definition: &str, value: &Value) -> Vec<InputProblem> {
        let compiled = lock(&self.compiled)
            .entry(definition.to_owned())
            .or_insert_with(|| Arc::new(self.compile(definition)))
            .clone();
        compiled.problems(value, MOST_PROBLEMS)
    }

    /// A schema of one definition, with those it refers to.
    fn compile(&self, definition: &str) -> InputSchema {
        let (mut kept, mut open) = (BTreeSet::new(), vec![definition]);
        while let Some(name) = open.pop() {
            if kept.insert(name)
                && let Some(schema) = self.definitions.get(name)
            {
                references(schema, &mut open);
            }
        }
        let definitions: Map<String, Value> = kept
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), self.definitions.get(*name)?.clone())))
            .collect();
        // Older revisions say `definitions`; the references name the key.
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$ref": format!("#/$defs/{definition}"),
            "$defs": definitions,
        });
        let text = schema.to_string().replace("\"#/definitions/", "\"#/$defs/");
        let schema: Map<String, Value> = serde_json::from_str(&text).unwrap_or_default();
        InputSchema::new(Arc::new(schema))
    }
}

fn references<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Object(object) => {
            let target = object.get("$ref").and_then(Value::as_str);
            found.extend(target.and_then(|target| target.rsplit('/').next()));
            object.values().for_each(|value| references(value, found));
        }
        _ => {}
    }
}

#[cfg(test)]
impl RevisionSchema {
    /// Definitions that do not compile, with the reason.
    pub(super) fn defects(&self) -> Vec<String> {
        let defect = |name: &String| Some(format!("{name}: {}", self.compile(name).defect()?));
        self.definitions.keys().filter_map(defect).collect()
    }
}
