//! Reads of results against the shapes of the results.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use gatewright_agentscript::{Origin, Part, PlanFacts, PlanWarning, ResultUse};
use gatewright_core::rmcp::model::JsonObject;
use serde_json::json;

use super::{
    Named, Tools,
    shape::{Found, Lack, Lacking, Shape},
    words::{display_name, list, nearest},
};
use crate::shapes::TextKind;

/// Most warnings about reads.
const MOST_WARNINGS: usize = 15;
/// Answers that must have been seen before a run for a property that looks like no other to be called unseen.
pub(super) const ENOUGH_ANSWERS: u64 = 3;
/// Members of `{success, data, error}`.
const SETTLED: [&str; 3] = ["success", "data", "error"];

/// Schema of the result of a call with `paginate`.
static PAGED: LazyLock<JsonObject> = LazyLock::new(|| {
    let schema = json!({"type": "object", "additionalProperties": false, "properties": {
        "items": {"type": "array"}, "hasMore": {"type": "boolean"}, "pages": {"type": "integer"},
    }});
    serde_json::from_value(schema).unwrap_or_default()
});

/// Knowledge of a value.
#[derive(Clone)]
enum Value<'s> {
    Shape(Shape<'s>),
    /// `{success, data, error}` around this.
    Settled(Option<Shape<'s>>),
    Unknown,
}

/// A read of what is not there.
pub(super) struct BadRead {
    pub(super) warning: PlanWarning,
    /// Index of the call whose result is read.
    pub(super) call: u32,
    /// The declared shape does not have it, and the script does not provide for its absence.
    pub(super) is_certain: bool,
}

/// The reads of what is not there. A property that looks like no other is reported once `enough` answers were seen without it.
pub(super) fn check(facts: &PlanFacts, tools: &Tools, enough: u64) -> Vec<BadRead> {
    let checker = Checker { facts, tools, read: read_names(&facts.uses), enough };
    let mut found = Vec::new();
    let mut values: Vec<Value<'_>> = Vec::with_capacity(facts.uses.len());
    let mut reported: HashSet<Origin> = HashSet::new();
    for read in &facts.uses {
        let of = match read.of {
            Origin::Call(call) => checker.result(call),
            // A worker may refer to reads that are not there.
            Origin::Use(index) => values.get(index as usize).cloned().unwrap_or(Value::Unknown),
        };
        let (value, lack) = part(&of, read);
        values.push(value);
        let Some(lack) = lack else { continue };
        // `map` on an object and its elements are one mistake.
        let is_known = read.part == Part::Item && reported.contains(&read.of);
        if !is_known
            && found.len() < MOST_WARNINGS
            && let Some(bad) = checker.bad_read(read, &lack)
        {
            reported.insert(read.of);
            found.push(bad);
        }
    }
    found
}

/// The value of the part of `of` that is read, and the lack of it.
fn part<'s>(of: &Value<'s>, read: &ResultUse) -> (Value<'s>, Option<Lack<'s>>) {
    let found = match (of, &read.part) {
        (Value::Shape(shape), Part::Property(name)) => shape.property(name),
        (Value::Shape(shape), Part::Item) => shape.item(read.iterated),
        (Value::Shape(shape), Part::Computed) => shape.computed(),
        (Value::Settled(data), Part::Property(name)) => match (name.as_str(), data) {
            ("data", Some(data)) => Found::Shape(data.clone()),
            (name, _) if SETTLED.contains(&name) => Found::Unknown,
            _ => Found::Missing(Lack { kind: "object", of: Lacking::Names(&SETTLED) }),
        },
        (Value::Settled(_) | Value::Unknown, _) => Found::Unknown,
    };
    match found {
        Found::Shape(shape) => (Value::Shape(shape), None),
        Found::Unknown => (Value::Unknown, None),
        Found::Missing(lack) => (Value::Unknown, Some(lack)),
    }
}

/// The names that a plan reads of each value.
fn read_names(uses: &[ResultUse]) -> HashMap<Origin, HashSet<&str>> {
    let mut read: HashMap<Origin, HashSet<&str>> = HashMap::new();
    for it in uses {
        if let Part::Property(name) = &it.part {
            read.entry(it.of).or_default().insert(name);
        }
    }
    read
}

struct Checker<'f> {
    facts: &'f PlanFacts,
    tools: &'f Tools,
    read: HashMap<Origin, HashSet<&'f str>>,
    enough: u64,
}

impl<'f> Checker<'f> {
    fn result(&self, call: u32) -> Value<'f> {
        let Some(call) = self.facts.calls.get(call as usize) else { return Value::Unknown };
        let shape = match self.tools.get(&call.name) {
            _ if call.paginated => Shape::of(&PAGED),
            Some(Named::Tool { shape: Some(shape), .. }) => Shape::of(&shape.schema),
            _ => None,
        };
        match (call.settled, shape) {
            (true, shape) => Value::Settled(shape),
            (false, Some(shape)) => Value::Shape(shape),
            (false, None) => Value::Unknown,
        }
    }

    /// The read of what is not there; none where the script provides for that.
    fn bad_read(&self, read: &ResultUse, lack: &Lack<'_>) -> Option<BadRead> {
        let (call, path) = self.source(read.of)?;
        let tool = self.facts.calls.get(call as usize)?;
        let settled = tool.settled && matches!(read.of, Origin::Call(_));
        let shape = match self.tools.get(&tool.name) {
            Some(Named::Tool { shape, .. }) if !settled && !tool.paginated => shape.as_ref(),
            _ => None,
        };
        let observed = shape.and_then(|shape| shape.observed);
        let name = display_name(&tool.name);
        let value = match path.as_str() {
            "" => format!("the result of `{name}`"),
            path => format!("`{}` of the result of `{name}`", display_name(path)),
        };
        let message = if lack.kind == "string" {
            let text = shape.filter(|_| path.is_empty()).and_then(|shape| shape.text);
            self.of_text(read, observed, &value, text)
        } else {
            self.of_value(read, lack, observed, &value, settled)
        };
        // A loop over the characters of a text is odd, and runs.
        let runs = lack.kind == "string" && read.part == Part::Item;
        Some(BadRead {
            warning: PlanWarning { at: read.at, message: message? },
            call,
            is_certain: observed.is_none() && !read.tentative && !runs,
        })
    }

    /// The message about a read of `value`, which is no text.
    fn of_value(
        &self,
        read: &ResultUse,
        lack: &Lack<'_>,
        observed: Option<u64>,
        value: &str,
        settled: bool,
    ) -> Option<String> {
        let Part::Property(property) = &read.part else {
            let is_unsure = read.tentative || lack.kind == "object" && observed.is_some();
            let arrays = || did_you_mean_one_of(&lack.arrays(), "");
            return (!is_unsure)
                .then(|| format!("{value} is {}, not an array{}", article(lack.kind), arrays()));
        };
        let given = display_name(property);
        let is_unsure = read.tentative || observed.is_some_and(|answers| answers < self.enough);
        if lack.kind != "object" {
            return (!is_unsure).then(|| format!("{value} is {} and has no `{given}`", article(lack.kind)));
        }
        let names = lack.names();
        let near = nearest(property, names.iter().copied())
            .filter(|near| !self.read.get(&read.of).is_some_and(|read| read.contains(near)));
        let advice = match near {
            Some(near) => format!("; did you mean `{}`?", display_name(near)),
            None if is_unsure => return None,
            None if settled => "; with `throwOnError: false` the tool's result is in `data`".to_owned(),
            None if is_array_method(property) && lack.arrays().len() == 1 => {
                did_you_mean_one_of(&lack.arrays(), property)
            }
            None => format!("; it has {}", list(&names)),
        };
        Some(match observed {
            None => format!("{value} has no `{given}`{advice}"),
            Some(1) => format!("`{given}` was not in the one answer seen of {value}{advice}"),
            Some(answers) => format!("`{given}` was in none of {answers} answers seen of {value}{advice}"),
        })
    }

    /// The message about a read of `value`, which is text of the format `text`, as far as that is known.
    fn of_text(
        &self,
        read: &ResultUse,
        observed: Option<u64>,
        value: &str,
        text: Option<TextKind>,
    ) -> Option<String> {
        let property = match &read.part {
            Part::Property(property) => Some(property),
            Part::Item | Part::Computed => None,
        };
        // Whoever treats a text as an array is wrong about the first answer, too.
        let is_array = property.is_none_or(|property| is_array_method(property));
        if read.tentative || !is_array && observed.is_some_and(|answers| answers < self.enough) {
            return None;
        }
        let is = match observed {
            None => "is a string".to_owned(),
            Some(1) => "was a string in the one answer seen".to_owned(),
            Some(answers) => format!("was a string in {answers} answers seen"),
        };
        let problem = match property {
            Some(property) => format!("has no `{}`", display_name(property)),
            None => "iterating over it gives characters".to_owned(),
        };
        let advice = match text {
            Some(TextKind::Json) => "parse it with `JSON.parse`",
            Some(TextKind::Python) => "it is a Python literal: find values in it with `matchAll`",
            Some(TextKind::Csv) => "it is CSV: split it into lines with `split`",
            None => "parse it with `JSON.parse` if it is JSON, or take it apart with `split` or `matchAll`",
        };
        Some(format!("{value} {is} and {problem}; {advice}"))
    }

    /// The call that a value comes from, and the path from its result to the value.
    fn source(&self, mut of: Origin) -> Option<(u32, String)> {
        let mut parts = Vec::new();
        loop {
            match of {
                Origin::Call(call) => break self.path(call, parts).map(|path| (call, path)),
                Origin::Use(index) => {
                    let read = self.facts.uses.get(index as usize)?;
                    parts.push(&read.part);
                    // Only earlier ones: there is no circle.
                    if matches!(read.of, Origin::Use(earlier) if earlier >= index) {
                        return None;
                    }
                    of = read.of;
                }
            }
        }
    }

    fn path(&self, call: u32, parts: Vec<&Part>) -> Option<String> {
        let mut path = String::new();
        let data = Part::Property("data".to_owned());
        let is_settled = self.facts.calls.get(call as usize)?.settled;
        let wrapped = usize::from(is_settled && parts.last() == Some(&&data));
        for part in parts.iter().rev().skip(wrapped) {
            match part {
                Part::Property(name) if path.is_empty() => path.push_str(name),
                Part::Property(name) => path.extend([".", name]),
                Part::Item | Part::Computed => path.push_str("[]"),
            }
        }
        Some(path)
    }
}

fn article(kind: &str) -> &'static str {
    match kind {
        "object" => "an object",
        "array" => "an array",
        "string" => "a string",
        "boolean" => "a boolean",
        _ => "a number",
    }
}

fn is_array_method(name: &str) -> bool {
    matches!(
        name,
        "map"
            | "filter"
            | "find"
            | "forEach"
            | "some"
            | "every"
            | "reduce"
            | "flatMap"
            | "slice"
            | "sort"
            | "length"
            | "at"
    )
}

/// The advice to read the only array of an object.
fn did_you_mean_one_of(arrays: &[&str], method: &str) -> String {
    match arrays {
        [only] if method.is_empty() => format!("; did you mean its `{}`?", display_name(only)),
        [only] => format!("; did you mean `{}.{}`?", display_name(only), display_name(method)),
        _ => String::new(),
    }
}
