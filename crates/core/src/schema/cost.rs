//! The work of checking a value against a schema, counted before it is done.
//!
//! References make a schema of a few kilobytes as large as they like: one that refers twice to the next, forty times in a row, is checked
//! 2^40 times. What is counted here is how often a part of the schema is applied to a part of the value. Every pair is counted once and
//! remembered, so counting takes no longer than there are pairs, and ends at a limit.

pub(super) mod building;
mod lists;
mod repeats;
mod targets;

use std::{collections::HashMap, ptr};

use rmcp::model::JsonObject;
use serde_json::Value;

use self::{lists::Lists, repeats::Repeats, targets::Targets};
use super::{
    guard::meets,
    order::{in_both, is_ruled_out},
};

/// Most times that parts of a schema are applied to parts of one value, for values of few parts; and for each part of one with many.
const MOST: u64 = 1_000_000;
const MOST_FOR_EACH: u64 = 8;

/// Returns how often parts of a schema may be applied to parts of `value`.
pub(super) fn most(value: &Value) -> u64 {
    values(value).saturating_mul(MOST_FOR_EACH).max(MOST)
}

/// Schemas within each other, by keywords or references.
const DEEPEST: u32 = 500;
const DEEPEST_LOCATED: u32 = 900;

/// Returns how often a value with one element in each of its arrays and objects can have parts of `schema` applied to it at most;
/// `u64::MAX` if the schema refers to itself. `None` if its parts are nested deeper than [`DEEPEST`] levels.
pub(super) fn unrolled(schema: &Value) -> Option<u64> {
    let mut counter = Counter::new(schema, u64::MAX);
    let cost = counter.all(None);
    let times = if cost.times == u32::MAX { u64::MAX } else { cost.times.into() };
    (!counter.too_deep).then_some(times)
}

/// Returns how often parts of `schema` are applied to parts of `value`; `None` for more than [`most`], and for what never ends.
///
/// With `every_problem`, also parts of schemas that an earlier keyword has ruled out.
pub(super) fn applications(schema: &Value, value: &Value, every_problem: bool) -> Option<u64> {
    let purpose = if every_problem { Purpose::EveryProblem } else { Purpose::Verdict };
    count(schema, value, purpose, DEEPEST)
}

/// Returns the same for the first problem of a value that is not valid, with a schema of [`super::located`], which nests deeper.
pub(super) fn to_first_problem(schema: &Value, value: &Value) -> Option<u64> {
    count(schema, value, Purpose::FirstProblem, DEEPEST_LOCATED)
}

fn count(schema: &Value, value: &Value, purpose: Purpose, deepest: u32) -> Option<u64> {
    let repeats = match purpose {
        Purpose::EveryProblem => Repeats::default(),
        _ => {
            let mut counter = Counter::new(schema, most(value));
            counter.all(None);
            Repeats::of(&counter.references)
        }
    };
    let most = match purpose {
        Purpose::FirstProblem => most(value).saturating_mul(LIGHTER),
        _ => most(value),
    };
    let mut counter = Counter { purpose, deepest, repeats, ..Counter::new(schema, most) };
    let times = counter.all(Some(value)).times;
    let is_known = !counter.too_deep && times < u32::MAX;
    Some(u64::from(times)).filter(|times| is_known && *times <= most)
}

/// Use of a validator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// The verdict only. What a reference to a schema around it gives for an array or object is remembered.
    Verdict,
    /// The first problem. Conditions are checked for their verdict.
    FirstProblem,
    /// Every problem: nothing is remembered, and nothing is ruled out.
    EveryProblem,
}

/// Returns the number of values in `value`, itself included.
pub(super) fn values(value: &Value) -> u64 {
    1 + match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(members) => members.values().map(values).sum(),
        _ => 0,
    }
}

/// Returns the bytes of the longest place in `value`, as a JSON Pointer or more.
pub(super) fn longest_place(value: &Value) -> u64 {
    /// An index, and what stands before it.
    const INDEX: u64 = 8;
    match value {
        Value::Array(items) => INDEX + items.iter().map(longest_place).max().unwrap_or_default(),
        Value::Object(members) => {
            // `~` and `/` take two bytes each.
            let within =
                |(name, member): (&String, &Value)| 1 + 2 * name.len() as u64 + longest_place(member);
            members.iter().map(within).max().unwrap_or_default()
        }
        _ => 0,
    }
}

/// Work for the first problem, whose conditions are light, in place of one application.
const LIGHTER: u64 = 4;

/// Most costs that are remembered: some 60 MB.
const MOST_KNOWN: usize = 1_000_000;

/// References that are noted, to find those whose outcome validators remember.
const MOST_REFERENCES: usize = 2_000;

/// Keywords of a schema that are read as fast as it is counted.
const KEYWORDS_FOR_ONE: u64 = 32;

/// Most parts of a condition that are looked at, to see which schema applies.
const MOST_LOOKED_AT: u64 = 10_000;

/// Times that parts of the schema of schemas are applied to each part of a schema, and its levels; more than there are.
const META: u64 = 200;
const META_HEIGHT: u32 = 50;

/// Work of applying a schema to a value.
#[derive(Clone, Copy)]
struct Cost {
    /// Applications of parts of the schema, where what is remembered was counted before.
    times: u32,
    /// Applications when it is done once more.
    again: u32,
    /// The same up to references that are remembered.
    own: u32,
    /// The most of `own` of the schemas behind such references.
    heaviest: u32,
    /// Applications of the schemas in place, once more, to find out what they evaluated; and the same up to references.
    marks: (u32, u32),
    /// Levels below.
    height: u32,
}

const ONE: Cost = Cost { times: 1, again: 1, own: 1, heaviest: 0, marks: (0, 0), height: 0 };
const ENDLESS: Cost = Cost { times: u32::MAX, again: u32::MAX, own: u32::MAX, ..ONE };

/// References that a validator follows before it remembers what they gave: `MEMO_MIN_VISITS` of `jsonschema`.
const BEFORE_REMEMBERED: u32 = 16;

impl Cost {
    /// The cost of as much work as `times` applications.
    fn of(times: u64) -> Self {
        let times = times.try_into().unwrap_or(u32::MAX);
        Self { times, again: times, own: times, ..ONE }
    }

    /// The cost behind a reference whose outcome is remembered: nothing is repeated that follows many references.
    fn remembered(self) -> Self {
        let heaviest = self.heaviest.max(self.own);
        let again = self.again.min(BEFORE_REMEMBERED.saturating_mul(heaviest));
        Self { again, own: 1, heaviest, ..self }
    }
}

struct Counter<'s> {
    root: &'s Value,
    targets: Targets<'s>,
    /// Costs of schemas that are referred to, at a value, and for its verdict only; `None` while one is counted. Without a value: at any.
    known: HashMap<(*const JsonObject, *const Value, bool), Option<Cost>>,
    /// Schemas that are referred to and being counted.
    open: Vec<*const JsonObject>,
    /// References between schemas that are referred to, as they are counted.
    references: Vec<(*const JsonObject, *const JsonObject)>,
    repeats: Repeats,
    lists: Lists<'s>,
    purpose: Purpose,
    most: u64,
    counted: u64,
    deepest: u32,
    too_deep: bool,
}

impl<'s> Counter<'s> {
    fn new(root: &'s Value, most: u64) -> Self {
        Self {
            root,
            targets: Targets::new(root),
            known: HashMap::new(),
            open: Vec::new(),
            references: Vec::new(),
            repeats: Repeats::default(),
            lists: Lists::default(),
            purpose: Purpose::Verdict,
            most,
            counted: 0,
            deepest: DEEPEST,
            too_deep: false,
        }
    }

    /// Counts the whole schema.
    fn all(&mut self, value: Option<&Value>) -> Cost {
        match self.root {
            Value::Object(schema) => self.referred(schema, value, 0, false),
            _ => ONE,
        }
    }

    /// Counts `schema` and what is in it, applied to `value`.
    fn count(&mut self, schema: &'s JsonObject, value: Option<&Value>, depth: u32) -> Cost {
        self.counted += 1 + schema.len() as u64 / KEYWORDS_FOR_ONE;
        if self.too_deep || self.counted > self.most || self.known.len() > MOST_KNOWN {
            return ENDLESS;
        }
        if depth > self.deepest {
            self.too_deep = true;
            return ENDLESS;
        }
        let mut sum = Sum(ONE);
        if self.rules_out(schema, value) {
            return sum.0;
        }
        let condition = schema.get("if").zip(value);
        let met = condition.and_then(|(condition, value)| self.is_met(condition, value, &mut sum));
        for (keyword, given) in schema {
            let work = self.lists.work(keyword, given, value);
            if work > 0 {
                sum.add(Cost::of(work));
            }
            match keyword.as_str() {
                "if" if met.is_some() => {}
                "then" if met == Some(false) => {}
                "else" if met == Some(true) => {}
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    self.reference(given, keyword == "$ref", value, depth, &mut sum);
                }
                "if" => {
                    let purpose = self.purpose;
                    if purpose == Purpose::FirstProblem {
                        self.purpose = Purpose::Verdict;
                    }
                    self.each(given, value, depth, &mut sum.in_place());
                    self.purpose = purpose;
                }
                "then" | "else" | "allOf" | "anyOf" | "oneOf" => {
                    self.each(given, value, depth, &mut sum.in_place());
                }
                "not" => self.each(given, value, depth, &mut sum),
                "dependentSchemas" | "dependencies" => {
                    for (name, given) in given.as_object().into_iter().flatten() {
                        if value.is_none_or(|value| value.get(name).is_some()) {
                            self.one(given, value, depth, &mut sum.in_place());
                        }
                    }
                }
                "properties" => {
                    let given = given.as_object().into_iter();
                    match value {
                        None => given
                            .flat_map(JsonObject::values)
                            .for_each(|it| self.one(it, None, depth, &mut sum)),
                        Some(value) => {
                            for (given, member) in given.flat_map(|given| in_both(given, value)) {
                                self.one(given, Some(member), depth, &mut sum);
                            }
                        }
                    }
                }
                "patternProperties" => {
                    for given in given.as_object().into_iter().flat_map(JsonObject::values) {
                        self.members(given, value, depth, &mut sum);
                    }
                }
                "additionalProperties" | "propertyNames" => self.members(given, value, depth, &mut sum),
                "unevaluatedProperties" => self.members(given, value, depth, &mut sum.in_place()),
                "unevaluatedItems" => self.items(given, value, depth, &mut sum.in_place()),
                "items" | "prefixItems" | "additionalItems" | "contains" => {
                    self.items(given, value, depth, &mut sum);
                }
                _ => {}
            }
        }
        if schema.contains_key("unevaluatedProperties") || schema.contains_key("unevaluatedItems") {
            // What was evaluated is found out by evaluating again, for the verdict only.
            if self.purpose == Purpose::FirstProblem {
                self.purpose = Purpose::Verdict;
                let verdict = self.count(schema, value, depth);
                self.purpose = Purpose::FirstProblem;
                sum.add(verdict);
            } else {
                sum.repeat_in_place();
            }
        }
        sum.0
    }

    fn rules_out(&self, schema: &JsonObject, value: Option<&Value>) -> bool {
        self.purpose != Purpose::EveryProblem && value.is_some_and(|value| is_ruled_out(schema, value))
    }

    /// Counts the schemas that a reference may lead to.
    fn reference(
        &mut self,
        name: &'s Value,
        is_plain: bool,
        value: Option<&Value>,
        depth: u32,
        sum: &mut Sum,
    ) {
        let name = name.as_str().unwrap_or_default();
        if name.contains("//json-schema.org/") {
            // The schema of schemas is known to the validator.
            let times = META.saturating_mul(value.map_or(1, values));
            sum.add(Cost { height: META_HEIGHT, ..Cost::of(times) });
            return;
        }
        let targets = self.targets.of(name);
        if targets.is_empty() {
            sum.add(ENDLESS);
        }
        let is_plain = is_plain && targets.len() == 1;
        for target in targets.iter() {
            let cost = match target {
                Value::Object(target) => self.referred(target, value, depth, is_plain),
                _ => ONE,
            };
            sum.in_place().add(cost);
        }
    }

    /// Tests `value` against the condition of an `if`; `None` if that is too much to look at.
    fn is_met(&mut self, condition: &Value, value: &Value, sum: &mut Sum) -> Option<bool> {
        if self.purpose == Purpose::EveryProblem {
            return None;
        }
        let mut fuel = MOST_LOOKED_AT;
        let met = meets(value, condition, &mut fuel);
        // Cheaper than applying a schema.
        let looked_at = (MOST_LOOKED_AT - fuel).div_ceil(8);
        self.counted += looked_at;
        sum.add(Cost::of(looked_at));
        met
    }

    /// Counts a schema, or each of a list, applied to `value`.
    fn each(&mut self, given: &'s Value, value: Option<&Value>, depth: u32, sum: &mut impl Adds) {
        match given {
            Value::Array(schemas) => schemas.iter().for_each(|given| self.one(given, value, depth, sum)),
            given => self.one(given, value, depth, sum),
        }
    }

    fn one(&mut self, given: &'s Value, value: Option<&Value>, depth: u32, sum: &mut impl Adds) {
        match given {
            Value::Object(schema) => sum.add(self.count(schema, value, depth + 1)),
            _ => sum.add(ONE),
        }
    }

    fn members(&mut self, given: &'s Value, value: Option<&Value>, depth: u32, sum: &mut impl Adds) {
        match value {
            None => self.one(given, None, depth, sum),
            Some(value) => {
                for member in value.as_object().into_iter().flat_map(JsonObject::values) {
                    self.one(given, Some(member), depth, sum);
                }
            }
        }
    }

    fn items(&mut self, given: &'s Value, value: Option<&Value>, depth: u32, sum: &mut impl Adds) {
        match value {
            None => self.each(given, None, depth, sum),
            Some(value) => {
                for item in value.as_array().into_iter().flatten() {
                    self.each(given, Some(item), depth, sum);
                }
            }
        }
    }

    /// Counts a schema that is referred to, once for each value. `is_plain`: by a `$ref` that leads nowhere else.
    fn referred(
        &mut self,
        schema: &'s JsonObject,
        value: Option<&Value>,
        depth: u32,
        is_plain: bool,
    ) -> Cost {
        if self.rules_out(schema, value) {
            return ONE;
        }
        let target = ptr::from_ref(schema);
        let from = self.open.last().copied().unwrap_or(ptr::null());
        if value.is_none() && self.references.len() < MOST_REFERENCES {
            self.references.push((from, target));
        }
        let is_container = value.is_some_and(|value| value.is_array() || value.is_object());
        let is_remembered = is_plain
            && is_container
            && self.purpose == Purpose::Verdict
            && self.repeats.contains(&(from, target));
        let through = |cost: Cost| if is_remembered { cost.remembered() } else { cost };
        let key = (target, value.map_or(ptr::null(), ptr::from_ref), self.purpose == Purpose::Verdict);
        match self.known.get(&key) {
            Some(Some(known)) if depth + known.height < self.deepest => {
                let known = through(*known);
                return Cost { times: known.again, ..known };
            }
            Some(Some(_)) => {
                self.too_deep = true;
                return ENDLESS;
            }
            // It refers to itself, at the same value.
            Some(None) => return ENDLESS,
            None => {}
        }
        self.known.insert(key, None);
        self.open.push(target);
        let cost = self.count(schema, value, depth + 1);
        self.open.pop();
        self.known.insert(key, Some(cost));
        through(cost)
    }
}

struct Sum(Cost);

/// Schemas applied to the value itself, which may tell what of it they evaluated.
struct InPlace<'c>(&'c mut Sum);

trait Adds {
    fn add(&mut self, part: Cost);
}

impl Adds for Sum {
    fn add(&mut self, part: Cost) {
        let sum = &mut self.0;
        sum.times = sum.times.saturating_add(part.times);
        sum.again = sum.again.saturating_add(part.again);
        sum.own = sum.own.saturating_add(part.own);
        sum.heaviest = sum.heaviest.max(part.heaviest);
        sum.height = sum.height.max(part.height + 1);
    }
}

impl Adds for InPlace<'_> {
    fn add(&mut self, part: Cost) {
        let marks = &mut self.0.0.marks;
        marks.0 = marks.0.saturating_add(part.again).saturating_add(part.marks.0);
        marks.1 = marks.1.saturating_add(part.own).saturating_add(part.marks.1);
        self.0.add(part);
    }
}

impl Sum {
    fn in_place(&mut self) -> InPlace<'_> {
        InPlace(self)
    }

    /// Adds what the schemas in place cost once more.
    fn repeat_in_place(&mut self) {
        let (again, own) = self.0.marks;
        self.add(Cost { times: again, again, own, ..ONE });
    }
}

#[cfg(test)]
mod tests;
