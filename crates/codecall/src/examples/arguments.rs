//! Arguments that a tool's input schema accepts: values its author gives first, then plausible ones by type, format and name.
//!
//! Schemas come from servers: what is looked at for one candidate is counted, what is written into it too, and so are the candidates.

use std::cell::Cell;

use gatewright_core::{InputSchema, JsonBudget, ToolEntry, pattern_instructions, rmcp::model::JsonObject};
use serde_json::{Value, json};

use super::{
    placeholders::{self, Asked},
    told::told,
};
use crate::{references, results::json_len};

/// Depth at which a schema that contains itself is cut off.
const DEEPEST: usize = 6;
/// Nodes of the schema that are read for one candidate.
const MOST_NODES: usize = 500;
/// Names, properties and parts of schemas that are looked at for one candidate.
const MOST_LOOKS: usize = 20_000;
/// Bytes of one candidate, and of one of its names and of a value that the schema's author gives, as JSON.
const ROOM: usize = 32 * 1024;
const LONGEST_GIVEN: usize = 1024;
/// Values of one list of the author's that are looked at.
const MOST_GIVEN: usize = 100;
/// Branches of unions (`oneOf`, `anyOf`) that are tried, and looked at.
const BRANCHES: usize = 4;
const MOST_BRANCHES: usize = 100;
/// Steps of matching, and of reading expressions, that one candidate may take.
const MOST_STEPS: u64 = 2_000_000;
/// Steps that reading one expression counts as, whatever its size.
const STEPS_OF_READING: u64 = 100_000;
/// Items that an array is filled with to reach its `minItems`.
const MOST_ITEMS: u64 = 8;

/// The required arguments, made by the schema `observed` or else by the tool's own, with values that the latter accepts; `None` when none can be made.
pub(super) fn fitting(tool: &ToolEntry, observed: Option<&JsonObject>) -> Option<Value> {
    observed.and_then(|root| made_by(tool, root)).or_else(|| made_by(tool, tool.input_schema()))
}

fn made_by(tool: &ToolEntry, root: &JsonObject) -> Option<Value> {
    let own = root.get("examples").and_then(|examples| examples.get(0));
    let own = own.filter(|own| is_within(own, ROOM)).cloned();
    let filled = [false, true].into_iter().flat_map(|more| (0..BRANCHES).map(move |branch| (branch, more)));
    let filled = filled.filter_map(|(branch, more)| {
        let filling = Filling { branch, more, ..Filling::new(tool, root) };
        filling.object(root, 0).map(Value::Object)
    });
    own.into_iter().chain(filled).find(|candidate| candidate.is_object() && tool.accepts(candidate))
}

/// A value that fits `schema`, with every property that it names: what a result of `tool` may look like.
pub(super) fn whole(tool: &ToolEntry, schema: &JsonObject) -> Option<Value> {
    let filling = Filling { all: true, ..Filling::new(tool, schema) };
    filling.of_schema(schema, "result", 0)
}

/// One way to fill a schema.
struct Filling<'a> {
    root: &'a JsonObject,
    topic: &'a ToolEntry,
    /// The branch taken in each union.
    branch: usize,
    /// `true` gives objects their first optional property too: some need one of several.
    more: bool,
    /// `true` gives objects all their properties, as far as there is room for them.
    all: bool,
    nodes: Cell<usize>,
    /// The rest of each budget.
    looks: Cell<usize>,
    room: Cell<usize>,
    steps: Cell<u64>,
}

impl<'a> Filling<'a> {
    fn new(topic: &'a ToolEntry, root: &'a JsonObject) -> Self {
        Self {
            root,
            topic,
            branch: 0,
            more: false,
            all: false,
            nodes: Cell::new(0),
            looks: Cell::new(MOST_LOOKS),
            room: Cell::new(ROOM),
            steps: Cell::new(MOST_STEPS),
        }
    }

    fn value(&self, schema: &'a Value, name: &str, depth: usize) -> Option<Value> {
        match schema.as_object() {
            Some(schema) => self.of_schema(schema, name, depth),
            None if self.may_read(depth) => self.kept(self.text(&JsonObject::new(), name)),
            None => None,
        }
    }

    /// `value`, if there is room for it.
    fn kept(&self, value: impl Into<Value>) -> Option<Value> {
        let value = value.into();
        self.take_room(json_len(&value, self.room.get()))?;
        Some(value)
    }

    /// Takes `bytes` from the room of the candidate; `None` if that has fewer.
    fn take_room(&self, bytes: usize) -> Option<()> {
        self.room.set(self.room.get().checked_sub(bytes)?);
        Some(())
    }

    /// Counts `parts` that are looked at; `None` if those are too many.
    fn look(&self, parts: usize) -> Option<()> {
        self.looks.set(self.looks.get().checked_sub(parts)?);
        Some(())
    }

    fn may_read(&self, depth: usize) -> bool {
        self.nodes.set(self.nodes.get() + 1);
        depth <= DEEPEST && self.nodes.get() <= MOST_NODES
    }

    fn of_schema(&self, schema: &'a JsonObject, name: &str, depth: usize) -> Option<Value> {
        if !self.may_read(depth) {
            return None;
        }
        if let Some(given) = given(schema) {
            return self.kept(given.clone());
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            return self.value(references::target(self.root, reference)?, name, depth + 1);
        }
        if let Some(kind) = kind(schema) {
            return self.of_kind(kind, schema, name, depth);
        }
        if let Some(chosen) = self.chosen(schema) {
            return self.value(chosen, name, depth + 1);
        }
        match schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
            Some([only]) => self.value(only, name, depth + 1),
            Some(_) => self.object(schema, depth).map(Value::Object),
            None => self.kept(self.text(schema, name)),
        }
    }

    fn of_kind(&self, kind: &str, schema: &'a JsonObject, name: &str, depth: usize) -> Option<Value> {
        match kind {
            "object" => self.object(schema, depth).map(Value::Object),
            "array" => self.array(schema, name, depth),
            "integer" | "number" => self.kept(number(schema, name, kind == "integer")),
            "boolean" => self.kept(true),
            "null" => self.kept(Value::Null),
            _ => self.kept(self.text(schema, name)),
        }
    }

    /// The branch of a union that is tried, if the schema has one.
    fn chosen(&self, schema: &'a JsonObject) -> Option<&'a Value> {
        let options = ["oneOf", "anyOf"].iter().find_map(|union| schema.get(*union)?.as_array())?;
        let options = options.iter().take(MOST_BRANCHES).filter(|option| option["type"] != "null");
        let options: Vec<&Value> = options.take(BRANCHES).collect();
        options.get(self.branch % options.len().max(1)).copied()
    }

    /// The schema and what it is made of, each as an object schema.
    fn parts(&self, schema: &'a JsonObject) -> Option<Vec<&'a JsonObject>> {
        let all = schema.get("allOf").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        // Following a reference takes longer than a look at a name.
        self.look(20 * all.len())?;
        let more = all.iter().chain(self.chosen(schema)).filter_map(|part| {
            let reference = part.get("$ref").and_then(Value::as_str);
            reference.map_or(Some(part), |reference| references::target(self.root, reference))?.as_object()
        });
        Some(std::iter::once(schema).chain(more).collect())
    }

    fn object(&self, schema: &'a JsonObject, depth: usize) -> Option<JsonObject> {
        let parts = self.parts(schema)?;
        let property =
            |name: &str| parts.iter().find_map(|part| part.get("properties")?.as_object()?.get(name));
        let required = parts.iter().filter_map(|part| part.get("required")?.as_array()).flatten();
        let mut object = JsonObject::new();
        for name in required {
            self.look(parts.len())?;
            let Some(name) = name.as_str() else { continue };
            if name.len() > LONGEST_GIVEN {
                return None;
            }
            if !object.contains_key(name) {
                self.take_room(name.len() + 4)?;
                let value = self.value(property(name).unwrap_or(&Value::Null), name, depth + 1)?;
                object.insert(name.to_owned(), value);
            }
        }
        if self.more
            || schema.get("minProperties").is_some_and(|least| least.as_u64() > Some(object.len() as u64))
        {
            let known = parts.iter().filter_map(|part| part.get("properties")?.as_object()).flatten();
            let mut known = known.take_while(|_| self.look(1).is_some());
            let is_new = |name: &String| name.len() <= LONGEST_GIVEN && !object.contains_key(name);
            if let Some((name, property)) = known.find(|(name, _)| is_new(name)) {
                self.take_room(name.len() + 4)?;
                object.insert(name.clone(), self.value(property, name, depth + 1)?);
            }
        }
        if self.all {
            let known = parts.iter().filter_map(|part| part.get("properties")?.as_object()).flatten();
            for (name, property) in known.take(MOST_NODES).take_while(|_| self.look(1).is_some()) {
                if name.len() <= LONGEST_GIVEN
                    && !object.contains_key(name)
                    && self.take_room(name.len() + 4).is_some()
                    && let Some(value) = self.value(property, name, depth + 1)
                {
                    object.insert(name.clone(), value);
                }
            }
        }
        Some(object)
    }

    fn array(&self, schema: &'a JsonObject, name: &str, depth: usize) -> Option<Value> {
        let least = schema.get("minItems").and_then(Value::as_u64);
        if let Some(places) = schema.get("prefixItems").and_then(Value::as_array) {
            let items = places.iter().map(|place| self.value(place, name, depth + 1));
            return items.collect::<Option<Vec<_>>>().map(Value::Array);
        }
        let item = match schema.get("items").and_then(Value::as_object) {
            // The items of a list are described with it.
            Some(items) if kind(items) == Some("string") && is_open(items) => {
                let about = items.get("description").or(schema.get("description"));
                let name = name.strip_suffix('s').filter(|name| name.len() > 2).unwrap_or(name);
                self.kept(self.text_about(items, name, about))
            }
            _ => self.value(schema.get("items").unwrap_or(&Value::Null), name, depth + 1),
        };
        match (item, least) {
            (Some(item), least) => {
                let count = usize::try_from(least.unwrap_or(1).clamp(1, MOST_ITEMS)).unwrap_or(1);
                self.take_room((count - 1) * json_len(&item, ROOM))?;
                Some(Value::Array(vec![item; count]))
            }
            (None, None | Some(0)) => Some(json!([])),
            (None, Some(_)) => None,
        }
    }

    /// Takes `steps` from those that are left. Returns `false` when there are too few.
    fn has_steps(&self, steps: u64) -> bool {
        let left = self.steps.get().checked_sub(steps);
        self.steps.set(left.unwrap_or(0));
        left.is_some()
    }

    fn text(&self, schema: &JsonObject, name: &str) -> String {
        self.text_about(schema, name, schema.get("description"))
    }

    fn text_about(&self, schema: &JsonObject, name: &str, about: Option<&Value>) -> String {
        let about = about.and_then(Value::as_str).unwrap_or_default();
        let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
        let (tool, tool_about) = (&*self.topic.local_name, self.topic.own_description());
        let asked = Asked { name, about, format, tool, tool_about, app: &self.topic.app_id };
        let length =
            |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        let (least, most) = (length("minLength").unwrap_or(0), length("maxLength").unwrap_or(usize::MAX));
        let of_length = |text: &str| {
            let mut text: String = text.chars().take(most).collect();
            let missing = least.min(1_000).saturating_sub(text.chars().count());
            text.extend(std::iter::repeat_n('x', missing));
            text
        };
        let Some(Value::String(pattern)) = schema.get("pattern") else {
            return of_length(placeholders::likely(&asked));
        };
        if !self.has_steps(STEPS_OF_READING) {
            return of_length(placeholders::likely(&asked));
        }
        let instructions = pattern_instructions(pattern);
        let rule = InputSchema::new(JsonObject::from_iter([("pattern".to_owned(), json!(pattern))]).into());
        let fits = |text: &String| {
            self.has_steps(instructions * (1 + text.len() as u64)) && rule.check(&json!(text)).is_ok()
        };
        let candidates =
            std::iter::once(placeholders::likely(&asked)).chain(placeholders::COMMON.iter().copied());
        let text = candidates.map(of_length).find(fits);
        text.unwrap_or_else(|| placeholders::likely(&asked).to_owned())
    }
}

/// Returns `true` if the schema's author gives no value.
fn is_open(schema: &JsonObject) -> bool {
    given(schema).is_none()
}

/// Values that a reader would rather not send.
const DRASTIC: [&str; 5] = ["error", "delete", "remove", "none", "off"];

fn is_within(value: &Value, bytes: usize) -> bool {
    JsonBudget { values: bytes, bytes }.has_room_for(value)
}

/// A short value that the schema's author gives, if it is of the schema's type.
fn given(schema: &JsonObject) -> Option<&Value> {
    let first = |key: &str| {
        let values = schema.get(key)?.as_array()?;
        let values = &values[..values.len().min(MOST_GIVEN)];
        let is_drastic = |value: &Value| value.as_str().is_some_and(|text| DRASTIC.contains(&text));
        let plain = || values.iter().find(|one| !one.is_null() && !is_drastic(one));
        plain().or_else(|| values.iter().find(|one| !one.is_null()))
    };
    let known =
        [first("examples"), schema.get("example"), schema.get("const"), schema.get("default"), first("enum")];
    let of_kind = |value: &&Value| match kind(schema) {
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => !value.is_null() || schema.contains_key("const"),
    };
    known.into_iter().flatten().find(|value| of_kind(value) && is_within(value, LONGEST_GIVEN))
}

/// The type of values, when the schema says it; of several the first that is not `null`.
fn kind(schema: &JsonObject) -> Option<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => Some(kind),
        Some(Value::Array(kinds)) => {
            let mut kinds = kinds.iter().take(MOST_GIVEN).filter_map(Value::as_str);
            kinds.find(|kind| *kind != "null").or(Some("null"))
        }
        _ if schema.contains_key("properties") => Some("object"),
        _ if schema.contains_key("items") => Some("array"),
        _ => None,
    }
}

fn number(schema: &JsonObject, name: &str, whole: bool) -> Value {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let about = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let told = told(about).find_map(|text| text.parse::<f64>().ok());
    let mut value = told.filter(|n| n.is_finite()).unwrap_or_else(|| placeholders::number(name));
    let step = bound("multipleOf").filter(|step| *step > 0.0).unwrap_or(if whole { 1.0 } else { 0.0 });
    let gap = if step > 0.0 { step } else { 0.5 };
    if let Some(low) = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|low| low + gap)) {
        value = value.max(low);
    }
    if let Some(high) = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|high| high - gap)) {
        value = value.min(high);
    }
    if step > 0.0 {
        let up = (value / step).ceil() * step;
        value =
            if bound("maximum").is_some_and(|high| up > high) { (value / step).floor() * step } else { up };
    }
    #[expect(clippy::cast_possible_truncation, reason = "whole and small")]
    match value.fract() == 0.0 && value.abs() < 1e15 {
        true => json!(value as i64),
        false => json!(value),
    }
}
