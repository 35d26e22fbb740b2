//! A schema of Cedar for a catalog: types of callers, objects and arguments.

use std::collections::BTreeMap;

use gatewright_core::ToolEntry;
use serde_json::{Map, Value as Json, json};

use crate::cedar::{Extensions, ValidatorSchema};

/// Deepest nesting of arguments that has types.
const DEEPEST: usize = 8;
/// Types that an argument is tried with whose schema names none, or several.
const GUESSES: [&str; 5] = ["String", "Long", "decimal", "Boolean", "Set"];

/// Arguments of some tools: for each name the types that it may have, and whether it is always there.
#[derive(Debug, Default)]
pub(crate) struct Arguments(BTreeMap<String, (Vec<Json>, bool)>);

impl Arguments {
    /// The arguments of all of `tools` together.
    pub(crate) fn of<'t>(tools: impl Iterator<Item = &'t ToolEntry>) -> Self {
        let (mut all, mut count) = (BTreeMap::<String, (Vec<Json>, usize)>::new(), 0);
        for tool in tools {
            count += 1;
            let schema = Json::Object((**tool.schema.source()).clone());
            for (name, declared, is_required) in properties(&schema, &schema) {
                let (types, required) = all.entry(name.to_owned()).or_default();
                for one in types_of(declared, &schema, DEEPEST) {
                    if !types.contains(&one) {
                        types.push(one);
                    }
                }
                *required += usize::from(is_required);
            }
        }
        Self(all.into_iter().map(|(name, (types, required))| (name, (types, required == count))).collect())
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

/// Properties of an object schema, and whether the gateway always sends them.
fn properties<'s>(schema: &'s Json, root: &'s Json) -> Vec<(&'s str, &'s Json, bool)> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .map(|(name, declared)| (name.as_str(), resolved(declared, root), required.contains(&name.as_str())))
        .collect()
}

fn resolved<'s>(schema: &'s Json, root: &'s Json) -> &'s Json {
    let target = schema["$ref"].as_str().and_then(|target| root.pointer(target.strip_prefix('#')?));
    target.unwrap_or(schema)
}

/// The types in Cedar of values that fit `schema`.
fn types_of(schema: &Json, root: &Json, depth: usize) -> Vec<Json> {
    let schema = resolved(schema, root);
    let named: Vec<&str> = match &schema["type"] {
        Json::String(one) => vec![one],
        Json::Array(several) => several.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    };
    let mut types = Vec::new();
    for one in named.into_iter().filter(|one| *one != "null") {
        types.extend(type_named(one, schema, root, depth));
    }
    if types.is_empty() {
        let branches =
            ["anyOf", "oneOf"].into_iter().flat_map(|key| schema[key].as_array().into_iter().flatten());
        types.extend(branches.filter(|_| depth > 0).flat_map(|branch| types_of(branch, root, depth - 1)));
    }
    if types.is_empty() && !is_null(schema) {
        types.extend(GUESSES.iter().map(|guess| match *guess {
            "Set" => json!({"type": "Set", "element": {"type": "String"}}),
            "decimal" => decimal(),
            plain => json!({"type": plain}),
        }));
    }
    types.dedup();
    types
}

fn is_null(schema: &Json) -> bool {
    schema["type"] == "null"
}

fn decimal() -> Json {
    json!({"type": "Extension", "name": "decimal"})
}

fn type_named(name: &str, schema: &Json, root: &Json, depth: usize) -> Vec<Json> {
    match name {
        "string" => vec![json!({"type": "String"})],
        "integer" => vec![json!({"type": "Long"})],
        "number" => vec![decimal()],
        "boolean" => vec![json!({"type": "Boolean"})],
        "array" if depth > 0 => {
            let elements = types_of(&schema["items"], root, depth - 1).into_iter();
            elements.map(|element| json!({"type": "Set", "element": element})).collect()
        }
        "object" if depth > 0 => {
            let members = properties(schema, root).into_iter().filter_map(|(name, declared, required)| {
                let mut one = types_of(declared, root, depth - 1).into_iter().next()?;
                one["required"] = required.into();
                Some((name.to_owned(), one))
            });
            vec![json!({"type": "Record", "attributes": members.collect::<Map<_, _>>()})]
        }
        _ => Vec::new(),
    }
}

/// The schemas under which a policy about tools with `arguments` may be right; one is enough. `None` leaves out the arguments.
pub(crate) fn schemas(arguments: Option<&Arguments>) -> Vec<ValidatorSchema> {
    let variants = arguments.map_or(1, Arguments::variants).min(GUESSES.len() + 1);
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
