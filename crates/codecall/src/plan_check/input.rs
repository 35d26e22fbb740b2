//! Inputs of calls, as far as the text spells them out, against the input schemas of their tools.

use std::collections::{HashMap, HashSet};

use gatewright_agentscript::{CallSite, Member, Partial, PlanWarning};
use gatewright_core::{BrokenRule, InputProblem, ToolEntry, codes};
use serde_json::{Map, Value};

use super::{
    Problem,
    shape::{Found, Shape},
    words::{display_name, list, nearest},
};
use crate::shapes::restore_numbers;

/// Most problems of one input that are looked at.
const MOST_PROBLEMS: usize = 20;
/// Most problems of one input that are shown.
const MOST_SHOWN: usize = 5;

/// A partly known input with `null` in its holes, by JSON pointers.
#[derive(Debug, Default)]
struct Filled<'p> {
    holes: HashSet<String>,
    /// Holes that may be left out of the input.
    optional: HashSet<String>,
    /// Objects that may have more members.
    open: HashSet<String>,
    /// Places of members.
    places: HashMap<String, u32>,
    /// Members of each object.
    members: HashMap<String, &'p [Member]>,
}

/// The problem of a call's input, if it is sure to be refused, or likely to be.
pub(super) fn check(call: &CallSite, tool: &ToolEntry) -> Option<Problem> {
    let input = call.input.as_ref()?;
    let problem = |at, what: &str, is_certain| Problem {
        at,
        code: codes::VALIDATION_ERROR.to_owned(),
        message: format!("invalid input for `{}`: {what}", display_name(&call.name)),
        is_certain,
    };
    match input {
        Partial::Hole { .. } => return None,
        Partial::Scalar(_) | Partial::List(_) => {
            return Some(problem(call.at, "the input must be an object", true));
        }
        Partial::Object { .. } => {}
    }
    let mut filled = Filled::default();
    let mut value = filled.value(input, String::new());
    if let Value::Object(arguments) = &mut value {
        // As the call does.
        restore_numbers(arguments, tool.input_schema());
        tool.fill_defaults(arguments);
    }
    let mut found: Vec<Finding> = Vec::new();
    for broken in tool.input_problems(&value, MOST_PROBLEMS) {
        filled.judge(&broken, tool, &mut found);
    }
    let is_certain = found.iter().any(|finding| finding.is_certain);
    // What has a place in the text comes first.
    found.sort_by_key(|finding| (!finding.is_certain, finding.at.is_none()));
    let first = found.first()?;
    let mut sentences: Vec<&str> =
        found.iter().take(MOST_SHOWN).map(|finding| finding.message.as_str()).collect();
    if found.len() > MOST_SHOWN {
        sentences.push("…");
    }
    Some(problem(first.at.unwrap_or(call.at), &sentences.join("; "), is_certain))
}

/// A member of an input that its schema allows and does not name.
pub(super) struct Unnamed {
    pub(super) warning: PlanWarning,
    /// It looks like a name that is not used, where names are not for the caller to choose.
    pub(super) is_misspelt: bool,
}

/// Warnings about members of an input that its schema allows and does not name. One that looks like a name that is not used is likely a
/// misspelling; others are reported where the schema does not ask for any.
pub(super) fn unnamed(call: &CallSite, tool: &ToolEntry) -> Vec<Unnamed> {
    let Some(Partial::Object { members, .. }) = &call.input else { return Vec::new() };
    let members: Vec<_> = members.iter().map(|member| (&*member.name, member.at)).collect();
    unnamed_of(&call.name, &members, tool)
}

/// The same of the `members` of an input and their places, in a call of `name`.
pub(super) fn unnamed_of(name: &str, members: &[(&str, u32)], tool: &ToolEntry) -> Vec<Unnamed> {
    let schema = tool.input_schema();
    let more = schema.get("additionalProperties");
    if more == Some(&Value::Bool(false)) || OPEN.iter().any(|keyword| schema.contains_key(*keyword)) {
        return Vec::new();
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
    if properties.is_empty() || members.iter().all(|(name, _)| properties.contains_key(*name)) {
        return Vec::new();
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let mut names: Vec<&str> = properties.keys().map(String::as_str).collect();
    names.extend(required.filter_map(Value::as_str));
    names.sort_unstable();
    names.dedup();
    let given: HashSet<&str> = members.iter().map(|(name, _)| *name).collect();
    let unnamed = members.iter().filter(|(name, _)| names.binary_search(name).is_err());
    let warning = |(member, at): &(&str, u32)| {
        let near = nearest(member, names.iter().copied().filter(|name| !given.contains(name)));
        let advice = match near {
            Some(near) => format!("; did you mean `{}`?", display_name(near)),
            None if more.is_none() => format!("; it has {}", list(&names)),
            None => return None,
        };
        let message = format!(
            "the input of `{}` has no parameter `{}`{advice}",
            display_name(name),
            display_name(member)
        );
        Some(Unnamed {
            warning: PlanWarning { at: *at, message },
            is_misspelt: near.is_some() && more.is_none() && tool.checks_input(),
        })
    };
    unnamed.take(MOST_PROBLEMS).filter_map(warning).take(MOST_SHOWN).collect()
}

fn names_of(members: &[Member]) -> HashSet<&str> {
    members.iter().map(|member| &*member.name).collect()
}

/// Keywords by which a schema may name properties elsewhere.
const OPEN: [&str; 6] = ["patternProperties", "$ref", "allOf", "anyOf", "oneOf", "if"];

struct Finding {
    at: Option<u32>,
    message: String,
    is_certain: bool,
}

impl<'p> Filled<'p> {
    fn value(&mut self, partial: &'p Partial, path: String) -> Value {
        match partial {
            Partial::Hole { optional } => {
                if *optional {
                    self.optional.insert(path.clone());
                }
                self.holes.insert(path);
                Value::Null
            }
            Partial::Scalar(value) => value.clone(),
            Partial::List(items) => {
                let item = |(at, item)| self.value(item, format!("{path}/{at}"));
                items.iter().enumerate().map(item).collect()
            }
            Partial::Object { members, open } => {
                let mut object = Map::new();
                for member in members {
                    let name = member.name.replace('~', "~0").replace('/', "~1");
                    let path = format!("{path}/{name}");
                    self.places.insert(path.clone(), member.at);
                    object.insert(member.name.clone(), self.value(&member.value, path));
                }
                if *open {
                    self.open.insert(path.clone());
                }
                self.members.insert(path, members);
                Value::Object(object)
            }
        }
    }

    fn judge(&self, broken: &InputProblem, tool: &ToolEntry, found: &mut Vec<Finding>) {
        let InputProblem { path, rule, by_choice, message } = broken;
        let is_complete = self.holes.is_empty() && self.open.is_empty();
        if (*by_choice && !is_complete) || self.holes.contains(path) {
            return;
        }
        let at = self.places.get(path).copied();
        match rule {
            BrokenRule::Missing { name, has_default } => {
                if !*has_default && !self.open.contains(path) {
                    let message = format!("`{}` is missing", dotted(path, Some(name)));
                    found.push(Finding { at, message, is_certain: true });
                }
            }
            BrokenRule::Unexpected { names } => {
                // One that is given already is not meant by another.
                let given = self.members.get(path).map(|members| names_of(members)).unwrap_or_default();
                let mut others = names_at(tool, path);
                others.retain(|name| !given.contains(name));
                for name in names.iter().take(MOST_PROBLEMS) {
                    found.push(self.unexpected(path, name, &others));
                }
            }
            BrokenRule::Type => found.push(Finding { at, message: said(path, message), is_certain: true }),
            BrokenRule::Other => {
                let below = format!("{path}/");
                let is_part = |place: &String| place == path || place.starts_with(&below);
                if !self.holes.iter().chain(&self.open).any(is_part) {
                    found.push(Finding { at, message: said(path, message), is_certain: true });
                }
            }
        }
    }

    /// The finding on `name`, which may be meant to be one of `others`.
    fn unexpected(&self, path: &str, name: &str, others: &[&str]) -> Finding {
        let place = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
        let near = nearest(name, others.iter().copied());
        let advice = match near {
            Some(near) => format!(", did you mean `{}`?", display_name(near)),
            None if others.is_empty() => String::new(),
            None => format!(" beside {}", list(others)),
        };
        Finding {
            at: self.places.get(&place).copied(),
            message: format!("there is no `{}`{advice}", dotted(path, Some(name))),
            is_certain: !self.optional.contains(&place),
        }
    }
}

/// The properties that the schema of `tool` names at `path`.
fn names_at<'t>(tool: &'t ToolEntry, path: &str) -> Vec<&'t str> {
    let mut shape = Shape::of(tool.input_schema());
    for part in path.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        let next = |shape: Shape<'t>| match shape.property(&part) {
            Found::Shape(shape) => Some(shape),
            _ => match shape.item(false) {
                Found::Shape(shape) => Some(shape),
                _ => None,
            },
        };
        shape = shape.and_then(next);
    }
    shape.map(|shape| shape.names()).unwrap_or_default()
}

fn said(path: &str, message: &str) -> String {
    match path {
        "" => message.to_owned(),
        path => format!("`{}`: {message}", dotted(path, None)),
    }
}

/// A JSON pointer, and a name below it, as people write them.
fn dotted(path: &str, name: Option<&str>) -> String {
    let parts = path.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~"));
    let parts: Vec<String> = parts.chain(name.map(str::to_owned)).collect();
    display_name(&parts.join("."))
}
