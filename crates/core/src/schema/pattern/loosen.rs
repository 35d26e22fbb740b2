//! A schema without some of its regular expressions, which refuses no value that the whole schema accepts.

use std::collections::HashSet;

use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::LeftOut;
use crate::schema::walk::{for_schemas, is_data, is_map};

/// Takes what is `left_out` from `schema`, and whatever would be stricter without it: where a schema that accepts more makes the one around
/// it accept less, the keyword is left out.
pub(super) fn loosen(schema: &mut Value, left_out: &[LeftOut]) {
    let leaves_names = left_out.iter().any(|it| it.keyword == "patternProperties");
    // Both say which members are evaluated.
    let forgets_evaluated = leaves_names || has_condition(schema);
    let left_out = left_out.iter().map(|it| (it.keyword, &*it.pattern)).collect();
    Loosener { left_out, forgets_evaluated }.loosen(schema);
}

fn has_condition(schema: &Value) -> bool {
    let mut found = false;
    for_schemas(schema, &mut |schema| found = found || schema.contains_key("if"));
    found
}

struct Loosener<'l> {
    /// Keywords and their expressions.
    left_out: HashSet<(&'static str, &'l str)>,
    forgets_evaluated: bool,
}

impl Loosener<'_> {
    /// Returns `true` if the schema may accept more than before. References may lead to schemas that do.
    fn loosen(&self, schema: &mut Value) -> bool {
        let object = match schema {
            Value::Array(schemas) => {
                return schemas.iter_mut().fold(false, |any, schema| any | self.loosen(schema));
            }
            Value::Object(object) => object,
            _ => return false,
        };
        let mut accepts_more = self.leave_out(object);
        let mut changed = Vec::new();
        for (keyword, given) in object.iter_mut() {
            let is_looser = match given {
                Value::Object(schemas) if is_map(keyword) => {
                    schemas.values_mut().fold(false, |any, schema| any | self.loosen(schema))
                }
                given if !is_data(keyword) => self.loosen(given),
                _ => false,
            };
            if is_looser {
                changed.push(keyword.clone());
            }
        }
        accepts_more |= !changed.is_empty();
        for keyword in changed {
            undo(object, &keyword);
        }
        accepts_more || ["$ref", "$dynamicRef", "$recursiveRef"].iter().any(|it| object.contains_key(*it))
    }

    /// Takes keywords out of one schema; returns `true` if there were some.
    fn leave_out(&self, object: &mut JsonObject) -> bool {
        let before = object.len();
        let pattern = object.get("pattern").and_then(Value::as_str);
        if pattern.is_some_and(|it| self.left_out.contains(&("pattern", it))) {
            object.shift_remove("pattern");
        }
        let mut is_shorter = false;
        if let Some(Value::Object(patterns)) = object.get_mut("patternProperties") {
            let all = patterns.len();
            patterns.retain(|pattern, _| !self.left_out.contains(&("patternProperties", pattern.as_str())));
            is_shorter = patterns.len() < all;
        }
        if is_shorter {
            object.shift_remove("additionalProperties");
        }
        if self.forgets_evaluated {
            object.shift_remove("unevaluatedProperties");
            object.shift_remove("unevaluatedItems");
        }
        is_shorter || object.len() < before
    }
}

/// Takes out what would be stricter because the schema at `keyword` accepts more.
fn undo(object: &mut JsonObject, keyword: &str) {
    match keyword {
        "not" => {
            object.shift_remove("not");
        }
        "if" => {
            for keyword in ["if", "then", "else"] {
                object.shift_remove(keyword);
            }
        }
        // What fits one of the schemas fits at least one of those that accept more.
        "oneOf" => {
            if let Some(alternatives) = object.shift_remove("oneOf") {
                let all = object.entry("allOf").or_insert_with(|| json!([]));
                if let Value::Array(all) = all {
                    all.push(json!({"anyOf": alternatives}));
                }
            }
        }
        "contains" => {
            object.shift_remove("maxContains");
        }
        _ => {}
    }
}
