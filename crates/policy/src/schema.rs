//! A schema of Cedar for a catalog: types of callers, objects and arguments.

use std::{
    cell::Cell,
    collections::{BTreeMap, HashSet},
};

use gatewright_core::ToolEntry;
use serde_json::{Map, Value as Json, json};

use crate::cedar::{Extensions, ValidatorSchema};

/// Deepest nesting of arguments that has types.
const DEEPEST: usize = 8;
/// Types that an argument is tried with whose schema names none, or several.
const GUESSES: [&str; 5] = ["String", "Long", "decimal", "Boolean", "Set"];

/// Most types of an argument that schemas are made with.
const MOST_TYPES: usize = GUESSES.len() + 1;
/// Parts of input schemas that are read for one catalog, and for one tool of it: references multiply them.
const MOST_PARTS: u32 = 1_000_000;
const MOST_PARTS_OF_TOOL: u32 = 20_000;

/// Parts of input schemas that may still be read, for all policies and tools of a catalog.
pub(crate) struct Budget(Cell<u32>);

impl Default for Budget {
    fn default() -> Self {
        Self(Cell::new(MOST_PARTS))
    }
}

/// Arguments of some tools: for each name the types that it may have, and whether it is always there.
#[derive(Debug, Default)]
pub(crate) struct Arguments(BTreeMap<String, (Vec<Json>, bool)>);

impl Arguments {
    /// The arguments of all of `tools` together; `None` if that is too much to read.
    pub(crate) fn of<'t>(tools: impl Iterator<Item = &'t ToolEntry>, budget: &Budget) -> Option<Self> {
        let (mut all, mut count) = (BTreeMap::<String, (Vec<Json>, usize)>::new(), 0);
        for tool in tools {
            count += 1;
            let schema = Json::Object((**tool.schema.source()).clone());
            let reader = Reader { root: &schema, left: Cell::new(budget.0.get().min(MOST_PARTS_OF_TOOL)) };
            let before = reader.left.get();
            for (name, declared, is_required) in reader.properties(&schema) {
                let (types, required) = all.entry(name.to_owned()).or_default();
                for one in reader.types_of(declared, DEEPEST, MOST_TYPES) {
                    if types.len() < MOST_TYPES && !types.contains(&one) {
                        types.push(one);
                    }
                }
                *required += usize::from(is_required);
            }
            budget.0.set(budget.0.get() - (before - reader.left.get()));
            if reader.left.get() == 0 {
                tracing::warn!(tool.name = %tool.name, "input schemas are too large; arguments are not checked");
                return None;
            }
        }
        let all = all.into_iter().map(|(name, (types, required))| (name, (types, required == count)));
        Some(Self(all.collect()))
    }

    /// Schemas that differ in the types of arguments that may have several.
    fn variants(&self) -> usize {
        self.0.values().map(|(types, _)| types.len()).max().unwrap_or(1).max(1)
    }

    fn record(&self, variant: usize) -> Json {
        let attribute = |(name, (types, required)): (&String, &(Vec<Json>, bool))| {
            let mut one = types.get(variant).or_else(|| types.last())?.clone();
            one["required"] = (*required).into();
            Some((name.clone(), one))
        };
        let attributes: Map<String, Json> = self.0.iter().filter_map(attribute).collect();
        json!({"type": "Record", "attributes": attributes})
    }
}

/// Reads the types of one input schema.
struct Reader<'s> {
    root: &'s Json,
    /// Parts that may still be read.
    left: Cell<u32>,
}

impl<'s> Reader<'s> {
    /// Properties of an object schema, and whether the gateway always sends them.
    fn properties(&self, schema: &'s Json) -> impl Iterator<Item = (&'s str, &'s Json, bool)> {
        let required: HashSet<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        let properties = schema["properties"].as_object().into_iter().flatten();
        properties.map(move |(name, declared)| {
            (name.as_str(), self.resolved(declared), required.contains(name.as_str()))
        })
    }

    fn resolved(&self, schema: &'s Json) -> &'s Json {
        let target = schema["$ref"].as_str().and_then(|target| self.root.pointer(target.strip_prefix('#')?));
        target.unwrap_or(schema)
    }

    /// The first `most` types in Cedar of values that fit `schema`; none if too much was read.
    fn types_of(&self, schema: &'s Json, depth: usize, most: usize) -> Vec<Json> {
        let Some(left) = self.left.get().checked_sub(1) else { return Vec::new() };
        self.left.set(left);
        let schema = self.resolved(schema);
        let named: &[Json] = match &schema["type"] {
            one @ Json::String(_) => std::slice::from_ref(one),
            Json::Array(several) => several,
            _ => &[],
        };
        let mut types = Vec::new();
        for one in named.iter().filter_map(Json::as_str).filter(|one| *one != "null") {
            add(&mut types, most, || self.type_named(one, schema, depth, most));
        }
        if types.is_empty() && depth > 0 {
            for branches in ["anyOf", "oneOf"] {
                for branch in schema[branches].as_array().into_iter().flatten() {
                    add(&mut types, most, || self.types_of(branch, depth - 1, most));
                }
            }
        }
        if types.is_empty() && !is_null(schema) {
            add(&mut types, most, || {
                let guess = |guess: &&str| match *guess {
                    "Set" => json!({"type": "Set", "element": {"type": "String"}}),
                    "decimal" => decimal(),
                    plain => json!({"type": plain}),
                };
                GUESSES.iter().map(guess).collect()
            });
        }
        types
    }

    fn type_named(&self, name: &str, schema: &'s Json, depth: usize, most: usize) -> Vec<Json> {
        match name {
            "string" => vec![json!({"type": "String"})],
            "integer" => vec![json!({"type": "Long"})],
            "number" => vec![decimal()],
            "boolean" => vec![json!({"type": "Boolean"})],
            "array" if depth > 0 => {
                let elements = self.types_of(&schema["items"], depth - 1, most).into_iter();
                elements.map(|element| json!({"type": "Set", "element": element})).collect()
            }
            "object" if depth > 0 => {
                let members = self.properties(schema).filter_map(|(name, declared, required)| {
                    let mut one = self.types_of(declared, depth - 1, 1).into_iter().next()?;
                    one["required"] = required.into();
                    Some((name.to_owned(), one))
                });
                vec![json!({"type": "Record", "attributes": members.collect::<Map<_, _>>()})]
            }
            _ => Vec::new(),
        }
    }
}

/// Adds what `found` returns to `types` where it differs from the one before, up to `most`.
fn add(types: &mut Vec<Json>, most: usize, found: impl FnOnce() -> Vec<Json>) {
    if types.len() == most {
        return;
    }
    for one in found() {
        if types.len() < most && types.last() != Some(&one) {
            types.push(one);
        }
    }
}

fn is_null(schema: &Json) -> bool {
    schema["type"] == "null"
}

fn decimal() -> Json {
    json!({"type": "Extension", "name": "decimal"})
}

/// The schemas under which a policy about tools with `arguments` may be right; one is enough. `None` leaves out the arguments.
pub(crate) fn schemas(arguments: Option<&Arguments>) -> Vec<ValidatorSchema> {
    let variants = arguments.map_or(1, Arguments::variants).min(MOST_TYPES);
    let made = (0..variants).filter_map(|variant| {
        let record = arguments.map(|arguments| arguments.record(variant));
        let schema = json!({"": definitions(record)});
        match ValidatorSchema::from_json_value(schema, Extensions::all_available()) {
            Ok(schema) => Some(schema),
            Err(error) => {
                tracing::warn!(%error, "a catalog has no schema in Cedar; arguments are not checked");
                None
            }
        }
    });
    made.collect()
}

fn definitions(arguments: Option<Json>) -> Json {
    let text = || json!({"type": "String"});
    let yes_or_no = || json!({"type": "Boolean"});
    let context = |arguments: Option<Json>| {
        let mut attributes = json!({
            "script": yes_or_no(), "calls": {"type": "Long"}, "hour": {"type": "Long"}, "weekday": text(),
            "time": {"type": "Extension", "name": "datetime"},
        });
        if let Some(arguments) = arguments {
            attributes["arguments"] = arguments;
        }
        json!({"type": "Record", "attributes": attributes})
    };
    let action = |object: &str, arguments: Option<Json>| json!({"appliesTo": {"principalTypes": ["User"], "resourceTypes": [object], "context": context(arguments)}});
    let texts = json!({"type": "Record", "attributes": {}});
    json!({
        "entityTypes": {
            "User": {"shape": {"type": "Record", "attributes": {
                "subject": text(), "client": {"type": "String", "required": false},
                "endpoint": {"type": "String", "required": false},
                "scopes": {"type": "Set", "element": text()},
                "groups": {"type": "Set", "element": text()},
            }}},
            "App": {},
            "Tool": {"memberOfTypes": ["App"], "shape": {"type": "Record", "attributes": {
                "name": text(), "app": text(), "readOnly": yes_or_no(), "destructive": yes_or_no(),
                "idempotent": yes_or_no(), "openWorld": yes_or_no(),
            }}},
            "Resource": {"memberOfTypes": ["App"], "shape": {"type": "Record", "attributes": {"uri": text(), "app": text()}}},
            "Prompt": {"memberOfTypes": ["App"], "shape": {"type": "Record", "attributes": {"name": text(), "app": text()}}},
        },
        "actions": {
            "call": action("Tool", arguments),
            "read": action("Resource", Some(texts)),
            "get": action("Prompt", None),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_that_refer_to_the_root_are_not_followed_without_end() {
        let properties: Map<String, Json> =
            (0..30).map(|n| (format!("p{n}"), json!({"$ref": "#"}))).collect();
        let schema = json!({"type": "object", "properties": properties});
        let reader = Reader { root: &schema, left: Cell::new(MOST_PARTS_OF_TOOL) };
        let types = reader.types_of(&schema, DEEPEST, 1);
        assert_eq!((types.len(), reader.left.get()), (1, 0));
        assert!(types[0].to_string().len() < 100 * MOST_PARTS_OF_TOOL as usize);
    }

    #[test]
    fn alternatives_have_the_types_of_each_and_members_the_first_one() {
        let schema = json!({"anyOf": [{"type": "string"}, {"type": "string"}, {"type": ["integer", "null"]},
            {"properties": {"a": {"oneOf": [{"type": "boolean"}, {"type": "string"}]}}, "required": ["a"], "type": "object"}]});
        let reader = Reader { root: &schema, left: Cell::new(100) };
        let types = reader.types_of(&schema, DEEPEST, MOST_TYPES);
        let record = json!({"type": "Record", "attributes": {"a": {"type": "Boolean", "required": true}}});
        assert_eq!(types, [json!({"type": "String"}), json!({"type": "Long"}), record]);
        assert_eq!(reader.left.get(), 93);
    }
}
