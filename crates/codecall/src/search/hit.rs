//! A tool as a result of a search shows it: what tells it apart, on one line.

use gatewright_core::{Caller, ToolEntry, rmcp::model::JsonObject};
use serde_json::{Value, json};

use crate::{
    declare::{self, is_deprecated, sentence},
    hints,
    shapes::Shapes,
};

/// Characters of a description.
const LONGEST_DESCRIPTION: usize = 160;
/// ... in a list.
const LONGEST_LISTED: usize = 80;
/// Bytes of the names of parameters.
const LONGEST_PARAMETERS: usize = 160;

/// Hits whose types are looked at, the best ones.
const MOST_DECLARED: usize = 5;
/// Bytes of the types of the best hit, in proportion less of those that score less; and of all hits of an answer.
const LONGEST_TYPES: f64 = 260.0;
const ROOM: usize = 600;

/// The tools, each with a score of 0 to 1. The best ones whose types are short are declared, so that they need not be described.
pub(super) fn hits<'t>(
    found: impl Iterator<Item = (&'t ToolEntry, f64)>,
    shapes: &Shapes,
    caller: &Caller,
) -> Vec<Value> {
    let (mut room, mut best) = (ROOM, 0.0_f64);
    let found = found.enumerate().map(|(at, (tool, score))| {
        let about = described(tool, LONGEST_DESCRIPTION);
        let mut hit = json!({"name": tool.tool.name, "appId": *tool.app_id, "description": about});
        best = best.max(score);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and the longest"
        )]
        let longest = (LONGEST_TYPES * score / best.max(f64::MIN_POSITIVE)) as usize;
        let types = (at < MOST_DECLARED)
            .then(|| declare::brief(tool, &about, shapes.shown_shape(tool, caller).as_ref()))
            .flatten()
            .filter(|types| types.len() <= room.min(longest));
        match types {
            Some(types) => {
                room -= types.len();
                hit["input"] = types.input.into();
                if let Some(result) = types.result {
                    hit["result"] = result.into();
                }
            }
            None => hit["parameters"] = parameters(tool.input_schema()).into(),
        }
        hit["score"] = score.into();
        if hints::is_destructive(tool) {
            hit["destructive"] = true.into();
        }
        hit
    });
    found.collect()
}

/// The tool as a list shows it.
pub(super) fn listed(tool: &ToolEntry) -> Value {
    let mut hit = json!({
        "name": tool.tool.name,
        "appId": *tool.app_id,
        "description": described(tool, LONGEST_LISTED),
        // Nothing was asked for, so everything answers it.
        "score": 1,
    });
    if hints::is_destructive(tool) {
        hit["destructive"] = true.into();
    }
    hit
}

/// The first sentence of the tool's description, and a mark on what its author has given up.
fn described(tool: &ToolEntry, most: usize) -> String {
    let own = tool.own_description();
    let about = sentence(own, most);
    if is_deprecated(own) && !is_deprecated(&about) { format!("[deprecated] {about}") } else { about }
}

/// The names of the tool's parameters, the required ones first, the others with `?`.
pub(crate) fn parameters(schema: &JsonObject) -> String {
    let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let required = || required.iter().filter_map(Value::as_str).take(MOST);
    let known = schema.get("properties").and_then(Value::as_object);
    let optional = known.into_iter().flat_map(|known| known.keys()).map(String::as_str);
    let optional = optional.filter(|name| !required().any(|one| one == *name)).map(|name| (name, "?"));
    let mut text = String::new();
    for (name, mark) in required().map(|name| (name, "")).chain(optional) {
        if text.len() + name.len() > LONGEST_PARAMETERS {
            text.push_str(if text.is_empty() { "…" } else { ", …" });
            break;
        }
        let comma = if text.is_empty() { "" } else { ", " };
        text.extend([comma, name, mark]);
    }
    text
}

/// Names that are looked at.
const MOST: usize = 100;
