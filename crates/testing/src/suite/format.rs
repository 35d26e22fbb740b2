//! The keys of a suite file.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::run::EXPECTATIONS;
use crate::Transport;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct SuiteFile {
    pub(super) name: Option<String>,
    pub(super) server: ServerSection,
    /// Starts a mock authorization server beside the server.
    #[serde(default)]
    pub(super) auth: bool,
    #[serde(default)]
    pub(super) variables: Map<String, Value>,
    #[serde(default)]
    pub(super) http_mocks: Vec<HttpMockEntry>,
    pub(super) tests: Vec<TestEntry>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ServerSection {
    #[serde(default)]
    pub(super) command: String,
    #[serde(default)]
    pub(super) args: Vec<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) transport: Transport,
    pub(super) port: Option<u16>,
    pub(super) path: Option<String>,
    pub(super) ready_path: Option<String>,
    pub(super) base_url: Option<String>,
    pub(super) startup_timeout_ms: Option<u64>,
    pub(super) protocol_version: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct HttpMockEntry {
    pub(super) url: String,
    pub(super) method: Option<String>,
    pub(super) status: Option<u16>,
    pub(super) json: Option<Value>,
    pub(super) text: Option<String>,
    pub(super) times: Option<u32>,
    pub(super) delay_ms: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TestEntry {
    pub(super) name: String,
    pub(super) skip: Option<String>,
    /// Who the client is: `admin`, `user`, `readOnly`, or a subject with scopes.
    #[serde(rename = "as")]
    pub(super) user: Option<User>,
    #[serde(default)]
    pub(super) mocks: Vec<MockEntry>,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum User {
    Named(String),
    Described {
        sub: String,
        #[serde(default)]
        scopes: Vec<String>,
    },
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct MockEntry {
    pub(super) tool: Option<String>,
    pub(super) resource: Option<String>,
    pub(super) response: Option<Value>,
    pub(super) error: Option<MockError>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MockError {
    pub(super) code: i64,
    pub(super) message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum List {
    Tools,
    Resources,
    ResourceTemplates,
    Prompts,
}

/// One step: exactly one of `list`, `call`, `read`, `get` and `raw`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Step {
    pub(super) list: Option<List>,
    pub(super) call: Option<String>,
    pub(super) read: Option<String>,
    pub(super) get: Option<String>,
    /// A request, or a text that is sent as it is.
    pub(super) raw: Option<Value>,
    /// Arguments of `call` and `get`.
    #[serde(default, rename = "with")]
    pub(super) arguments: Value,
    #[serde(default)]
    pub(super) expect: Vec<Value>,
    /// Variables for later steps, by JSON pointer into the result.
    #[serde(default)]
    pub(super) save: BTreeMap<String, String>,
}

impl Step {
    pub(super) fn kinds(&self) -> Vec<&'static str> {
        let all = [
            ("list", self.list.is_some()),
            ("call", self.call.is_some()),
            ("read", self.read.is_some()),
            ("get", self.get.is_some()),
            ("raw", self.raw.is_some()),
        ];
        all.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
    }
}

/// An expectation: its name without case and underscores, its argument, and whether it is turned round.
pub(super) fn expectation(value: &Value) -> Result<(String, Value, bool), String> {
    let plain = |name: &str| name.replace('_', "").to_lowercase();
    match value {
        Value::String(name) => Ok((plain(name), Value::Null, false)),
        Value::Object(one) if one.len() == 1 => {
            let (name, argument) = one.iter().next().ok_or("an expectation is empty")?;
            if name == "not" {
                let (name, argument, negated) = expectation(argument)?;
                return Ok((name, argument, !negated));
            }
            Ok((plain(name), argument.clone(), false))
        }
        other => Err(format!("an expectation is a name or a name with an argument, not {other}")),
    }
}

impl SuiteFile {
    /// Finds what the types do not: steps of no or two kinds, expectations that do not exist.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.server.command.is_empty() && self.server.base_url.is_none() {
            return Err("`server` needs `command` or `baseUrl`".into());
        }
        for test in &self.tests {
            for (number, step) in test.steps.iter().enumerate() {
                let place = format!("test `{}`, step {}", test.name, number + 1);
                let kinds = step.kinds();
                if kinds.len() != 1 {
                    return Err(format!(
                        "{place}: a step is exactly one of `list`, `call`, `read`, `get` and `raw`, this one is {kinds:?}"
                    ));
                }
                for one in &step.expect {
                    let (name, ..) = expectation(one).map_err(|problem| format!("{place}: {problem}"))?;
                    let known = |(known, _): &(&str, _)| known.to_lowercase() == name;
                    if !EXPECTATIONS.iter().any(known) {
                        let names = EXPECTATIONS.iter().map(|(name, _)| *name);
                        let near = crate::expect::nearest(&name, names)
                            .map(|near| format!("; did you mean `{near}`?"));
                        return Err(format!(
                            "{place}: there is no expectation `{name}`{}",
                            near.unwrap_or_default()
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}
