//! The schemas within a schema, by the keywords that they stand in.

use rmcp::model::JsonObject;
use serde_json::Value;

/// Calls `each` with every schema within `schema`, itself included.
pub(super) fn for_schemas<'s>(schema: &'s Value, each: &mut impl FnMut(&'s JsonObject)) {
    match schema {
        Value::Array(schemas) => schemas.iter().for_each(|schema| for_schemas(schema, each)),
        Value::Object(object) => for_schemas_of(object, each),
        _ => {}
    }
}

/// The same for a schema that is an object.
pub(super) fn for_schemas_of<'s>(schema: &'s JsonObject, each: &mut impl FnMut(&'s JsonObject)) {
    each(schema);
    for (keyword, given) in schema {
        match given {
            Value::Object(schemas) if is_map(keyword) => {
                schemas.values().for_each(|schema| for_schemas(schema, each));
            }
            given if !is_data(keyword) => for_schemas(given, each),
            _ => {}
        }
    }
}

/// Calls `each` with every schema within `schema`, itself last.
pub(super) fn change_schemas(schema: &mut Value, each: &mut impl FnMut(&mut JsonObject)) {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(|schema| change_schemas(schema, each)),
        Value::Object(object) => {
            for (keyword, given) in object.iter_mut() {
                match given {
                    Value::Object(schemas) if is_map(keyword) => {
                        schemas.values_mut().for_each(|schema| change_schemas(schema, each));
                    }
                    given if !is_data(keyword) => change_schemas(given, each),
                    _ => {}
                }
            }
            each(object);
        }
        _ => {}
    }
}

/// Returns `true` for a keyword with a schema for each of several names.
pub(super) fn is_map(keyword: &str) -> bool {
    const MAPS: [&str; 6] =
        ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
    MAPS.contains(&keyword)
}

/// Returns `true` for a keyword with values that are no schemas.
pub(super) fn is_data(keyword: &str) -> bool {
    ["const", "enum", "default", "example", "examples"].contains(&keyword)
}
