//! The checks of one client, in the order of the rules.

use std::sync::Mutex;

use gatewright_core::Revision;
use serde_json::Value;

use super::{
    base64, capabilities, lists::Lists, messages, revision::RevisionSchema, rule::Rule, strict::Strict,
    tools::Tools, uris, violation::Violation,
};
use crate::{
    base::{lock, text::shorten},
    protocol::{ClientError, RpcRequest, RpcResponse},
};

/// Violations that are kept of one client.
const MOST_KEPT: usize = 100;
/// Violations that one error tells.
const MOST_TOLD: usize = 10;

/// Checks the messages of the server that one client is connected to.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    strict: Strict,
    /// The capabilities of the client.
    offered: Value,
    /// Answers fail with no violation.
    observes: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    version: String,
    /// The capabilities of the server.
    declared: Value,
    tools: Tools,
    lists: Lists,
    all: Vec<Violation>,
    /// Violations that no call has failed with yet.
    untold: Vec<Violation>,
}

impl State {
    fn keep(&mut self, found: Vec<Violation>) {
        let room = MOST_KEPT.saturating_sub(self.all.len());
        self.untold.extend(found.iter().take(MOST_KEPT.saturating_sub(self.untold.len())).cloned());
        self.all.extend(found.into_iter().take(room));
    }
}

impl Checker {
    pub(crate) fn new(strict: Strict, offered: Value, observes: bool) -> Self {
        Self { strict, offered, observes, state: Mutex::default() }
    }

    /// Starts a connection: `version` was negotiated, and the server declared these capabilities.
    pub(crate) fn begin(&self, version: &str, declared: &Value) {
        let mut state = lock(&self.state);
        (state.version, state.declared) = (version.to_owned(), declared.clone());
        (state.tools, state.lists) = (Tools::default(), Lists::default());
    }

    /// Checks the response to a request.
    ///
    /// # Errors
    /// It breaks a rule, or a message before it does.
    pub(crate) fn answer(&self, request: &RpcRequest, response: &RpcResponse) -> Result<(), ClientError> {
        if self.strict.is_off() {
            return Ok(());
        }
        let mut state = lock(&self.state);
        let mut found = Vec::new();
        let method = request.method.as_str();
        match (envelope_problem(response), response.result()) {
            (Some(problem), _) => found.push(Violation::new(Rule::JsonRpc, method, "", problem)),
            (None, Some(result)) => state.check_result(request, result, &mut found),
            (None, None) => {}
        }
        found.retain(|one| self.strict.checks(one.rule));
        state.keep(found);
        if self.observes {
            return Ok(());
        }
        let untold = std::mem::take(&mut state.untold);
        drop(state);
        told(untold, Some(request), &response.raw).map_or(Ok(()), Err)
    }

    /// True if the output schema of the tool that was called is needed to check the result, and the tools were not listed. Returns
    /// true once for a connection. The Python SDK lists the tools in the same case.
    pub(crate) fn needs_tools(&self, request: &RpcRequest, response: &RpcResponse) -> bool {
        let succeeded = request.method == "tools/call"
            && response.result().is_some_and(|result| result["isError"] != true);
        let mut state = lock(&self.state);
        self.strict.checks(Rule::StructuredContent)
            && succeeded
            && has_output_schemas(&state.version)
            && state.declared.get("tools").is_some()
            && state.tools.begin_listing()
    }

    /// Checks a notification, or a request of the server.
    pub(crate) fn message(&self, message: &Value) {
        if self.strict.is_off() {
            return;
        }
        let mut state = lock(&self.state);
        // Before the handshake nothing is negotiated.
        if state.version.is_empty() {
            return;
        }
        let mut found = Vec::new();
        let method = message["method"].as_str().unwrap_or_default();
        if let Some(revision) = Revision::named(&state.version) {
            messages::check_message(RevisionSchema::of(revision), message, &mut found);
        }
        match message.get("id") {
            Some(_) => capabilities::check_request(&self.offered, method, &mut found),
            None => capabilities::check_notification(&state.declared, method, &mut found),
        }
        found.retain(|one| self.strict.checks(one.rule));
        state.keep(found);
    }

    /// Keeps a violation that a transport noticed.
    pub(crate) fn add(&self, violation: Violation) {
        if self.strict.checks(violation.rule) {
            lock(&self.state).keep(vec![violation]);
        }
    }

    /// All violations, oldest first; the first 100.
    pub(crate) fn all(&self) -> Vec<Violation> {
        lock(&self.state).all.clone()
    }

    /// Violations that no call has failed with.
    #[cfg(feature = "suites")]
    pub(crate) fn take(&self) -> Vec<Violation> {
        std::mem::take(&mut lock(&self.state).untold)
    }

    /// Forgets all violations.
    #[cfg(feature = "suites")]
    pub(crate) fn clear(&self) {
        let mut state = lock(&self.state);
        state.all.clear();
        state.untold.clear();
    }

    /// The error of violations that no call has failed with.
    pub(crate) fn untold(&self) -> Option<ClientError> {
        told(std::mem::take(&mut lock(&self.state).untold), None, &Value::Null)
    }
}

impl State {
    fn check_result(&mut self, request: &RpcRequest, result: &Value, found: &mut Vec<Violation>) {
        let method = request.method.as_str();
        if let Some(revision) = Revision::named(&self.version) {
            messages::check_result(RevisionSchema::of(revision), request, result, found);
        }
        match method {
            "tools/list" => self.tools.check_list(result, found),
            "tools/call" => {
                let name = request.params["name"].as_str().unwrap_or_default();
                self.tools.check_result(name, result, found);
            }
            _ => {}
        }
        base64::check(method, result, found);
        uris::check(method, result, found);
        capabilities::check_result(&self.version, &self.declared, method, result, found);
        self.lists.check(request, result, found);
    }
}

/// True for revisions in which tools have an `outputSchema`: from 2025-06-18 on.
fn has_output_schemas(version: &str) -> bool {
    version >= "2025-06-18"
}

/// The first violation of JSON-RPC 2.0 §5, not counting the id.
fn envelope_problem(response: &RpcResponse) -> Option<String> {
    if let Some(problem) = response.envelope_problem() {
        return Some(problem.to_owned());
    }
    let Some(error) = response.raw.get("error") else {
        return response.result().is_none().then(|| "it has neither `result` nor `error`".to_owned());
    };
    match (error["code"].as_i64(), error["message"].as_str()) {
        (None, _) => Some(format!("`error.code` is no integer: {}", shorten(&error["code"].to_string(), 80))),
        (_, None) => Some("`error.message` is no text".to_owned()),
        _ => None,
    }
}

/// The error that a call fails with, if there are violations.
fn told(violations: Vec<Violation>, request: Option<&RpcRequest>, answer: &Value) -> Option<ClientError> {
    let first = violations.first()?;
    let method = request.map_or_else(|| first.method.clone(), |request| request.method.clone());
    let mut lines: Vec<String> = Vec::new();
    for one in violations.iter().take(MOST_TOLD) {
        let of = if one.method == method { String::new() } else { format!("`{}`: ", one.method) };
        lines.push(format!("\n  {of}{one}"));
    }
    if violations.len() > MOST_TOLD {
        lines.push(format!("\n  … and {} more", violations.len() - MOST_TOLD));
    }
    let rules: std::collections::BTreeSet<&str> = violations.iter().map(|one| one.rule.name()).collect();
    let rules = rules.into_iter().collect::<Vec<_>>().join(", ");
    Some(ClientError::Shape {
        method,
        problem: format!("{}\n  accepted with `strict: {{ except: [{rules}] }}`", lines.concat()),
        answer: shorten(&answer.to_string(), 400),
    })
}

#[cfg(test)]
mod tests;
