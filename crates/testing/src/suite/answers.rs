//! Answers to requests of the server to the client, by rule.

use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};

use super::{
    format::{AnswerEntry, ElicitationAction, ElicitationSection, TestEntry},
    variables::Variables,
};
use crate::{
    base::lock,
    client::{ElicitResult, Mcp},
    protocol::RpcError,
};

/// The rules of a test and its suite, in the order in which they are tried.
#[derive(Clone, Default)]
pub(super) struct Answers {
    rules: Arc<Vec<Rule>>,
}

struct Rule {
    method: String,
    when: Option<Value>,
    /// Uses left; unlimited if absent.
    left: Mutex<Option<u32>>,
    answer: Result<Value, RpcError>,
}

impl Answers {
    /// The answers of a test, then those of the suite.
    pub(super) fn of(
        test: Option<&TestEntry>,
        suite: &[AnswerEntry],
        variables: &Variables,
    ) -> Result<Self, String> {
        let mut rules = Vec::new();
        for entry in test.into_iter().flat_map(|test| &test.answers) {
            rules.push(rule(entry, variables)?);
        }
        if let Some(section) = test.and_then(|test| test.elicitation.as_ref()) {
            rules.push(Rule::always("elicitation/create", elicitation(section, variables)?));
        }
        if let Some(answer) = test.and_then(|test| test.sampling.as_ref()) {
            rules.push(Rule::always("sampling/createMessage", sampling(&variables.fill(answer)?)));
        }
        for entry in suite {
            rules.push(rule(entry, variables)?);
        }
        Ok(Self { rules: Arc::new(rules) })
    }

    fn find(&self, method: &str, params: &Value) -> Option<Result<Value, RpcError>> {
        let matching = self.rules.iter().filter(|rule| {
            rule.method == method && rule.when.as_ref().is_none_or(|when| is_within(when, params))
        });
        for rule in matching {
            match &mut *lock(&rule.left) {
                Some(0) => continue,
                Some(left) => *left -= 1,
                None => {}
            }
            return Some(rule.answer.clone());
        }
        None
    }

    /// Lets a client answer by these rules.
    pub(super) fn install(&self, mcp: &Mcp) {
        if !self.rules.is_empty() {
            let answers = self.clone();
            mcp.answer_with(move |method, params| answers.find(method, params));
        }
    }
}

impl Rule {
    fn always(method: &str, answer: Value) -> Self {
        Self { method: method.to_owned(), when: None, left: Mutex::new(None), answer: Ok(answer) }
    }
}

fn rule(entry: &AnswerEntry, variables: &Variables) -> Result<Rule, String> {
    let mut rule = match entry {
        AnswerEntry { elicitation: Some(section), .. } => {
            Rule::always("elicitation/create", elicitation(section, variables)?)
        }
        AnswerEntry { sampling: Some(answer), .. } => {
            Rule::always("sampling/createMessage", sampling(&variables.fill(answer)?))
        }
        AnswerEntry { roots: Some(roots), .. } => {
            let roots = roots.iter().map(|root| Ok(root_of(&variables.fill(root)?)));
            Rule::always("roots/list", json!({"roots": roots.collect::<Result<Vec<_>, String>>()?}))
        }
        AnswerEntry { error, method, .. } => {
            let mut rule = Rule::always(method.as_deref().unwrap_or_default(), Value::Null);
            if let Some(error) = error {
                let data = error.data.as_ref().map(|data| variables.fill(data)).transpose()?;
                rule.answer =
                    Err(RpcError { code: error.code, message: variables.text(&error.message)?, data });
            }
            rule
        }
    };
    rule.when = entry.when.as_ref().map(|when| variables.fill(when)).transpose()?;
    rule.left = Mutex::new(entry.times);
    Ok(rule)
}

fn elicitation(section: &ElicitationSection, variables: &Variables) -> Result<Value, String> {
    let content = variables.fill(&Value::Object(section.content.clone()))?;
    Ok(match section.action {
        ElicitationAction::Accept => ElicitResult::Accept(content),
        ElicitationAction::Decline => ElicitResult::Decline,
        ElicitationAction::Cancel => ElicitResult::Cancel,
    }
    .into())
}

/// A `CreateMessageResult`, also of a text alone.
fn sampling(answer: &Value) -> Value {
    match answer {
        Value::String(text) => json!({
            "role": "assistant",
            "content": {"type": "text", "text": text},
            "model": "gatewright-testing",
            "stopReason": "endTurn",
        }),
        whole => whole.clone(),
    }
}

/// A root, also of a URI alone.
fn root_of(root: &Value) -> Value {
    match root {
        Value::String(uri) => Value::Object(Map::from_iter([("uri".to_owned(), uri.as_str().into())])),
        whole => whole.clone(),
    }
}

/// True if `params` contain all of `when`; a text is contained in a longer one.
fn is_within(when: &Value, params: &Value) -> bool {
    match (when, params) {
        (Value::Object(when), Value::Object(params)) => {
            when.iter().all(|(key, value)| params.get(key).is_some_and(|found| is_within(value, found)))
        }
        (Value::Array(when), Value::Array(params)) => {
            when.iter().all(|value| params.iter().any(|found| is_within(value, found)))
        }
        (Value::String(part), Value::String(text)) => text.contains(part.as_str()),
        (when, found) => when == found,
    }
}
