//! Tools and a prompt that ask the client through `input_required` results (SEP-2322).

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, InputRequiredResult, InputResponses, RequestStateCodec,
    SealOptions,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use super::tools::said;
use super::{Everything, capabilities};

type Answer = Result<CallToolResponse, ErrorData>;

/// Lifetime of a request state.
const STATE_TTL: Duration = Duration::from_secs(300);

/// A codec with a new key. The key comes from the standard library's hash seeds: good enough for
/// a fixture, whose states protect nothing.
pub(super) fn codec() -> RequestStateCodec {
    let key: Vec<u8> =
        (0..4).flat_map(|_| RandomState::new().build_hasher().finish().to_be_bytes()).collect();
    RequestStateCodec::new_unchecked(key)
}

/// A form with one field.
pub(super) fn form(message: &str, field: &str, kind: &str) -> Value {
    json!({
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": message,
            "requestedSchema": { "type": "object", "properties": { field: { "type": kind } }, "required": [field] },
        },
    })
}

fn sampling(prompt: &str, max_tokens: u32) -> Value {
    let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
    json!({ "method": "sampling/createMessage", "params": { "messages": [message], "maxTokens": max_tokens } })
}

fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}

/// The result that asks these things.
pub(super) fn asking(requests: Value, state: Option<String>) -> Result<InputRequiredResult, ErrorData> {
    let requests = serde_json::from_value(requests)
        .map_err(|error| ErrorData::internal_error(format!("the question does not fit: {error}"), None))?;
    Ok(InputRequiredResult::new(Some(requests), state))
}

/// The field of an accepted form, if the client sent one under this key and it is of use.
pub(super) fn filled<'a>(answers: Option<&'a InputResponses>, key: &str, field: &str) -> Option<&'a Value> {
    let answer = answers?.get(key)?;
    if answer.get("action")?.as_str()? != "accept" {
        return None;
    }
    answer.get("content")?.get(field)
}

impl Everything {
    fn seal(&self, tool: &str, step: &str) -> String {
        let options = SealOptions::new().associated_data(tool.as_bytes()).ttl(STATE_TTL);
        self.shared.codec.seal_with(step.as_bytes(), &options)
    }

    /// The step that the state was sealed for; nothing when the client sent no state.
    fn open(&self, request: &CallToolRequestParams) -> Result<Option<String>, ErrorData> {
        let Some(state) = &request.request_state else {
            return Ok(None);
        };
        let opened = self.shared.codec.open_with(state, request.name.as_bytes());
        let step =
            opened.map_err(|error| ErrorData::invalid_params(format!("requestState: {error}"), None))?;
        Ok(Some(String::from_utf8_lossy(&step).into_owned()))
    }

    /// Asks the client; what comes back is sealed with `step`, if there is one.
    fn ask(&self, tool: &str, requests: Value, step: Option<&str>) -> Answer {
        asking(requests, step.map(|step| self.seal(tool, step))).map(CallToolResponse::InputRequired)
    }

    pub(super) fn call_asking(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Answer {
        let tool = request.name.as_ref();
        let answers = request.input_responses.as_ref();
        let step = self.open(request)?;
        let ask = |requests: Value, step: Option<&str>| self.ask(tool, requests, step);
        match tool.trim_start_matches("test_input_required_result_") {
            "elicitation" => match filled(answers, "user_name", "name").and_then(text) {
                Some(name) => done(format!("Hello, {name}!")),
                None => ask(json!({ "user_name": name() }), None),
            },
            "sampling" => match sampled(answers, "capital_question") {
                Some(answer) => done(answer),
                None => {
                    ask(json!({ "capital_question": sampling("What is the capital of France?", 100) }), None)
                }
            },
            "list_roots" => match listed(answers) {
                Some(roots) => done(format!("Roots: {}", roots.join(", "))),
                None => ask(json!({ "client_roots": roots() }), None),
            },
            "request_state" | "tampered_state" => match (step, filled(answers, "confirm", "ok")) {
                (Some(step), Some(Value::Bool(ok))) if step == "asked" => {
                    done(format!("state-ok, confirmed: {ok}"))
                }
                _ => ask(json!({ "confirm": form("Please confirm", "ok", "boolean") }), Some("asked")),
            },
            "multiple_inputs" => self.multiple_inputs(tool, step.is_some(), answers),
            "multi_round" => self.multi_round(tool, step.as_deref(), answers),
            "capabilities" => self.only_what_the_client_can(tool, answers, context),
            _ => Err(ErrorData::invalid_params(format!("Unknown tool: {tool}"), None)),
        }
    }

    /// Asks three things at once.
    fn multiple_inputs(&self, tool: &str, has_state: bool, answers: Option<&InputResponses>) -> Answer {
        let ask = |requests: Value, step: Option<&str>| self.ask(tool, requests, step);
        let answered = (
            filled(answers, "user_name", "name").and_then(text),
            sampled(answers, "greeting"),
            listed(answers),
        );
        match (has_state, answered) {
            (true, (Some(name), Some(greeting), Some(roots))) => {
                done(format!("{greeting} {name}, {} roots", roots.len()))
            }
            _ => ask(
                json!({
                    "user_name": name(),
                    "greeting": sampling("Generate a greeting", 50),
                    "client_roots": roots(),
                }),
                Some("asked"),
            ),
        }
    }

    /// Asks twice, and carries the first answer in the state.
    fn multi_round(&self, tool: &str, step: Option<&str>, answers: Option<&InputResponses>) -> Answer {
        let ask = |requests: Value, step: Option<&str>| self.ask(tool, requests, step);
        match (step.map(|step| step.split_at(1)), answers) {
            (Some(("1", _)), Some(_)) if filled(answers, "step1", "name").and_then(text).is_some() => {
                let name = filled(answers, "step1", "name").and_then(text).unwrap_or_default();
                let question = form("Step 2: What is your favorite color?", "color", "string");
                ask(json!({ "step2": question }), Some(&format!("2{name}")))
            }
            (Some(("2", name)), _) => match filled(answers, "step2", "color").and_then(text) {
                Some(color) => done(format!("{name} likes {color}")),
                None => {
                    let question = form("Step 2: What is your favorite color?", "color", "string");
                    ask(json!({ "step2": question }), Some(&format!("2{name}")))
                }
            },
            _ => ask(json!({ "step1": form("Step 1: What is your name?", "name", "string") }), Some("1")),
        }
    }

    /// Asks only what the client declared that it can answer.
    fn only_what_the_client_can(
        &self,
        tool: &str,
        answers: Option<&InputResponses>,
        context: &RequestContext<RoleServer>,
    ) -> Answer {
        let ask = |requests: Value, step: Option<&str>| self.ask(tool, requests, step);
        let can = capabilities(context);
        let mut requests = serde_json::Map::new();
        if can.elicitation.is_some() && filled(answers, "user_name", "name").is_none() {
            requests.insert("user_name".into(), name());
        }
        if can.sampling.is_some() && sampled(answers, "greeting").is_none() {
            requests.insert("greeting".into(), sampling("Generate a greeting", 50));
        }
        match requests.is_empty() {
            true => done("Everything the client can answer was answered".into()),
            false => ask(Value::Object(requests), None),
        }
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// The form that asks for a name.
fn name() -> Value {
    form("What is your name?", "name", "string")
}

fn done(text: String) -> Answer {
    Ok(CallToolResponse::Complete(said(text)))
}

/// The text that the client's model answered under this key.
fn sampled(answers: Option<&InputResponses>, key: &str) -> Option<String> {
    let content = answers?.get(key)?.get("content")?;
    let block = content.as_array().map_or(Some(content), |blocks| blocks.first())?;
    block.get("text")?.as_str().map(str::to_owned)
}

/// The URIs of the client's roots.
fn listed(answers: Option<&InputResponses>) -> Option<Vec<String>> {
    let roots = answers?.get("client_roots")?.get("roots")?.as_array()?;
    Some(roots.iter().filter_map(|root| root.get("uri")?.as_str().map(str::to_owned)).collect())
}
