//! The texts of a document that are searched, and the field of each.

use serde_json::{Map, Value};

use crate::Document;

/// Deepest nesting of a schema that is read.
const MAX_DEPTH: usize = 12;

/// A searchable part of a document. The order is that of the weights and of the mask bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Field {
    Name,
    Description,
    Parameter,
    ParameterText,
    Enum,
    App,
}

/// Number of fields.
pub(crate) const FIELDS: usize = 6;

impl Field {
    pub(crate) const ALL: [Self; FIELDS] =
        [Self::Name, Self::Description, Self::Parameter, Self::ParameterText, Self::Enum, Self::App];

    /// The field's bit in a posting's mask.
    pub(crate) const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// The fields whose bits a mask has. A joined form in the name counts as the name.
    pub(crate) fn of_mask(mask: u8) -> impl Iterator<Item = Self> {
        let mask = if mask & crate::segment::JOINED_NAME == 0 { mask } else { mask | Self::Name.bit() };
        Self::ALL.into_iter().filter(move |field| mask & field.bit() != 0)
    }

    /// The name shown to people.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Description => "description",
            Self::Parameter => "parameter",
            Self::ParameterText => "parameter text",
            Self::Enum => "enum",
            Self::App => "app",
        }
    }
}

/// The tool's own name, without the `app:` in front.
pub(crate) fn bare_name<'n>(name: &'n str, app_id: &str) -> &'n str {
    match name.strip_prefix(app_id).and_then(|rest| rest.strip_prefix([':', '.', '/'])) {
        Some(bare) if !bare.is_empty() => bare,
        _ => name,
    }
}

/// Calls `each` with every text of the document.
pub(crate) fn texts<'d>(document: &'d Document, each: &mut dyn FnMut(Field, &'d str)) {
    each(Field::Name, bare_name(&document.name, &document.app_id));
    each(Field::Description, &document.description);
    each(Field::App, &document.app_id);
    schema(&document.input_schema, 0, each);
}

fn value<'d>(value: &'d Value, depth: usize, each: &mut dyn FnMut(Field, &'d str)) {
    if let Value::Object(map) = value {
        schema(map, depth, each);
    }
}

fn schema<'d>(map: &'d Map<String, Value>, depth: usize, each: &mut dyn FnMut(Field, &'d str)) {
    if depth > MAX_DEPTH {
        return;
    }
    for (key, member) in map {
        match (key.as_str(), member) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    each(Field::Parameter, name);
                    value(property, depth + 1, each);
                }
            }
            // The schema's own description repeats the tool's.
            ("description" | "title", Value::String(text)) if depth > 0 => each(Field::ParameterText, text),
            ("enum", Value::Array(values)) => {
                values.iter().filter_map(Value::as_str).for_each(|text| each(Field::Enum, text));
            }
            ("const", Value::String(text)) => each(Field::Enum, text),
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(branches)) => {
                branches.iter().for_each(|branch| value(branch, depth + 1, each));
            }
            ("$defs" | "definitions", Value::Object(definitions)) => {
                definitions.values().for_each(|definition| value(definition, depth + 1, each));
            }
            ("items" | "additionalProperties" | "not" | "if" | "then" | "else", inner) => {
                value(inner, depth + 1, each);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn every_part_of_a_schema_is_read_once() {
        let schema = serde_json::json!({
            "type": "object", "description": "ignored",
            "properties": {"who": {"description": "person", "enum": ["me", 3]},
                "list": {"type": "array", "items": {"properties": {"inner": {"const": "x"}}}}}
        });
        let document = Document {
            name: "crm:find".to_owned(),
            app_id: "crm".to_owned(),
            description: "Finds".to_owned(),
            input_schema: Arc::new(schema.as_object().unwrap().clone()),
        };
        let mut seen = Vec::new();
        texts(&document, &mut |field, text| seen.push((field.label(), text)));
        for wanted in [
            ("name", "find"),
            ("app", "crm"),
            ("parameter", "who"),
            ("parameter text", "person"),
            ("enum", "me"),
            ("parameter", "inner"),
            ("enum", "x"),
        ] {
            assert!(seen.contains(&wanted), "{wanted:?} in {seen:?}");
        }
        assert_eq!(seen.len(), 9);
    }
}
