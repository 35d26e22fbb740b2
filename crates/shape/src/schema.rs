//! A shape as JSON Schema.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::shape::{Array, Field, Node, Object, Scalars, Shape, Witness};

/// Names that no object of a map has in more than half of the cases, at least.
const FEW_NAMES: usize = 3;
/// Rare names of one type among common ones from which on they are data.
const MANY_RARE: usize = 6;
/// Names that differ in their numbers only from which on they are data: `item_1`, `item_2` and `item_3`, but not `line1` and `line2`.
const MANY_NUMBERED: usize = 3;

impl Shape {
    /// The JSON Schema of the values seen, with the names that `viewer` may see. It has no values, and lengths only by order of
    /// magnitude.
    pub fn schema(&self, viewer: Witness) -> Map<String, Value> {
        self.root.schema(viewer)
    }
}

impl Node {
    fn schema(&self, viewer: Witness) -> Map<String, Value> {
        let mut schema = Map::new();
        if self.scalars.has(Scalars::UNKNOWN) {
            return schema;
        }
        let mut kinds = Vec::new();
        let scalars = [
            (Scalars::BOOLEAN, "boolean"),
            (Scalars::NUMBER, "number"),
            (Scalars::INTEGER, "integer"),
            (Scalars(Scalars::TEXT.0 | Scalars::DIGITS.0), "string"),
        ];
        for (scalar, kind) in scalars {
            // Every integer is a number.
            let is_covered = kind == "integer" && kinds.contains(&"number");
            if self.scalars.has(scalar) && !is_covered {
                kinds.push(kind);
            }
        }
        if self.scalars.has(Scalars::DIGITS) {
            schema.insert(
                "description".to_owned(),
                json!("digits that a JavaScript number would lose, as text"),
            );
        }
        if let Some(object) = &self.object {
            kinds.push("object");
            object.describe(viewer, &mut schema);
        }
        if let Some(array) = &self.array {
            kinds.push("array");
            array.describe(viewer, &mut schema);
        }
        if self.scalars.has(Scalars::NULL) {
            kinds.push("null");
        }
        match kinds.as_slice() {
            [] => {}
            [one] => drop(schema.shift_insert(0, "type".to_owned(), json!(one))),
            several => drop(schema.shift_insert(0, "type".to_owned(), json!(several))),
        }
        schema
    }
}

impl Object {
    fn describe(&self, viewer: Witness, schema: &mut Map<String, Value>) {
        let is_map = self.is_map || self.reads_like_a_map();
        let rare_are_data = self.rare().count() >= MANY_RARE && same_kinds(self.rare());
        let numbered = self.numbered();
        let is_data = |field: &Field| {
            let stem = stem(&field.name);
            let is_numbered =
                stem.len() < field.name.len() && numbered.get(stem).is_some_and(|are_data| *are_data);
            rare_are_data && self.is_rare(field) || is_numbered
        };
        let is_shown = |field: &Field| !is_map && field.witnesses.allow(viewer) && !is_data(field);
        let (mut properties, mut required) = (Map::new(), Vec::new());
        let mut rest = self.rest.as_deref().cloned();
        for field in &self.fields {
            if is_shown(field) {
                properties.insert(field.name.to_string(), field.node.schema(viewer).into());
                if field.seen >= self.seen {
                    required.push(field.name.to_string());
                }
            } else {
                rest.get_or_insert_default().merge(field.node.clone());
            }
        }
        if !properties.is_empty() {
            schema.insert("properties".to_owned(), properties.into());
        }
        if !required.is_empty() {
            schema.insert("required".to_owned(), required.into());
        }
        if let Some(rest) = rest {
            schema.insert("additionalProperties".to_owned(), rest.schema(viewer).into());
        }
    }

    /// Returns `true` for objects whose names are data: none is in more than half of the objects, at least three have
    /// objects with the same names below them, two of which none is in more than half do, or others that look like ids have values
    /// that are objects or arrays as well.
    fn reads_like_a_map(&self) -> bool {
        let all_are_rare = self.fields.iter().all(|field| self.is_rare(field));
        match self.fields.len() {
            0 => false,
            FEW_NAMES.. if all_are_rare || self.has_equal_members() => true,
            2 if all_are_rare && self.has_equal_members() => true,
            _ => self.has_ids_beside(),
        }
    }

    /// Returns `true` if there are names that are no field's, and all values are objects, or all are arrays.
    fn has_ids_beside(&self) -> bool {
        let kind = |node: &Node| (node.object.is_some(), node.array.is_some());
        let rest = self.rest.as_deref().filter(|rest| rest.object.is_some() != rest.array.is_some());
        let is_plain = |node: &Node| node.scalars.0 & !Scalars::NULL.0 == 0;
        rest.is_some_and(|rest| {
            is_plain(rest)
                && self.fields.iter().all(|field| is_plain(&field.node) && kind(&field.node) == kind(rest))
        })
    }

    /// The stems of names that end in a number, and whether there are so many of one kind that the names are data.
    fn numbered(&self) -> HashMap<&str, bool> {
        let mut stems: HashMap<&str, Vec<&Field>> = HashMap::new();
        for field in self.fields.iter().filter(|field| stem(&field.name).len() < field.name.len()) {
            stems.entry(stem(&field.name)).or_default().push(field);
        }
        let are_data =
            |fields: &[&Field]| fields.len() >= MANY_NUMBERED && same_kinds(fields.iter().copied());
        stems.into_iter().map(|(stem, fields)| (stem, are_data(&fields))).collect()
    }

    fn has_equal_members(&self) -> bool {
        let Some(first) = self.fields.first().and_then(|field| field.node.object.as_deref()) else {
            return false;
        };
        let has_names = first.fields.len() > 1;
        has_names
            && self.fields[1..].iter().all(|field| {
                field.node.object.as_deref().is_some_and(|other| {
                    other.fields.len() == first.fields.len()
                        && other
                            .fields
                            .iter()
                            .enumerate()
                            .all(|(at, field)| first.position(&field.name, at).is_some())
                })
            })
    }

    fn is_rare(&self, field: &Field) -> bool {
        field.seen.saturating_mul(2) <= self.seen
    }

    fn rare(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|field| self.is_rare(field))
    }
}

/// A name without the number at its end.
fn stem(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit())
}

fn same_kinds<'f>(mut fields: impl Iterator<Item = &'f Field>) -> bool {
    let kinds = |field: &Field| {
        let scalars = field.node.scalars.0 & !Scalars::NULL.0;
        (scalars, field.node.object.is_some(), field.node.array.is_some())
    };
    fields.next().is_some_and(|first| fields.all(|field| kinds(field) == kinds(first)))
}

impl Array {
    fn describe(&self, viewer: Witness, schema: &mut Map<String, Value>) {
        if !self.items.is_empty() {
            schema.insert("items".to_owned(), self.items.schema(viewer).into());
        }
        schema.insert("minItems".to_owned(), json!(self.shortest.least()));
        schema.insert("maxItems".to_owned(), json!(self.longest.most()));
    }
}
