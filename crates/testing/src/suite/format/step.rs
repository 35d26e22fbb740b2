//! The key `steps` of a test, and of what surrounds tests: a step.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{expectation::WrittenExpectations, http_step::HttpStep, users::User};

/// The objects a step lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::suite) enum List {
    Tools,
    Resources,
    ResourceTemplates,
    Prompts,
}

/// A step: exactly one action, and its expectations.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(in crate::suite) struct Step {
    /// Lists all objects of a type.
    pub(in crate::suite) list: Option<List>,
    /// Calls this tool.
    pub(in crate::suite) call: Option<String>,
    /// Reads this resource.
    pub(in crate::suite) read: Option<String>,
    /// Gets this prompt.
    pub(in crate::suite) get: Option<String>,
    /// Sends a request `{method, params, id?}`; text, or an object with `jsonrpc`, is sent as it is.
    pub(in crate::suite) raw: Option<Value>,
    /// Sends this notification.
    pub(in crate::suite) notify: Option<String>,
    /// Waits for `count` notifications of this method, counting earlier ones. The outcome is an array of them.
    pub(in crate::suite) wait: Option<String>,
    /// Subscribes to changes (`subscriptions/listen`, 2026-07-28), such as `{toolsListChanged: true}`.
    pub(in crate::suite) listen: Option<Map<String, Value>>,
    /// Waits for a line of the server's output that contains this text. The outcome is the line.
    pub(in crate::suite) log: Option<String>,
    /// Sends an HTTP request, such as `/.well-known/oauth-protected-resource`. The outcome is `{status, headers, text, json}`, with names of
    /// headers in lower case. Without expectations a status from 400 on is a failure.
    pub(in crate::suite) http: Option<HttpStep>,
    /// Waits for `count` HTTP calls of the server whose URL contains this text. The outcome is an array of them.
    pub(in crate::suite) http_calls: Option<String>,
    /// Waits for `count` requests of the server to the client of this method, such as `elicitation/create`, counting earlier ones. The
    /// outcome is an array of them.
    pub(in crate::suite) asked: Option<String>,
    /// Runs steps at the same time, with the same client. The outcome is `{succeeded, failed, results}`; if the step has expectations,
    /// steps in it may fail.
    pub(in crate::suite) parallel: Option<Vec<Step>>,
    /// Continues as this user.
    pub(in crate::suite) authenticate: Option<User>,
    /// Arguments of `call` and `get`, `params` of `notify`.
    #[serde(default, rename = "with")]
    pub(in crate::suite) arguments: Value,
    /// Progress token of `call`.
    pub(in crate::suite) progress: Option<Value>,
    /// The number of events that `wait`, `asked` and `httpCalls` wait for. Default 1.
    pub(in crate::suite) count: Option<usize>,
    /// Time limit of the step in milliseconds. Default 5000 for what waits for events; a response has the time that the test has,
    /// or 30000 if that is the default.
    #[schemars(range(min = 1))]
    pub(in crate::suite) timeout_ms: Option<u64>,
    /// Runs the step this often, one after the other: `${repetition}` counts from 1. Default 1.
    #[schemars(range(min = 1, max = 10000))]
    pub(in crate::suite) repeat: Option<u32>,
    /// Within `parallel`: starts the step this often at the same time; `${copy}` counts from 1. Default 1.
    #[schemars(range(min = 1, max = 1000))]
    pub(in crate::suite) copies: Option<u32>,
    /// Repeats the step until its expectations are met.
    pub(in crate::suite) retry: Option<RetrySection>,
    /// Sends this step as this user, with a client of its own.
    #[serde(rename = "as")]
    pub(in crate::suite) user: Option<User>,
    /// Expectations of the outcome: a matcher, several with their arguments, or a list of these.
    #[serde(default)]
    pub(in crate::suite) expect: WrittenExpectations,
    /// Variables for later steps, by JSON pointer into the outcome.
    #[serde(default)]
    pub(in crate::suite) save: BTreeMap<String, String>,
}

/// Repetition of a step until its expectations are met.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub(in crate::suite) struct RetrySection {
    /// Time until the last attempt begins, in milliseconds. Default 5000.
    #[schemars(range(min = 1))]
    pub(in crate::suite) timeout_ms: Option<u64>,
    /// Time between attempts in milliseconds. Default 100.
    pub(in crate::suite) every_ms: Option<u64>,
}

/// The actions of steps.
pub(in crate::suite) const ACTIONS: &[&str] = &[
    "list",
    "call",
    "read",
    "get",
    "raw",
    "notify",
    "wait",
    "listen",
    "log",
    "http",
    "httpCalls",
    "asked",
    "parallel",
    "authenticate",
];

impl Step {
    /// The actions this step names; a valid step names one.
    pub(in crate::suite) fn actions(&self) -> Vec<&'static str> {
        let named = |action: &&&str| match **action {
            "list" => self.list.is_some(),
            "call" => self.call.is_some(),
            "read" => self.read.is_some(),
            "get" => self.get.is_some(),
            "raw" => self.raw.is_some(),
            "notify" => self.notify.is_some(),
            "wait" => self.wait.is_some(),
            "listen" => self.listen.is_some(),
            "log" => self.log.is_some(),
            "http" => self.http.is_some(),
            "httpCalls" => self.http_calls.is_some(),
            "asked" => self.asked.is_some(),
            "parallel" => self.parallel.is_some(),
            "authenticate" => self.authenticate.is_some(),
            _ => false,
        };
        ACTIONS.iter().filter(named).copied().collect()
    }

    /// True if the step needs no MCP client.
    pub(in crate::suite) fn needs_no_client(&self) -> bool {
        match self.actions().as_slice() {
            ["http" | "httpCalls" | "log"] => true,
            ["parallel"] => self.parallel.iter().flatten().all(Self::needs_no_client),
            _ => false,
        }
    }

    /// True if what the step observes comes from the server without a request of the client, so that concurrent tests would see it, too.
    /// Over standard input and output (`is_stdio`) they share a connection.
    pub(in crate::suite) fn observes_server(&self, is_stdio: bool) -> bool {
        let waits = self.wait.as_ref().is_some_and(|method| method != "notifications/progress");
        let is_exact = self.raw.as_ref().is_some_and(|raw| raw.is_string() || raw.get("jsonrpc").is_some());
        self.http_calls.is_some()
            || (is_stdio && (waits || is_exact || self.asked.is_some() || self.notify.is_some()))
            || self.parallel.iter().flatten().any(|step| step.observes_server(is_stdio))
    }
}
