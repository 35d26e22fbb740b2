//! A schema that allows the same values and whose first error is at the place that is wrong.
//!
//! A validator reports the problems of every alternative of `anyOf` and `oneOf`, and so of every combination of those that are nested. Here
//! each becomes `if` and `then`: where only one alternative can fit a value, by its types, constants, and the properties that it requires
//! and allows, the problem of that alternative is the problem of the value. Where several can, the choice as a whole is checked.

mod older;

use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::guard::{Guard, Reader, Strength, common};

/// Keyword of a schema that no value fits, in place of the alternatives that one does not fit: their keyword and number.
const NO_FIT: &str = "x-gatewright-alternatives";
/// Name of the definitions that are alternatives.
const PREFIX: &str = "x-gatewright-";
/// Most references into alternatives.
const MOST_MOVED: usize = 200;
/// Most parts of the conditions, for each part of the schema.
const MOST_ADDED: usize = 8;

/// Returns `schema` with `if` and `then` for its alternatives; `None` where that cannot be done: for draft 3, for schemas with others
/// embedded, and for those that are too long or whose alternatives refer to too much.
pub(super) fn located(schema: &Value) -> Option<Value> {
    let draft = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    if draft.contains("draft-03") || has_inner_id(schema, true) {
        return None;
    }
    let is_old = ["draft-04", "draft-06"].iter().any(|old| draft.contains(old));
    let mut schema = match is_old {
        true => older::in_draft_7(schema, draft.contains("draft-04"))?,
        false => schema.clone(),
    };
    move_referred(&mut schema)?;
    let source = schema.clone();
    let room = usize::try_from(super::cost::values(&schema)).ok()?.saturating_mul(MOST_ADDED);
    let ignores_siblings = is_old || draft.contains("draft-07");
    let mut writer = Writer {
        reader: Reader::new(&source, ignores_siblings),
        ignores_siblings,
        definitions: JsonObject::new(),
        room,
    };
    writer.write(&mut schema);
    if writer.reader.is_used_up() {
        return None;
    }
    let definitions = writer.definitions;
    add_definitions(&mut schema, definitions)?;
    Some(schema)
}

/// Returns the sentence for a value that fits none of some alternatives, from the schema that it was refused by.
pub(super) fn no_fit(schema: &Value) -> Option<String> {
    let [keyword, number] = schema.get(NO_FIT)?.as_array()?.as_slice() else { return None };
    Some(match keyword.as_str() {
        Some("oneOf") => {
            format!("the value has to fit exactly one of the {number} alternatives of the schema")
        }
        _ => format!("the value fits none of the {number} alternatives of the schema"),
    })
}

struct Writer<'s> {
    /// Reads conditions from the schema as it was.
    reader: Reader<'s>,
    /// Keywords next to `$ref` mean nothing.
    ignores_siblings: bool,
    definitions: JsonObject,
    /// Parts that may still be added.
    room: usize,
}

impl Writer<'_> {
    fn write(&mut self, schema: &mut Value) {
        let Value::Object(object) = schema else { return };
        if self.ignores_siblings && object.contains_key("$ref") {
            return;
        }
        // Read before the alternatives within are written.
        let guards: Vec<_> = CHOICES.iter().map(|keyword| self.guards(object.get(*keyword))).collect();
        for (keyword, given) in object.iter_mut() {
            match (keyword.as_str(), given) {
                ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(schemas)) => {
                    schemas.iter_mut().for_each(|schema| self.write(schema));
                }
                (
                    "then"
                    | "else"
                    | "items"
                    | "additionalItems"
                    | "additionalProperties"
                    | "unevaluatedItems"
                    | "unevaluatedProperties",
                    schema,
                ) => self.write(schema),
                (
                    "properties" | "patternProperties" | "dependentSchemas" | "dependencies" | "$defs"
                    | "definitions",
                    Value::Object(schemas),
                ) => schemas.values_mut().for_each(|schema| self.write(schema)),
                _ => {}
            }
        }
        for (keyword, guards) in CHOICES.into_iter().zip(guards) {
            let Some(guards) = guards else { continue };
            let Some(Value::Array(alternatives)) = object.shift_remove(keyword) else { continue };
            let parts = self.choice(keyword, alternatives, &guards);
            append(object, parts);
        }
        if object.contains_key("unevaluatedProperties") || object.contains_key("unevaluatedItems") {
            // Validators look at references after what is unevaluated, and would report that for an error behind a reference.
            for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
                if let Some(reference) = object.shift_remove(keyword) {
                    append(object, vec![json!({ keyword: reference })]);
                }
            }
        }
    }

    fn guards(&self, given: Option<&Value>) -> Option<Vec<Guard>> {
        let alternatives = given?.as_array().filter(|it| !it.is_empty())?;
        Some(alternatives.iter().map(|it| Guard::of(it, &self.reader)).collect())
    }

    /// Returns the schemas that stand for `alternatives`.
    fn choice(&mut self, keyword: &str, alternatives: Vec<Value>, guards: &[Guard]) -> Vec<Value> {
        let number = alternatives.len();
        let references: Vec<Value> = alternatives.into_iter().map(|it| self.define(it)).collect();
        let mut choice = json!({
            "if": {keyword: references},
            "else": {"not": {NO_FIT: [keyword, number]}},
        });
        let mut weaker = Vec::new();
        let mut steps = Vec::new();
        for strength in [Strength::Values, Strength::Required, Strength::Names, Strength::Types] {
            let conditions: Vec<Value> = guards.iter().map(|guard| guard.schema(strength)).collect();
            let parts = conditions.iter().map(|it| 2 * super::cost::values(it)).sum::<u64>();
            let parts = usize::try_from(parts).unwrap_or(usize::MAX);
            if conditions == weaker || parts > self.room {
                continue;
            }
            self.room -= parts;
            weaker.clone_from(&conditions);
            steps.push(conditions);
        }
        for conditions in steps.into_iter().rev() {
            let applied: Vec<_> = conditions
                .iter()
                .zip(&references)
                .map(|(condition, reference)| json!({"if": condition, "then": reference}))
                .collect();
            choice = json!({"if": {"oneOf": conditions}, "then": {"allOf": applied}, "else": choice});
        }
        let common = common(guards);
        if common.is_empty() { vec![choice] } else { vec![Value::Object(common), choice] }
    }

    /// Returns a schema that refers to `schema`, or is it where that is as short.
    fn define(&mut self, schema: Value) -> Value {
        let is_short = match &schema {
            Value::Object(object) => object.is_empty() || (object.len() == 1 && object.contains_key("$ref")),
            _ => true,
        };
        if is_short {
            return schema;
        }
        let name = format!("{PREFIX}{}", self.definitions.len());
        let reference = json!({"$ref": format!("#/$defs/{name}")});
        self.definitions.insert(name, schema);
        reference
    }
}

const CHOICES: [&str; 2] = ["anyOf", "oneOf"];

fn append(object: &mut JsonObject, parts: Vec<Value>) {
    if let Value::Array(all) = object.entry("allOf").or_insert_with(|| json!([])) {
        all.extend(parts);
    }
}

/// Gives what references name within alternatives a definition of its own: alternatives move.
fn move_referred(schema: &mut Value) -> Option<()> {
    let mut pointers = Vec::new();
    for_references(schema, &mut |reference| {
        let choices = ["/anyOf/", "/oneOf/"];
        if choices.iter().any(|it| reference.contains(it)) && !pointers.contains(reference) {
            pointers.push(reference.clone());
        }
        pointers.len() <= MOST_MOVED
    })
    .then_some(())?;
    // What is within another first.
    pointers.sort_by_key(|pointer| std::cmp::Reverse(pointer.len()));
    let mut definitions = JsonObject::new();
    for (n, pointer) in pointers.iter().enumerate() {
        let decoded = percent_encoding::percent_decode_str(pointer.strip_prefix('#')?).decode_utf8().ok()?;
        let name = format!("{PREFIX}moved-{n}");
        let target = schema.pointer_mut(&decoded)?;
        let moved = std::mem::replace(target, json!({"$ref": format!("#/$defs/{name}")}));
        definitions.insert(name, moved);
    }
    add_definitions(schema, definitions)?;
    for_references(schema, &mut |reference| {
        if let Some(n) = pointers.iter().position(|pointer| pointer == reference) {
            *reference = format!("#/$defs/{PREFIX}moved-{n}");
        }
        true
    });
    Some(())
}

/// Calls `each` with every reference until it returns `false`; returns `true` at the end.
fn for_references(schema: &mut Value, each: &mut impl FnMut(&mut String) -> bool) -> bool {
    match schema {
        Value::Array(items) => items.iter_mut().all(|item| for_references(item, each)),
        Value::Object(object) => object.iter_mut().all(|(name, value)| match value {
            Value::String(reference) if name == "$ref" => each(reference),
            value => for_references(value, each),
        }),
        _ => true,
    }
}

fn add_definitions(schema: &mut Value, definitions: JsonObject) -> Option<()> {
    if definitions.is_empty() {
        return Some(());
    }
    let known = schema.as_object_mut()?.entry("$defs").or_insert_with(|| json!({})).as_object_mut()?;
    if definitions.keys().any(|name| known.contains_key(name)) {
        return None;
    }
    known.extend(definitions);
    Some(())
}

/// Returns `true` if a part of `schema` has an address of its own, by which references in it are resolved.
fn has_inner_id(schema: &Value, is_root: bool) -> bool {
    match schema {
        Value::Array(items) => items.iter().any(|item| has_inner_id(item, false)),
        Value::Object(object) => {
            (!is_root && object.get("$id").is_some_and(Value::is_string))
                || object.values().any(|value| has_inner_id(value, false))
        }
        _ => false,
    }
}

#[cfg(test)]
pub(super) mod tests;
