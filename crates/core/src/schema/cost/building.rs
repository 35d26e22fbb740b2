//! The work of building a validator, counted before it is done.
//!
//! `jsonschema` builds what stands behind a reference once. For `unevaluatedProperties` and `unevaluatedItems` it builds the schemas in place
//! once more, for each way that references lead to them: a schema that refers twice to the next, twenty times in a row, becomes a million.
//! Of three or more alternatives it also looks for a property that tells them apart, through all that `allOf` and references lead to.
//! Here it is walked in the same way, without building anything, up to a limit.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
    ptr,
};

use rmcp::model::JsonObject;
use serde_json::Value;

use super::{META, Targets};
use crate::schema::{
    copying::{BYTES_FOR_ONE, weight},
    walk::is_map,
};

/// Most work for short schemas, and for each part of one.
const MOST: u64 = 10_000;
const MOST_FOR_EACH: u64 = 4;
/// Work of a copy that is kept, for each part of it: a catalog of many small schemas may have as many.
const KEPT: u64 = 4;
/// Alternatives from which on `jsonschema` looks for a property that tells them apart, and the levels that it looks through.
const TOLD_APART: usize = 3;
const DEEPEST_TOLD_APART: u32 = 16;
/// Schemas in place within each other, below an `unevaluatedProperties` or `unevaluatedItems`.
const DEEPEST: u32 = 64;

/// Returns the work of building a validator; `None` for more than the limit: it has to take as long as the schema is, and not as long as its
/// references multiply to.
pub(in crate::schema) fn work(schema: &Value) -> Option<u64> {
    let most = weight(schema).saturating_mul(MOST_FOR_EACH).saturating_add(MOST);
    let mut resources = HashMap::new();
    find_resources(schema, ptr::null(), &mut resources);
    let mut builder = Builder {
        targets: Targets::new(schema),
        resources,
        left: most,
        nodes: HashSet::new(),
        referred: HashSet::new(),
        open_references: HashSet::new(),
        open: [HashSet::new(), HashSet::new()],
    };
    builder.node(schema, Place { pointer: 0, length: 0, scope: 0, resource: ptr::null() }, 0);
    (builder.left > 0).then(|| most - builder.left)
}

type Schema = *const JsonObject;

/// The keyword that schemas in place are built again for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unevaluated {
    Properties,
    Items,
}

impl Unevaluated {
    /// Keywords besides those in place whose schemas it builds.
    fn keywords(self) -> &'static [&'static str] {
        match self {
            Self::Properties => &["additionalProperties", "patternProperties", "unevaluatedProperties"],
            Self::Items => &["contains", "unevaluatedItems"],
        }
    }
}

/// The place where a schema is built: validators share what has the same place.
#[derive(Clone, Copy)]
struct Place {
    /// Hash of the pointer, and its length.
    pointer: u64,
    length: usize,
    /// Hash of the schemas with an address of their own that led here.
    scope: u64,
    /// The one that it is in.
    resource: Schema,
}

impl Place {
    fn join(self, part: &str) -> Self {
        Self { pointer: hash(&(self.pointer, part)), length: self.length + part.len() + 1, ..self }
    }

    fn within(self, resource: Schema) -> Self {
        if resource == self.resource {
            return self;
        }
        Self { scope: hash(&(self.scope, self.resource)), resource, ..self }
    }
}

fn hash(parts: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

struct Builder<'s> {
    targets: Targets<'s>,
    /// The schema with an address of its own that each schema is in, where it is not the root.
    resources: HashMap<Schema, Schema>,
    left: u64,
    nodes: HashSet<(u64, Schema, u64)>,
    referred: HashSet<(Schema, u64)>,
    open_references: HashSet<Schema>,
    /// Schemas that are being built for one of [`Unevaluated`].
    open: [HashSet<Schema>; 2],
}

impl<'s> Builder<'s> {
    fn spend(&mut self, work: u64) {
        self.left = self.left.saturating_sub(work);
    }

    /// Enters what is built at `place`; `None` if it is too much.
    fn enter(&mut self, place: Place) -> Option<()> {
        self.spend(1 + (place.length / BYTES_FOR_ONE) as u64);
        (self.left > 0).then_some(())
    }

    fn place_of(&self, schema: &JsonObject, place: Place) -> Place {
        place.within(self.resources.get(&ptr::from_ref(schema)).copied().unwrap_or(ptr::null()))
    }

    /// Builds a schema with what is in it.
    fn node(&mut self, schema: &'s Value, place: Place, depth: u32) -> Option<()> {
        self.enter(place)?;
        let Value::Object(schema) = schema else { return Some(()) };
        let place = self.place_of(schema, place);
        if !self.nodes.insert((place.pointer, schema, place.scope)) {
            return Some(());
        }
        for (keyword, given) in schema {
            match keyword.as_str() {
                "$defs" | "definitions" => {}
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    for target in self.targets_of(keyword, given)? {
                        self.referred(target, place)?;
                    }
                }
                "unevaluatedProperties" if given != &Value::Bool(true) => {
                    self.in_place(Unevaluated::Properties, schema, place, depth)?;
                }
                "unevaluatedItems" if given != &Value::Bool(true) => {
                    self.in_place(Unevaluated::Items, schema, place, depth)?;
                }
                keyword => self.within(keyword, given, place, depth)?,
            }
        }
        Some(())
    }

    /// Builds the schemas in `given`, or keeps it.
    fn within(&mut self, keyword: &str, given: &'s Value, place: Place, depth: u32) -> Option<()> {
        let place = place.join(keyword);
        match given {
            Value::Object(schemas) if is_map(keyword) => {
                schemas.iter().try_for_each(|(name, given)| self.node(given, place.join(name), depth))
            }
            Value::Array(schemas) if LISTS.contains(&keyword) => {
                if matches!(keyword, "anyOf" | "oneOf") {
                    self.tell_apart(schemas)?;
                }
                let mut schemas = schemas.iter().enumerate();
                schemas.try_for_each(|(at, given)| self.node(given, place.join(&at.to_string()), depth))
            }
            Value::Object(_) if LISTS.contains(&keyword) || SCHEMAS.contains(&keyword) => {
                if keyword == "not" {
                    // Its validator keeps a copy, for errors.
                    self.spend(weight(given).saturating_mul(KEPT));
                }
                self.node(given, place, depth)
            }
            given => {
                self.spend(weight(given));
                self.enter(place)
            }
        }
    }

    /// Looks for a property that each alternative requires and that has another value in each.
    fn tell_apart(&mut self, alternatives: &'s [Value]) -> Option<()> {
        if alternatives.len() < TOLD_APART {
            return Some(());
        }
        for (number, alternative) in alternatives.iter().enumerate() {
            let (mut required, mut parts) = (0, 0);
            self.demands(alternative, 0, &mut required, &mut parts)?;
            // Each name is looked up in each part; those of later alternatives only if the first has them too.
            self.spend(if number == 0 { required * parts } else { required + parts });
        }
        (self.left > 0).then_some(())
    }

    /// Counts the names that a schema requires, and the parts of it that have properties.
    fn demands(&mut self, schema: &'s Value, depth: u32, required: &mut u64, parts: &mut u64) -> Option<()> {
        let Value::Object(schema) = schema else { return Some(()) };
        if depth > DEEPEST_TOLD_APART {
            return Some(());
        }
        let reference = schema.get("$ref");
        let length = reference.and_then(Value::as_str).map_or(0, str::len);
        self.spend(1 + (length / BYTES_FOR_ONE) as u64);
        if self.left == 0 {
            return None;
        }
        if let Some(reference) = reference {
            for target in self.targets_of("$ref", reference)? {
                self.demands(target, depth + 1, required, parts)?;
            }
        }
        *required += schema.get("required").and_then(Value::as_array).map_or(0, Vec::len) as u64;
        *parts += u64::from(schema.get("properties").is_some_and(Value::is_object));
        let all = schema.get("allOf").and_then(Value::as_array);
        all.into_iter().flatten().try_for_each(|given| self.demands(given, depth + 1, required, parts))
    }

    /// Builds the schema that a reference leads to, once.
    fn referred(&mut self, target: &'s Value, place: Place) -> Option<()> {
        let Value::Object(schema) = target else { return self.enter(place) };
        let place = self.place_of(schema, place);
        let at = ptr::from_ref(schema);
        if self.open_references.contains(&at) || !self.referred.insert((at, place.scope)) {
            return self.enter(place);
        }
        self.open_references.insert(at);
        let built = self.node(target, Place { pointer: hash(&at), length: 0, ..place }, 0);
        self.open_references.remove(&at);
        built
    }

    /// Builds the schemas in place once more, to find out what they evaluate.
    fn in_place(
        &mut self,
        kind: Unevaluated,
        schema: &'s JsonObject,
        place: Place,
        depth: u32,
    ) -> Option<()> {
        let place = self.place_of(schema, place);
        if depth > DEEPEST {
            self.left = 0;
        }
        self.enter(place)?;
        let names = schema.get("properties").and_then(Value::as_object).map_or(0, JsonObject::len);
        self.spend(names as u64);
        let at = ptr::from_ref(schema);
        let is_first = self.open[kind as usize].insert(at);
        let built = self.all_in_place(kind, schema, place, depth + 1);
        if is_first {
            self.open[kind as usize].remove(&at);
        }
        built
    }

    fn all_in_place(
        &mut self,
        kind: Unevaluated,
        schema: &'s JsonObject,
        place: Place,
        depth: u32,
    ) -> Option<()> {
        for keyword in kind.keywords() {
            if let Some(given) = schema.get(*keyword) {
                match given {
                    Value::Object(schemas) if is_map(keyword) => {
                        let place = place.join(keyword);
                        schemas
                            .iter()
                            .try_for_each(|(name, given)| self.node(given, place.join(name), depth))?;
                    }
                    given => self.node(given, place.join(keyword), depth)?,
                }
            }
        }
        for (keyword, given) in schema {
            let below = place.join(keyword);
            match (keyword.as_str(), given) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", given) => {
                    for target in self.targets_of(keyword, given)? {
                        let Value::Object(target) = target else { continue };
                        if self.open[kind as usize].contains(&ptr::from_ref(target)) {
                            self.enter(place)?;
                        } else {
                            self.in_place(kind, target, place, depth)?;
                        }
                    }
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                    for (at, given) in schemas.iter().enumerate() {
                        self.one_in_place(kind, given, below.join(&at.to_string()), depth)?;
                    }
                }
                ("if" | "then" | "else", given) => self.one_in_place(kind, given, below, depth)?,
                ("dependentSchemas", Value::Object(schemas)) if kind == Unevaluated::Properties => {
                    for (name, given) in schemas {
                        self.one_in_place(kind, given, below.join(name), depth)?;
                    }
                }
                _ => {}
            }
        }
        Some(())
    }

    fn one_in_place(&mut self, kind: Unevaluated, given: &'s Value, place: Place, depth: u32) -> Option<()> {
        self.node(given, place, depth)?;
        given.as_object().map_or(Some(()), |schema| self.in_place(kind, schema, place, depth))
    }

    /// The schemas that a reference leads to; `None` where they cannot be known.
    fn targets_of(&mut self, keyword: &str, reference: &'s Value) -> Option<Vec<&'s Value>> {
        let reference = match keyword {
            "$recursiveRef" => "#",
            _ => reference.as_str().unwrap_or_default(),
        };
        if reference.contains("//json-schema.org/") {
            self.spend(META);
            return Some(Vec::new());
        }
        if self.targets.has_too_many_names() {
            self.left = 0;
            return None;
        }
        Some(self.targets.of(reference).to_vec())
    }
}

/// Keywords with a schema, and with a list of schemas or one.
const SCHEMAS: [&str; 9] = [
    "not",
    "if",
    "then",
    "else",
    "additionalItems",
    "additionalProperties",
    "contains",
    "propertyNames",
    "contentSchema",
];
const LISTS: [&str; 5] = ["allOf", "anyOf", "oneOf", "items", "prefixItems"];

/// Notes the schema with an address of its own that each object is in.
fn find_resources(value: &Value, mut resource: Schema, resources: &mut HashMap<Schema, Schema>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| find_resources(item, resource, resources)),
        Value::Object(object) => {
            if object.get("$id").is_some_and(Value::is_string) {
                resource = object;
            }
            if !resource.is_null() {
                resources.insert(object, resource);
            }
            object.values().for_each(|value| find_resources(value, resource, resources));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
