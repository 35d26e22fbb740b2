//! Schemas of tools, and results of tools with an output schema.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use gatewright_core::InputSchema;
use serde_json::{Map, Value};

use super::{rule::Rule, violation::Violation};
use crate::base::lock;

/// Problems told of one structured result.
const MOST_PROBLEMS: usize = 5;
/// Schemas whose verdict is remembered in the process.
const MOST_REMEMBERED: usize = 4096;

/// An input schema that is no valid JSON Schema: the SDKs do not read it further.
const UNREAD: &str = "both SDKs hand it on, and APIs of models reject every request with it";

/// The tools that the server has listed, by name, with their output schema.
#[derive(Debug, Default)]
pub(super) struct Tools {
    listed: HashMap<String, Option<Arc<InputSchema>>>,
    is_listed: bool,
}

impl Tools {
    /// Checks the schemas of a page of tools, and keeps those of outputs.
    pub(super) fn check_list(&mut self, result: &Value, found: &mut Vec<Violation>) {
        self.is_listed = true;
        for (at, tool) in result["tools"].as_array().into_iter().flatten().enumerate() {
            let name = tool["name"].as_str();
            for (rule, key) in [(Rule::InputSchema, "inputSchema"), (Rule::OutputSchema, "outputSchema")] {
                let place = format!("/tools/{at}/{key}");
                let is_known = found.iter().any(|one| one.place.starts_with(&place));
                if let (Some(schema), false) = (tool[key].as_object(), is_known)
                    && let Some(problem) = defect(schema)
                        .map(|defect| format!("this is no valid JSON Schema: {defect}"))
                        .or_else(|| unsatisfiable(schema))
                {
                    let mut broken = Violation::new(rule, "tools/list", place, problem).named(name);
                    if rule == Rule::InputSchema {
                        broken.effect = UNREAD;
                    }
                    found.push(broken);
                }
            }
            if let Some(name) = name {
                let output = tool["outputSchema"].as_object();
                let output = output.map(|schema| Arc::new(InputSchema::new(Arc::new(schema.clone()))));
                self.listed.insert(name.to_owned(), output);
            }
        }
    }

    /// True if the tools were not listed before.
    pub(super) fn begin_listing(&mut self) -> bool {
        !std::mem::replace(&mut self.is_listed, true)
    }

    /// Checks `structuredContent`.
    pub(super) fn check_result(&self, name: &str, result: &Value, found: &mut Vec<Violation>) {
        let Some(Some(schema)) = self.listed.get(name) else { return };
        if result["isError"] == true
            || result.get("task").is_some()
            || result["resultType"] == "input_required"
        {
            return;
        }
        let broken = |place: String, problem: String| {
            Violation::new(Rule::StructuredContent, "tools/call", place, problem).named(Some(name))
        };
        match result.get("structuredContent") {
            None => found.push(broken(
                String::new(),
                "the tool has an `outputSchema`, and its result no `structuredContent`".into(),
            )),
            Some(value) => found.extend(schema.problems(value, MOST_PROBLEMS).into_iter().map(|problem| {
                broken(
                    format!("/structuredContent{}", problem.path),
                    format!("it does not fit the `outputSchema` of the tool: {}", problem.message),
                )
            })),
        }
    }
}

/// The problem of a schema that requires a property and forbids it.
fn unsatisfiable(schema: &Map<String, Value>) -> Option<String> {
    let is_closed = schema.get("additionalProperties")? == false && !schema.contains_key("patternProperties");
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_missing = |name: &&str| properties.is_none_or(|all| !all.contains_key(*name));
    let mut required = schema.get("required")?.as_array()?.iter().filter_map(Value::as_str);
    let name = required.find(is_missing).filter(|_| is_closed)?;
    Some(format!(
        "no value fits it: `{name}` is in `required`, not in `properties`, and `additionalProperties` is false"
    ))
}

/// The reason why a schema cannot be used, if so. Verdicts are kept: each client of a process lists the same tools.
fn defect(schema: &Map<String, Value>) -> Option<String> {
    static VERDICTS: Mutex<Option<HashMap<String, Option<String>>>> = Mutex::new(None);
    let text = serde_json::to_string(schema).ok()?;
    if let Some(known) = lock(&VERDICTS).get_or_insert_default().get(&text) {
        return known.clone();
    }
    let verdict = InputSchema::new(Arc::new(schema.clone())).defect().map(str::to_owned);
    let mut verdicts = lock(&VERDICTS);
    let verdicts = verdicts.get_or_insert_default();
    if verdicts.len() >= MOST_REMEMBERED {
        verdicts.clear();
    }
    verdicts.insert(text, verdict.clone());
    verdict
}
