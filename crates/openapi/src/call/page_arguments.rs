//! The arguments of a call that a page at an address of the API stands for, so that whoever decides on calls can decide on the page.

use gatewright_core::rmcp::model::JsonObject;
use serde_json::Value;
use url::Url;

use crate::{Location, Operation};

/// The arguments with which `operation` would ask for the page at `next`, after the one at `before` with `arguments`: what the address changes in the
/// query is changed in them, as text. None if it changes an array or an object.
pub(super) fn arguments_at(
    operation: &Operation,
    arguments: &JsonObject,
    before: &Url,
    next: &Url,
) -> Option<JsonObject> {
    let mut changed = arguments.clone();
    for parameter in operation.parameters.iter().filter(|one| one.location == Location::Query) {
        let is_its = |name: &str| match name.strip_prefix(&*parameter.name) {
            Some(rest) => rest.is_empty() || rest.starts_with('['),
            None => false,
        };
        let of = |url: &Url| -> Vec<(String, String)> {
            let pairs = url.query_pairs().filter(|(name, _)| is_its(name));
            pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
        };
        let (was, is) = (of(before), of(next));
        if was == is {
            continue;
        }
        match is.as_slice() {
            [] => {
                changed.shift_remove(&*parameter.argument);
            }
            [(name, value)] if *name == *parameter.name => {
                changed.insert(parameter.argument.to_string(), Value::String(value.clone()));
            }
            _ => return None,
        }
    }
    Some(changed)
}
