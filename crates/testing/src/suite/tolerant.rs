//! Reading a suite that has problems, as far as it goes, so that all of them are reported at once.
//!
//! What cannot be read is left out, or replaced by something that can. Checks of the rest see a whole suite; what they say about the
//! places that were changed is dropped.

use gatewright_findings::{Finding, escape, nearest};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::format::SuiteFile;

/// Most places that are changed.
const MOST: usize = 200;

/// The places that were left out or replaced, as JSON pointers.
#[derive(Debug, Default)]
pub(super) struct LeftOut(Vec<String>);

impl LeftOut {
    /// The findings that are about nothing that was left out.
    pub(super) fn without_false_alarms(&self, findings: Vec<Finding>) -> Vec<Finding> {
        let is_about = |finding: &Finding| {
            self.0.iter().any(|place| is_below(place, &finding.pointer) || is_below(&finding.pointer, place))
        };
        findings.into_iter().filter(|finding| !is_about(finding)).collect()
    }
}

fn is_below(place: &str, around: &str) -> bool {
    place.strip_prefix(around).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Deserializes a suite without what cannot be read.
pub(super) fn deserialize(mut value: Value) -> (Option<SuiteFile>, LeftOut) {
    let mut left_out = LeftOut::default();
    for _ in 0..MOST {
        let mut track = serde_path_to_error::Track::new();
        let tracked = serde_path_to_error::Deserializer::new(&value, &mut track);
        let problem = match SuiteFile::deserialize(tracked) {
            Ok(file) => return (Some(file), left_out),
            Err(problem) => problem.to_string(),
        };
        let place = pointer(&track.path());
        if !change(&mut value, &place, &problem, &mut left_out) {
            break;
        }
    }
    (None, left_out)
}

/// Changes the value so that the problem at `place` is gone. Returns false if it cannot.
fn change(value: &mut Value, place: &str, problem: &str, left_out: &mut LeftOut) -> bool {
    let named = |what: &str| {
        let rest = problem.split_once(&format!("{what} `"))?.1;
        Some(rest.split_once('`')?.0.to_owned())
    };
    if let Some(key) = named("missing field") {
        let Some(Value::Object(object)) = value.pointer_mut(place) else { return false };
        left_out.0.push(format!("{place}/{}", escape(&key)));
        // If this does not fit either, the next round tries something else.
        object.insert(key, Value::from(""));
        return true;
    }
    if let Some(key) = named("unknown field") {
        let around = place.strip_suffix(&format!("/{}", escape(&key))).unwrap_or(place);
        let Some(Value::Object(object)) = value.pointer_mut(around) else { return false };
        left_out.0.push(format!("{around}/{}", escape(&key)));
        let Some(found) = object.shift_remove(&key) else { return false };
        // The key that was probably meant, so that what depends on it is not reported, too.
        let known = problem.rsplit_once("expected ").map(|(_, known)| known.split('`').skip(1).step_by(2));
        if let Some(meant) = known.and_then(|known| nearest(&key, known))
            && !object.contains_key(meant)
        {
            object.insert(meant.to_owned(), found);
        }
        return true;
    }
    let Some((around, last)) = place.rsplit_once('/') else { return false };
    left_out.0.push(place.to_owned());
    match value.pointer_mut(around) {
        Some(Value::Object(object)) => {
            let last = last.replace("~1", "/").replace("~0", "~");
            let Some(found) = object.get_mut(&last) else { return false };
            match next(found) {
                Some(other) => *found = other,
                None => {
                    object.shift_remove(&last);
                }
            }
            true
        }
        // The index of other items stays.
        Some(Value::Array(items)) => {
            let found = last.parse().ok().and_then(|at: usize| items.get_mut(at));
            let Some((found, other)) = found.and_then(|found| next(found).map(|other| (found, other))) else {
                return false;
            };
            *found = other;
            true
        }
        _ => false,
    }
}

/// The next thing to try in place of a value that does not fit: an object, an array, nothing.
fn next(value: &Value) -> Option<Value> {
    match value {
        Value::Object(object) if object.is_empty() => Some(Value::Array(Vec::new())),
        Value::Array(items) if items.is_empty() => None,
        _ => Some(Value::Object(Map::new())),
    }
}

/// The JSON pointer of a path.
fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter()
        .filter_map(|segment| match segment {
            Segment::Seq { index } => Some(format!("/{index}")),
            Segment::Map { key } => Some(format!("/{}", escape(key))),
            Segment::Enum { variant } => Some(format!("/{}", escape(variant))),
            Segment::Unknown => None,
        })
        .collect()
}
