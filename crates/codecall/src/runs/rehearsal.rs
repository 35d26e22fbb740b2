//! Rehearsals: a plan runs, read-only tools are called for real, and every other call is checked and listed in place of being made. Saved plans that it
//! calls run as rehearsals, too.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gatewright_agentscript::excerpt;
use gatewright_core::{
    Decision, DigestPart, PermittedTool, Rehearsed, outline,
    rmcp::model::{InputRequests, JsonObject},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{results::json_len, shapes::ResultShape};

/// Calls that a rehearsal lists; more are counted.
const MOST_LISTED: usize = 100;
/// Longest arguments of a listed call, in bytes of JSON.
const LONGEST: usize = 2_048;

/// `dryRun` of `codecall:execute`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub(crate) enum DryRun {
    /// Read-only tools are called.
    Reading,
    /// Nothing is called.
    Offline,
}

impl DryRun {
    /// As it is written in arguments.
    pub(crate) fn digest_part(self) -> DigestPart<'static> {
        match self {
            Self::Reading => DigestPart::Bool(true),
            Self::Offline => DigestPart::Text("offline"),
        }
    }
}

impl From<DryRun> for Value {
    fn from(kind: DryRun) -> Self {
        match kind {
            DryRun::Reading => true.into(),
            DryRun::Offline => "offline".into(),
        }
    }
}

impl TryFrom<Value> for DryRun {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        match value {
            Value::Bool(true) => Ok(Self::Reading),
            Value::String(text) if text == "offline" => Ok(Self::Offline),
            _ => Err("`dryRun` must be true or \"offline\""),
        }
    }
}

/// The calls of a rehearsed plan, and of the saved plans within it. Clones have the same list.
#[derive(Debug, Clone)]
pub(crate) struct Rehearsal {
    kind: DryRun,
    listed: Arc<Mutex<Listed>>,
    /// The saved plan whose calls are listed.
    plan: Option<Arc<str>>,
}

#[derive(Debug, Default)]
struct Listed {
    calls: Vec<Value>,
    /// Calls that were left out.
    more: usize,
    /// Calls with assumed answers, of all.
    assumed: usize,
    /// The check refused the plan, or one that it calls.
    is_refused: bool,
}

/// A call in the list; it counts as made until something else is noted.
pub(crate) struct Entry<'r> {
    rehearsal: &'r Rehearsal,
    /// None for one that is counted only.
    at: Option<usize>,
    arguments: Option<Value>,
}

impl Entry<'_> {
    /// Notes what the policies say of the call: that one is not made which they forbid, and of those that are made, only approvals are noted.
    pub(crate) fn decided(&mut self, rehearsed: &Rehearsed) {
        match rehearsed.decision() {
            Some(decision @ Decision::Forbid(_)) => {
                self.not_made();
                self.note("policy", policy(&decision, false));
            }
            Some(decision @ Decision::Ask { .. }) => {
                self.note("policy", policy(&decision, rehearsed.is_approved()));
            }
            _ => {}
        }
    }

    /// Notes that the call was not made, and that its answer is of `shape`.
    pub(crate) fn assume(&mut self, shape: Option<&ResultShape>, rehearsed: &Rehearsed) {
        let source = match shape {
            Some(ResultShape { observed: Some(answers), .. }) => {
                format!("the shape of {answers} earlier answers")
            }
            Some(_) => "the declared output schema".to_owned(),
            None => "nothing: the tool declares no output schema, and no answer was seen yet, so it is {}"
                .to_owned(),
        };
        self.assume_from(&source, rehearsed);
    }

    /// Notes that the call was not made, and the source of its answer.
    pub(crate) fn assume_from(&mut self, source: &str, rehearsed: &Rehearsed) {
        self.not_made();
        if let Some(decision) = rehearsed.decision() {
            self.note("policy", policy(&decision, rehearsed.is_approved()));
        }
        self.assumed(source);
    }

    /// Notes that the call was made and asks: its answer is assumed.
    pub(crate) fn asked(&mut self, asks: Option<&InputRequests>) {
        self.note("asks", asks.map(outline).unwrap_or_default().into());
        self.assumed("no answer: nobody is asked");
    }

    fn assumed(&mut self, source: &str) {
        self.note("answerFrom", source.into());
        self.rehearsal.listed().assumed += 1;
    }

    fn not_made(&mut self) {
        self.note("made", false.into());
        if let Some(arguments) = self.arguments.take() {
            self.note("arguments", arguments);
        }
    }

    fn note(&self, key: &str, value: Value) {
        if let Some(at) = self.at {
            self.rehearsal.listed().calls[at][key] = value;
        }
    }
}

/// Arguments of a listed call.
fn shown(arguments: &JsonObject) -> Value {
    let arguments = Value::Object(arguments.clone());
    if json_len(&arguments, LONGEST) <= LONGEST { arguments } else { json!("too long to be listed") }
}

/// A decision, as the list has it.
fn policy(decision: &Decision, is_approved: bool) -> Value {
    match decision {
        Decision::Permit => json!({"decision": "permit"}),
        Decision::Forbid(why) => {
            let mut policy = json!({"decision": "forbid", "reason": excerpt::name(&why.to_string())});
            if let Some(id) = why.policy() {
                policy["id"] = (&**id).into();
            }
            policy
        }
        Decision::Ask { policy, reason, approvers, .. } => {
            let approver = match approvers {
                Some(scope) => format!("somebody else with the scope `{scope}`"),
                None => "the caller".to_owned(),
            };
            let mut policy = json!({"decision": "ask", "id": &**policy, "reason": excerpt::name(reason), "approver": approver});
            if is_approved {
                policy["approved"] = true.into();
            }
            policy
        }
    }
}

impl Rehearsal {
    pub(crate) fn new(kind: DryRun) -> Self {
        Self { kind, listed: Arc::default(), plan: None }
    }

    /// The same, for the calls of `plan`.
    pub(crate) fn within(self, plan: String) -> Self {
        Self { plan: Some(plan.into()), ..self }
    }

    pub(crate) fn kind(&self) -> DryRun {
        self.kind
    }

    /// Returns `true` if content is read for real.
    pub(crate) fn reads(&self) -> bool {
        self.kind == DryRun::Reading
    }

    /// Returns `true` if `tool` is called for real.
    pub(crate) fn makes(&self, tool: &PermittedTool) -> bool {
        let is_read_only =
            tool.tool.annotations.as_ref().is_some_and(|hints| hints.read_only_hint == Some(true));
        self.reads() && is_read_only
    }

    /// Lists a call of the script, or content that it reads, with its checked arguments. What came of it is noted on the entry.
    pub(crate) fn list(&self, name: &str, arguments: Option<&JsonObject>) -> Entry<'_> {
        let mut call = json!({"name": name, "made": true});
        if let Some(plan) = &self.plan {
            call["plan"] = (&**plan).into();
        }
        let mut listed = self.listed();
        let at = listed.calls.len();
        let at = if at < MOST_LISTED {
            listed.calls.push(call);
            Some(at)
        } else {
            listed.more += 1;
            None
        };
        Entry { rehearsal: self, at, arguments: arguments.map(shown) }
    }

    /// Notes that the check refused the plan, or one that it calls.
    pub(crate) fn refuse(&self) {
        self.listed().is_refused = true;
    }

    fn listed(&self) -> MutexGuard<'_, Listed> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The report, as the reply has it.
    pub(crate) fn report(&self) -> Value {
        let (calls, more, not_made, is_refused) = {
            let listed = self.listed();
            (listed.calls.clone(), listed.more, listed.assumed, listed.is_refused)
        };
        let note = if is_refused {
            "the plan, or one that it calls, was refused before its first call"
        } else if not_made == 0 {
            "every call was made, or failed as it would"
        } else {
            "calls with answerFrom were checked, and their answers are assumed; what follows them, and the result, rests on that"
        };
        let mut report = json!({"calls": calls, "assumed": not_made, "certain": not_made == 0 && !is_refused, "note": note});
        if more > 0 {
            report["more"] = more.into();
        }
        report
    }
}
