//! Running a step, and checking its outcome.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    environment::Environment,
    expectations::{self, Expectation},
    file::Suite,
    format::{List, MockEntry, MockError, Step},
    variables::Variables,
};
use crate::{
    client::{Mcp, MockOptions, Subscription, mock_response},
    matchers::{AsSubject, Match, Subject, apply, text},
    protocol::{ClientError, Notification, RpcError, RpcRequest, RpcResponse},
};

/// Runs steps with one client.
pub(super) struct StepRunner<'a> {
    pub(super) suite: &'a Suite,
    pub(super) environment: &'a Environment,
    pub(super) mcp: Mcp,
    pub(super) variables: Variables,
    pub(super) subscriptions: Vec<Subscription>,
}

/// The outcome of a step.
enum Outcome {
    Record(Box<dyn AsSubject + Send>),
    Failed(RpcResponse),
    Refused(RpcResponse),
}

impl Outcome {
    fn of<T: AsSubject + Send + 'static>(outcome: Result<T, ClientError>) -> Result<Self, String> {
        match outcome {
            Ok(record) => Ok(Self::Record(Box::new(record))),
            // An expectation may require the error.
            Err(ClientError::Rpc { error, .. }) => {
                Ok(Self::Failed(RpcResponse::failure(&error).with_id(&json!(0))))
            }
            Err(error @ ClientError::Refused { status, .. }) => {
                Ok(Self::Refused(expectations::rejection(status, &error)))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn json(value: Value) -> Self {
        Self::Record(Box::new(value))
    }

    fn subject(&self) -> Subject<'_> {
        match self {
            Self::Record(record) => record.as_subject(),
            Self::Failed(response) | Self::Refused(response) => response.as_subject(),
        }
    }

    /// A description of the failure, if the step failed.
    fn failure(&self) -> Option<String> {
        match (self, self.subject()) {
            (Self::Failed(response), _) => Some(format!("it failed: {}", response.raw["error"])),
            (Self::Refused(response), _) => Some(text(&response.raw["refused"]["error"])),
            (Self::Record(_), Subject::ToolResult(result)) if result.is_error => {
                Some(format!("the tool failed: {}", Subject::ToolResult(result)))
            }
            (Self::Record(_), Subject::RpcResponse(response)) if response.error().is_some() => {
                Some(format!("it failed: {}", response.raw["error"]))
            }
            _ => None,
        }
    }
}

/// An expectation that can be checked.
struct Expected {
    name: &'static str,
    negated: bool,
    matcher: Box<dyn Match>,
}

impl Expected {
    /// True if only a failed step can meet the expectation.
    fn is_failure(&self) -> bool {
        self.matcher.expects_success() == Some(self.negated)
    }
}

impl StepRunner<'_> {
    /// Adds a test's mocks.
    pub(super) fn mock(&self, mocks: &[MockEntry]) -> Result<(), String> {
        for one in mocks {
            let response = self.variables.fill(&one.response.clone().unwrap_or_default())?;
            let mut options = match (&one.tool, &one.resource, &one.error) {
                (Some(tool), _, Some(error)) => {
                    MockOptions::new("tools/call", self.mocked_error(error)?).params(json!({"name": tool}))
                }
                (Some(tool), _, None) => MockOptions::tool(tool, response),
                (None, Some(uri), None) => MockOptions::resource(uri, response),
                (None, uri, error) => {
                    let answer = match error {
                        Some(error) => self.mocked_error(error)?,
                        None => mock_response::success(response),
                    };
                    let options = MockOptions::new(one.method.as_deref().unwrap_or("resources/read"), answer);
                    uri.iter().fold(options, |options, uri| options.params(json!({"uri": uri})))
                }
            };
            if let Some(params) = &one.params {
                options = options.params(self.variables.fill(params)?);
            }
            if let Some(times) = one.times {
                options = options.times(times);
            }
            self.mcp.mock().add(options.delay(Duration::from_millis(one.delay_ms.unwrap_or(0))));
        }
        Ok(())
    }

    fn mocked_error(&self, error: &MockError) -> Result<RpcResponse, String> {
        let data = error.data.as_ref().map(|data| self.variables.fill(data)).transpose()?;
        Ok(RpcResponse::failure(&RpcError { code: error.code, message: error.message.clone(), data }))
    }

    /// Runs a step and checks its expectations; the error is the first that was not met.
    pub(super) async fn run(&mut self, step: &Step) -> Result<(), String> {
        let outcome = self.act(step).await?;
        let subject = outcome.subject();
        let expected: Vec<_> =
            step.expect.iter().map(|one| self.expected(&one.0)).collect::<Result<_, _>>()?;
        // A test of a raw response expects that it may be an error.
        let failure_expected = match step.raw {
            Some(_) => !expected.is_empty(),
            None => expected.iter().any(Expected::is_failure),
        };
        // Other expectations have nothing to check.
        if let (Outcome::Failed(_) | Outcome::Refused(_), Some(failure)) = (&outcome, outcome.failure())
            && step.raw.is_none()
            && !failure_expected
        {
            let meant = if matches!(outcome, Outcome::Refused(_)) { "toBeRefused" } else { "toBeError" };
            return Err(format!("{failure}\nexpect it with `{meant}` when it is meant"));
        }
        for Expected { name, negated, matcher } in &expected {
            apply(&**matcher, *negated, &subject).map_err(|mismatch| {
                let not = if *negated { "not " } else { "" };
                format!("{not}{name}\n{mismatch}")
            })?;
        }
        // An unexpected failure must not pass because the step has no expectations.
        if let (Some(failure), false) = (outcome.failure(), failure_expected) {
            return Err(format!("{failure}\nexpect it with `toBeError` when it is meant"));
        }
        let json = subject.json();
        for (name, pointer) in &step.save {
            let value = json
                .pointer(pointer)
                .ok_or_else(|| format!("`save`: there is nothing at `{pointer}` in {subject}"))?;
            self.variables.known.insert(name.clone(), value.clone());
        }
        Ok(())
    }

    /// An expectation with its variables filled in.
    fn expected(&self, written: &Value) -> Result<Expected, String> {
        let expectation = Expectation::parse(&self.variables.fill(written)?)?;
        let registered = expectations::find(&expectation.name)
            .ok_or_else(|| format!("there is no expectation `{}`", expectation.name))?;
        let matcher = expectation.matcher(registered)?;
        Ok(Expected { name: &registered.name, negated: expectation.negated, matcher })
    }

    /// Sends the request of a step, or waits for its event.
    async fn act(&mut self, step: &Step) -> Result<Outcome, String> {
        let mcp = self.mcp.clone();
        let arguments = self.variables.fill(&step.arguments)?;
        let fill = |text: &str| self.variables.text(text);
        let timeout = Duration::from_millis(step.timeout_ms.unwrap_or(5000));
        let count = step.count.unwrap_or(1);
        if let Some(list) = step.list {
            return match list {
                List::Tools => Outcome::of(mcp.tools().list().await),
                List::Resources => Outcome::of(mcp.resources().list().await),
                List::ResourceTemplates => Outcome::of(mcp.resources().list_templates().await),
                List::Prompts => Outcome::of(mcp.prompts().list().await),
            };
        }
        if let Some(tool) = &step.call {
            let arguments = if arguments.is_null() { json!({}) } else { arguments };
            let tool = fill(tool)?;
            let mut call = mcp.tools().call(&tool, arguments);
            if let Some(token) = &step.progress {
                call = call.progress(token.clone());
            }
            return Outcome::of(call.await);
        }
        if let Some(uri) = &step.read {
            return Outcome::of(mcp.resources().read(&fill(uri)?).await);
        }
        if let Some(prompt) = &step.get {
            return Outcome::of(mcp.prompts().get(&fill(prompt)?, arguments).await);
        }
        if let Some(raw) = &step.raw {
            return self.raw(raw).await;
        }
        if let Some(method) = &step.notify {
            let sent = mcp.raw().notify(&fill(method)?, arguments).await;
            return Outcome::of(sent.map(|()| Value::Null));
        }
        if let Some(method) = &step.wait {
            let found = mcp.notifications().wait_for(&fill(method)?, count, timeout).await;
            let to_json = |one: Notification| json!({"method": one.method, "params": one.params});
            return Outcome::of(found.map(|all| all.into_iter().map(to_json).collect::<Value>()));
        }
        if let Some(filter) = &step.listen {
            let filter = self.variables.fill(&Value::Object(filter.clone()))?;
            return match mcp.listen(filter).await {
                Ok(subscription) => {
                    let started = json!({"id": subscription.id(), "notifications": subscription.accepted()});
                    self.subscriptions.push(subscription);
                    Ok(Outcome::json(started))
                }
                Err(error) => Outcome::of::<Value>(Err(error)),
            };
        }
        if let Some(part) = &step.log {
            let line = self.environment.server.wait_for_log(&fill(part)?, timeout).await;
            return line.map(|line| Outcome::json(line.into())).map_err(|error| error.to_string());
        }
        if let Some(url) = &step.http_calls {
            return self.http_calls(&fill(url)?, count, timeout).await;
        }
        match &step.authenticate {
            Some(user) => {
                let token = self.environment.token(self.suite, user, &self.variables)?;
                Outcome::of(mcp.authenticate(token).await.map(|()| Value::Null))
            }
            None => Err("the step does nothing".into()),
        }
    }

    async fn raw(&self, raw: &Value) -> Result<Outcome, String> {
        let raw = self.variables.fill(raw)?;
        let channel = self.mcp.raw();
        match &raw {
            Value::String(text) => Outcome::of(channel.send(text).await),
            message if message["jsonrpc"].is_string() => {
                Outcome::of(channel.send(&message.to_string()).await)
            }
            message => {
                let request = RpcRequest::new(text(&message["method"]), message["params"].clone());
                let id = message.get("id").cloned().unwrap_or_else(|| "raw".into());
                Outcome::of(channel.exchange(request.id(id)).await)
            }
        }
    }

    async fn http_calls(&self, url: &str, count: usize, timeout: Duration) -> Result<Outcome, String> {
        let http = self.environment.http.as_ref().ok_or("the suite has no `httpMocks`")?;
        let matching = || http.calls().into_iter().filter(|call| call.url.contains(url)).collect::<Vec<_>>();
        let enough = async {
            while matching().len() < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let in_time = tokio::time::timeout(timeout, enough).await.is_ok();
        let calls = matching();
        if !in_time {
            let all: Vec<String> = http.calls().iter().map(ToString::to_string).collect();
            return Err(format!(
                "{count} calls with `{url}` in the URL did not come within {timeout:?}, {} did; all calls: {all:?}",
                calls.len()
            ));
        }
        // Headers by name: easier to expect than pairs.
        let listed = calls.iter().map(|call| {
            let headers: serde_json::Map<String, Value> =
                call.headers.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
            json!({"url": call.url, "method": call.method, "headers": headers, "body": call.body, "json": call.json()})
        });
        Ok(Outcome::json(listed.collect()))
    }
}
