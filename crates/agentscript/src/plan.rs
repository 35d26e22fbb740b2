//! Facts about the tool calls of a script that its text makes certain, and the host's verdict on them.
//!
//! `facts` collects them; nothing here knows a syntax tree. Places are byte offsets in the caller's text.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::excerpt;

/// Longest facts of one script, in bytes of JSON.
pub(crate) const PLAN_BYTES: usize = 64 * 1024;
/// Most warnings of one run.
pub(crate) const MAX_WARNINGS: usize = 20;

/// Facts about a script, collected before it runs. A worker reports them: a hostile one may leave facts out or invent them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanFacts {
    /// Calls of `callTool` and `getTool` whose tool name is in the text, in order of the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallSite>,
    /// Reads of the results of these calls. Each refers to a call or to an earlier read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<ResultUse>,
    /// Mistakes that need no knowledge of tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// A call of `callTool` or `getTool` with a literal name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallSite {
    /// Place of the name.
    pub at: u32,
    /// Name of the tool.
    pub name: String,
    /// Input; `None` for `getTool`.
    pub input: Option<Partial>,
    /// The result is `{success, data, error}`: `throwOnError` is `false`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub settled: bool,
    /// The result is that of all pages: `paginate` is there.
    #[serde(default, skip_serializing_if = "is_false")]
    pub paginated: bool,
    /// The script does not catch an error of this call: where the call is reached, the error ends the run.
    pub ends_run: bool,
}

/// A value as far as the text spells it out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Partial {
    /// A value that is known only at run time.
    Hole {
        /// It may be `undefined`, which JSON leaves out.
        optional: bool,
    },
    /// `null`, a boolean, a number or a string.
    Scalar(Value),
    /// An array of known length.
    List(Vec<Partial>),
    /// An object.
    Object {
        /// Members in order of the text, each name once.
        members: Vec<Member>,
        /// There may be more members: a spread or a computed key.
        open: bool,
    },
}

/// A member of a partly known object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Place of the name.
    pub at: u32,
    /// Name of the member.
    pub name: String,
    /// Its value.
    pub value: Partial,
}

/// A read of a part of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultUse {
    /// The value that is read from.
    pub of: Origin,
    /// The part.
    pub part: Part,
    /// Place of the first such read.
    pub at: u32,
    /// The script provides for the part's absence: it tests it, or has a value in its place.
    pub tentative: bool,
    /// The elements are taken one after the other: by a loop, an array method or a pattern.
    #[serde(default, skip_serializing_if = "is_false")]
    pub iterated: bool,
}

/// A value that comes from a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Origin {
    /// Result of the call of this index.
    Call(u32),
    /// Part that the use of this index reads.
    Use(u32),
}

/// A part of a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Part {
    /// The property of this name.
    Property(String),
    /// Any element of an array.
    Item,
    /// An element or a property whose key is known only at run time.
    Computed,
}

/// A mistake that the text alone shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// Its place.
    pub at: u32,
    /// The mistake.
    pub mistake: Mistake,
    /// The function or property that it is about; empty when it has no name.
    pub name: String,
}

/// A kind of [`Note`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mistake {
    /// A statement starts tool calls and does not wait for them.
    NotAwaited,
    /// `forEach` with an async function that calls tools.
    ForEachAsync,
    /// A property is read from a promise.
    ReadFromPromise,
    /// The script returns nothing, and seems to have meant to return what its last statement declares, sets or adds to. Only a result that
    /// is null shows it.
    NotReturned,
    /// The script is a function, or declares functions, and calls none of them.
    FunctionNotCalled,
}

impl Note {
    /// The mistake and what to do.
    pub fn message(&self) -> String {
        let printable = |c: char| if c.is_control() { '\u{fffd}' } else { c };
        let name: String = excerpt::name(&self.name).chars().map(printable).collect();
        match self.mistake {
            Mistake::NotAwaited if name.is_empty() => {
                "this tool call is not awaited: the script may end before it is done, which cancels it, and its error goes unseen; put `await` in front of it".to_owned()
            }
            Mistake::NotAwaited => format!(
                "`{name}()` calls tools and is not awaited: the script may end before they are done, which cancels them; write `return await {name}()`"
            ),
            Mistake::ForEachAsync => {
                "`forEach` does not wait for an async function: use `for (const item of list)` with `await`, or `await Promise.all(list.map(…))`".to_owned()
            }
            Mistake::ReadFromPromise => {
                format!("`{name}` is read from a promise, so it is undefined; await the call first")
            }
            Mistake::NotReturned => {
                let value = if name.is_empty() { "value" } else { &name };
                format!("the script returned nothing; end it with `return {value}`")
            }
            Mistake::FunctionNotCalled if name.is_empty() => {
                "this function is never called, so nothing runs and the result is null; write its body alone, or `return await (async () => { … })()`".to_owned()
            }
            Mistake::FunctionNotCalled => format!(
                "`{name}` is never called, so nothing runs and the result is null; end the script with `return await {name}()`"
            ),
        }
    }
}

/// The host's verdict on a plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanVerdict {
    /// Problems that do not keep the script from running.
    pub warnings: Vec<PlanWarning>,
    /// Ends the run before any of its calls.
    pub refusal: Option<PlanRefusal>,
}

/// A problem of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanWarning {
    /// Its place.
    pub at: u32,
    /// The problem and what to do.
    pub message: String,
}

/// A call that cannot succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanRefusal {
    /// Its place.
    pub at: u32,
    /// The tool's name as the script gave it.
    pub tool_name: String,
    /// The code that the call would fail with.
    pub code: String,
    /// The reason and what to do.
    pub message: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl PlanFacts {
    /// The facts as JSON, without what does not fit [`PLAN_BYTES`]; `None` when there are none.
    pub(crate) fn to_json(&self) -> Option<String> {
        let fits = |json: &String| json.len() <= PLAN_BYTES;
        let json = |facts: &Self| serde_json::to_string(facts).ok().filter(fits);
        if self.calls.is_empty() && self.notes.is_empty() {
            return None;
        }
        json(self).or_else(|| {
            let mut short = Self { uses: Vec::new(), ..self.clone() };
            for call in short.calls.iter_mut().filter(|call| call.input.is_some()) {
                call.input = Some(Partial::Hole { optional: false });
            }
            json(&short).or_else(|| json(&Self { notes: self.notes.clone(), ..Self::default() }))
        })
    }
}
