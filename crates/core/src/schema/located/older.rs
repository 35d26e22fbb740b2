//! Schemas of drafts without `if`, written in draft 7.

use rmcp::model::JsonObject;
use serde_json::{Value, json};

use crate::schema::walk::change_schemas;

/// Keywords that a draft does not have, and would mean something in draft 7.
const NEW_IN_7: [&str; 3] = ["if", "then", "else"];
const NEW_IN_6: [&str; 3] = ["const", "contains", "propertyNames"];
const DRAFT_7: &str = "http://json-schema.org/draft-07/schema#";

/// Returns a schema of draft 7 that refuses no value that `schema`, of draft 4 or 6, accepts. Formats, which are others in each draft, are
/// not checked. `None` for a schema of draft 4 with others embedded.
pub(super) fn in_draft_7(schema: &Value, is_draft_4: bool) -> Option<Value> {
    let mut schema = schema.clone();
    if let Value::Object(object) = &mut schema {
        object.insert("$schema".to_owned(), json!(DRAFT_7));
        if is_draft_4 {
            object.shift_remove("id");
        }
    }
    let mut is_embedded = false;
    change_schemas(&mut schema, &mut |object| {
        object.shift_remove("format");
        NEW_IN_7.iter().for_each(|keyword| drop(object.shift_remove(*keyword)));
        if is_draft_4 {
            is_embedded |= object.get("id").is_some_and(Value::is_string);
            NEW_IN_6.iter().for_each(|keyword| drop(object.shift_remove(*keyword)));
            exclude(object, "minimum", "exclusiveMinimum");
            exclude(object, "maximum", "exclusiveMaximum");
        }
    });
    (!is_embedded).then_some(schema)
}

/// Writes a bound that draft 4 calls exclusive in a keyword next to it as a keyword of its own.
fn exclude(object: &mut JsonObject, bound: &str, exclusive: &str) {
    if object.shift_remove(exclusive) == Some(Value::Bool(true))
        && let Some(bound) = object.shift_remove(bound)
    {
        object.insert(exclusive.to_owned(), bound);
    }
}
