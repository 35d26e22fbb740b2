//! Inputs for a tool: first every interesting value at every place of its schema, then random ones.

use std::sync::Arc;

use gatewright_core::{BrokenRule, InputSchema};
use serde_json::{Map, Value, json};

use super::{
    random::Random,
    values::{Optional, Values, resolve},
};

/// Places of a schema that get interesting values.
const MOST_PLACES: usize = 60;
/// Attempts to make an input that fits the schema.
const ATTEMPTS: usize = 40;

/// The verdict of the input schema on an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Valid,
    /// A property is missing, of the wrong type, or breaks another rule.
    Invalid(&'static str),
    /// Only properties that the schema does not allow.
    Extra,
    /// To judge it takes too long.
    Unjudged,
}

/// Inputs for one tool.
#[derive(Debug)]
pub(super) struct Cases {
    tool: String,
    schema: Value,
    compiled: InputSchema,
    seed: u64,
    systematic: Vec<Value>,
    next: usize,
}

impl Cases {
    /// # Errors
    /// The schema cannot be used, for this reason.
    pub(super) fn new(tool: &str, schema: &Value, seed: u64) -> Result<Self, String> {
        let object = schema.as_object().ok_or("its `inputSchema` is no object")?;
        let compiled = InputSchema::new(Arc::new(object.clone()));
        if let Some(defect) = compiled.defect() {
            return Err(format!("its `inputSchema` is no valid JSON Schema: {defect}"));
        }
        let mut cases = Self {
            tool: tool.to_owned(),
            schema: schema.clone(),
            compiled,
            seed,
            systematic: Vec::new(),
            next: 0,
        };
        cases.systematic = cases.systematic();
        Ok(cases)
    }

    pub(super) fn fit(&self, arguments: &Value) -> Fit {
        let problems = match self.compiled.check(arguments) {
            Ok(()) => return Fit::Valid,
            Err(_) => self.compiled.problems(arguments, 20),
        };
        if problems.is_empty() {
            return Fit::Unjudged;
        }
        if problems.iter().all(|one| matches!(one.rule, BrokenRule::Unexpected { .. })) {
            return Fit::Extra;
        }
        match problems
            .iter()
            .find(|one| !matches!(one.rule, BrokenRule::Unexpected { .. }))
            .map(|one| &one.rule)
        {
            Some(BrokenRule::Missing { .. }) => Fit::Invalid("a required property is missing"),
            Some(BrokenRule::Type) => Fit::Invalid("a value is of the wrong type"),
            _ => Fit::Invalid("a value breaks a rule of the schema"),
        }
    }

    /// The first problem of an input, as a sentence.
    pub(super) fn problem(&self, arguments: &Value) -> String {
        self.compiled.check(arguments).err().unwrap_or_default()
    }

    /// True once every interesting value was given.
    pub(super) fn is_random(&self) -> bool {
        self.next >= self.systematic.len()
    }

    /// The next input.
    pub(super) fn next(&mut self) -> Value {
        let number = self.next;
        self.next += 1;
        match self.systematic.get(number) {
            Some(arguments) => arguments.clone(),
            None => self.random(number),
        }
    }

    fn valid(&self, number: usize, optional: Optional) -> Option<Value> {
        let made = (0..ATTEMPTS).map(|attempt| {
            let random = Random::of(self.seed, &self.tool, number * ATTEMPTS + attempt);
            Values::new(&self.schema, random, optional).of(&self.schema, 0)
        });
        made.into_iter().find(|value| value.is_object() && self.compiled.check(value).is_ok())
    }

    fn systematic(&self) -> Vec<Value> {
        let least = self.valid(0, Optional::None);
        let full = self.valid(1, Optional::All).or_else(|| least.clone());
        let mut all: Vec<Value> = least.iter().chain(&full).cloned().collect();
        let base = full.unwrap_or_else(|| json!({}));
        let mut places = Vec::new();
        collect(&self.schema, &self.schema, String::new(), 0, &mut places);
        for (place, schema) in &places {
            for value in interesting(schema) {
                all.extend(with(&base, place, Some(value)));
            }
            all.extend(with(&base, place, None));
        }
        let mut extra = base;
        extra["gatewright_unknown"] = json!(1);
        all.push(extra);
        all.push(json!({}));
        let mut seen = std::collections::HashSet::new();
        all.retain(|one| seen.insert(one.to_string()));
        all
    }

    /// A valid input of which perhaps one place has an interesting value.
    fn random(&self, number: usize) -> Value {
        let base = self.valid(number, Optional::Some).unwrap_or_else(|| json!({}));
        let mut random = Random::of(self.seed, &self.tool, number);
        let mut places = Vec::new();
        collect(&self.schema, &self.schema, String::new(), 0, &mut places);
        if random.once_in(2) {
            return base;
        }
        let changed = random.pick(&places).and_then(|(place, schema)| {
            let values = interesting(schema);
            with(&base, place, random.pick(&values).cloned())
        });
        changed.unwrap_or(base)
    }
}

/// The properties of a schema, as JSON pointers into a value, with their schemas.
fn collect<'a>(
    root: &'a Value,
    schema: &'a Value,
    place: String,
    depth: usize,
    found: &mut Vec<(String, &'a Value)>,
) {
    let schema = resolve(root, schema);
    if depth > 3 || found.len() >= MOST_PLACES {
        return;
    }
    if !place.is_empty() {
        found.push((place.clone(), schema));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let name = name.replace('~', "~0").replace('/', "~1");
        collect(root, property, format!("{place}/{name}"), depth + 1, found);
    }
    if schema["items"].is_object() {
        collect(root, &schema["items"], format!("{place}/0"), depth + 1, found);
    }
}

/// `base` with a value at a place, or without that place.
fn with(base: &Value, place: &str, value: Option<Value>) -> Option<Value> {
    let mut changed = base.clone();
    let (parent, key) = place.rsplit_once('/')?;
    let key = key.replace("~1", "/").replace("~0", "~");
    match (changed.pointer_mut(parent)?, value) {
        (Value::Object(object), Some(value)) => drop(object.insert(key, value)),
        (Value::Object(object), None) => drop(object.shift_remove(&key)?),
        (Value::Array(items), Some(value)) => *items.get_mut(0)? = value,
        (Value::Array(items), None) => items.clear(),
        _ => return None,
    }
    Some(changed)
}

/// Values at the limits of a schema, just beyond them, and of other types.
fn interesting(schema: &Value) -> Vec<Value> {
    let mut values = vec![
        Value::Null,
        json!(true),
        json!(0),
        json!(-1),
        json!(1.5),
        json!(i64::from(i32::MAX) + 1),
        json!(1e300),
        json!(""),
        json!(" "),
        json!("a\u{0}b"),
        json!("e\u{301}💥\u{202e}"),
        json!("%s%n{0}${x}"),
        json!([]),
        json!({}),
        json!(["a", 1, null]),
        json!({"unexpected": 1}),
    ];
    let is_text = schema["type"] == "string";
    if is_text {
        let is_short = schema["maxLength"].as_u64().is_some_and(|most| most < 5_000);
        values.push(json!("x".repeat(if is_short { 6_000 } else { 20_000 })));
        values.push(json!("not one of these"));
        for (key, more) in [("maxLength", 0), ("maxLength", 1), ("minLength", 0)] {
            if let Some(length) = schema[key].as_u64().and_then(|length| usize::try_from(length).ok())
                && length < 20_000
            {
                values.push(json!("x".repeat(length + more)));
            }
        }
        if let Some(least) = schema["minLength"].as_u64().filter(|least| (1..20_000).contains(least)) {
            values.push(json!("x".repeat(usize::try_from(least - 1).unwrap_or_default())));
        }
    }
    for key in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
        match (schema[key].as_i64(), schema[key].as_f64()) {
            (Some(bound), _) => values.extend([-1, 0, 1].map(|more| json!(bound.saturating_add(more)))),
            (None, Some(bound)) => values.extend([-0.5, 0.0, 0.5].map(|more| json!(bound + more))),
            _ => {}
        }
    }
    for value in schema["enum"].as_array().into_iter().flatten().take(20) {
        values.push(value.clone());
        if let Some(text) = value.as_str() {
            values.push(json!(text.to_uppercase()));
        }
    }
    if schema["type"] == "array" {
        values.push(Value::Array(vec![json!("a"); 200]));
        values.push(Value::Array(vec![json!(1); 200]));
    }
    if schema["type"] == "object" {
        let wide: Map<String, Value> = (0..200).map(|n| (format!("k{n}"), json!(n))).collect();
        values.push(Value::Object(wide));
        values.push((0..40).fold(json!(1), |inner, _| json!({"a": inner})));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "city": {"type": "string", "minLength": 2, "maxLength": 20},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "unit": {"enum": ["C", "F"]},
            "near": {"type": "array", "items": {"$ref": "#/$defs/place"}, "minItems": 1},
        }, "required": ["city", "near"], "additionalProperties": false,
        "$defs": {"place": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]}}})
    }

    #[test]
    fn gives_valid_boundary_and_invalid_inputs() {
        let mut cases = Cases::new("t", &schema(), 1).unwrap();
        let mut all = Vec::new();
        while !cases.is_random() {
            all.push(cases.next());
        }
        let valid: Vec<_> = all.iter().filter(|one| cases.fit(one) == Fit::Valid).collect();
        assert!(
            valid.iter().any(|one| one["days"] == 14) && valid.iter().any(|one| one["unit"] == "F"),
            "{valid:?}"
        );
        assert!(all.iter().any(|one| one["days"] == 15) && all.iter().any(|one| one.get("city").is_none()));
        assert!(all.iter().any(|one| one["near"][0]["lat"] == ""), "places within arrays, behind references");
        for fit in [
            Fit::Extra,
            Fit::Invalid("a required property is missing"),
            Fit::Invalid("a value is of the wrong type"),
        ] {
            assert!(all.iter().any(|one| cases.fit(one) == fit), "{fit:?}");
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_inputs_and_another_seed_others() {
        let inputs = |seed| {
            let mut cases = Cases::new("t", &schema(), seed).unwrap();
            (0..400).map(|_| cases.next().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
    }

    #[test]
    fn a_schema_that_contains_itself_has_inputs_too() {
        let schema = json!({"type": "object", "properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}}, "required": ["n"]});
        let mut cases = Cases::new("t", &schema, 1).unwrap();
        assert!((0..300).map(|_| cases.next()).any(|one| one["n"].is_i64()));
    }
}
