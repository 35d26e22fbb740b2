//! Rehearsals: a plan runs, read-only tools are called for real, and every other call is checked and listed in place of being made. Saved plans that it
//! calls run as rehearsals, too.

use std::sync::{Arc, Mutex, PoisonError};

use gatewright_core::{
    PermittedTool, outline,
    rmcp::model::{InputRequests, JsonObject},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{examples, results::json_len, shapes::ResultShape};

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

    /// Lists a call that was made.
    pub(crate) fn made(&self, name: &str) {
        self.list(json!({"name": name, "made": true}));
    }

    /// Lists a call that was not made, and returns the value in place of its answer.
    pub(crate) fn assume(
        &self,
        tool: &PermittedTool,
        arguments: &JsonObject,
        shape: Option<&ResultShape>,
    ) -> Value {
        let assumed = shape.and_then(|shape| examples::result(tool.entry(), &shape.schema));
        let source = match (shape, &assumed) {
            (Some(ResultShape { observed: Some(answers), .. }), Some(_)) => {
                format!("the shape of {answers} earlier answers")
            }
            (Some(_), Some(_)) => "the declared output schema".to_owned(),
            _ => "nothing: the tool declares no output schema, and no answer was seen yet, so it is {}"
                .to_owned(),
        };
        let arguments = Value::Object(arguments.clone());
        let shown =
            if json_len(&arguments, LONGEST) <= LONGEST { arguments } else { json!("too long to be listed") };
        self.list(json!({"name": &*tool.name, "made": false, "arguments": shown, "answerFrom": source}));
        assumed.unwrap_or_else(|| json!({}))
    }

    /// Lists a call that was made and asks: the value in place of its answer.
    pub(crate) fn asked(
        &self,
        tool: &PermittedTool,
        asks: &InputRequests,
        shape: Option<&ResultShape>,
    ) -> Value {
        let assumed = shape.and_then(|shape| examples::result(tool.entry(), &shape.schema));
        self.list(json!({"name": &*tool.name, "made": true, "asks": outline(asks), "answerFrom": "no answer: nobody is asked"}));
        assumed.unwrap_or_else(|| json!({}))
    }

    /// Lists content that was read and asks.
    pub(crate) fn asked_for_content(&self, name: &str, asks: Option<&InputRequests>) {
        let asks = asks.map(outline).unwrap_or_default();
        self.list(
            json!({"name": name, "made": true, "asks": asks, "answerFrom": "no answer: nobody is asked"}),
        );
    }

    /// Lists content that was not read.
    pub(crate) fn assume_content(&self, name: &str) {
        self.list(json!({"name": name, "made": false, "answerFrom": "nothing: it was not read"}));
    }

    fn list(&self, mut call: Value) {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if listed.calls.len() == MOST_LISTED {
            listed.more += 1;
            return;
        }
        if let Some(plan) = &self.plan {
            call["plan"] = (&**plan).into();
        }
        listed.calls.push(call);
    }

    /// The report, as the reply has it.
    pub(crate) fn report(&self) -> Value {
        let (calls, more) = {
            let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
            (listed.calls.clone(), listed.more)
        };
        let not_made = calls.iter().filter(|call| call.get("answerFrom").is_some()).count() + more;
        let note = if not_made == 0 {
            "every call was made: they only read"
        } else {
            "calls with answerFrom were checked, and their answers are assumed; what follows them, and the result, rests on that"
        };
        let mut report = json!({"calls": calls, "assumed": not_made, "certain": not_made == 0, "note": note});
        if more > 0 {
            report["more"] = more.into();
        }
        report
    }
}
