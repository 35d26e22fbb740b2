//! Taking one step, and judging what it gave.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Suite,
    expectations::{self, Known, Written, text},
    format::{Expectation, List, MockEntry, MockError, Step},
    stage::Stage,
    variables::Variables,
};
use crate::{
    AsSubject, ClientError, Mcp, MockOptions, RpcError, RpcRequest, RpcResponse, Subject, Subscription,
    expect::settle, mock_response,
};

/// One client on its way through the steps.
pub(super) struct Actor<'a> {
    pub(super) suite: &'a Suite,
    pub(super) stage: &'a Stage,
    pub(super) mcp: Mcp,
    pub(super) variables: Variables,
    pub(super) subscriptions: Vec<Subscription>,
}

/// What a step gave.
enum Got {
    Record(Box<dyn AsSubject + Send>),
    Failed(RpcResponse),
    Refused(RpcResponse),
}

impl Got {
    fn of<T: AsSubject + Send + 'static>(outcome: Result<T, ClientError>) -> Result<Self, String> {
        match outcome {
            Ok(record) => Ok(Self::Record(Box::new(record))),
            // An expectation may want the error.
            Err(ClientError::Rpc { error, .. }) => {
                Ok(Self::Failed(RpcResponse::failure(&error).with_id(&json!(0))))
            }
            Err(error @ ClientError::Refused { status, .. }) => {
                Ok(Self::Refused(expectations::refusal(status, &error)))
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

    /// Why it is a failure, if it is one.
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

impl Actor<'_> {
    /// Adds a test's mocks.
    pub(super) fn mock(&self, mocks: &[MockEntry]) -> Result<(), String> {
        for one in mocks {
            let response = self.variables.fill(&one.response.clone().unwrap_or_default())?;
            let mut options = match (&one.tool, &one.resource, &one.error) {
                (Some(tool), _, Some(error)) => {
                    MockOptions::new("tools/call", self.failure(error)?).params(json!({"name": tool}))
                }
                (Some(tool), _, None) => MockOptions::tool(tool, response),
                (None, Some(uri), None) => MockOptions::resource(uri, response),
                (None, uri, error) => {
                    let answer = match error {
                        Some(error) => self.failure(error)?,
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

    fn failure(&self, error: &MockError) -> Result<RpcResponse, String> {
        let data = error.data.as_ref().map(|data| self.variables.fill(data)).transpose()?;
        Ok(RpcResponse::failure(&RpcError { code: error.code, message: error.message.clone(), data }))
    }

    /// Takes a step; the error says what did not hold.
    pub(super) async fn take(&mut self, step: &Step) -> Result<(), String> {
        let got = self.act(step).await?;
        let subject = got.subject();
        let expected: Vec<_> = step.expect.iter().map(|one| self.expected(one)).collect::<Result<_, _>>()?;
        // Whoever looks at a raw answer knows that it may be an error.
        let about_failure = match step.raw {
            Some(_) => !expected.is_empty(),
            None => expected.iter().any(|(known, written)| known.is_about_failure(written.negated)),
        };
        // There is nothing to compare with an expectation of something else.
        if let (Got::Failed(_) | Got::Refused(_), Some(failure)) = (&got, got.failure())
            && step.raw.is_none()
            && !about_failure
        {
            let meant = if matches!(got, Got::Refused(_)) { "toBeRefused" } else { "toBeError" };
            return Err(format!("{failure}\nexpect it with `{meant}` when it is meant"));
        }
        for (known, written) in &expected {
            settle((known.check)(&subject, &written.argument), written.negated, &subject).map_err(
                |mismatch| {
                    let not = if written.negated { "not " } else { "" };
                    format!("{not}{}\n{mismatch}", known.name)
                },
            )?;
        }
        // A failure nobody expected must not pass for want of an expectation.
        if let (Some(failure), false) = (got.failure(), about_failure) {
            return Err(format!("{failure}\nexpect it with `toBeError` when it is meant"));
        }
        let whole = subject.json();
        for (name, pointer) in &step.save {
            let value = whole
                .pointer(pointer)
                .ok_or_else(|| format!("`save`: there is nothing at `{pointer}` in {subject}"))?;
            self.variables.known.insert(name.clone(), value.clone());
        }
        Ok(())
    }

    /// An expectation with its variables filled in.
    fn expected(&self, one: &Expectation) -> Result<(&'static Known, Written), String> {
        let written = expectations::read(&self.variables.fill(&one.0)?)?;
        let known = expectations::find(&written.name)
            .ok_or_else(|| format!("there is no expectation `{}`", written.name))?;
        known
            .argument
            .check(&written.argument, true)
            .map_err(|problem| format!("`{}` {problem}, not {}", known.name, written.argument))?;
        Ok((known, written))
    }

    async fn act(&mut self, step: &Step) -> Result<Got, String> {
        let mcp = self.mcp.clone();
        let arguments = self.variables.fill(&step.arguments)?;
        let fill = |text: &str| self.variables.text(text);
        let timeout = Duration::from_millis(step.timeout_ms.unwrap_or(5000));
        let count = step.count.unwrap_or(1);
        if let Some(list) = step.list {
            return match list {
                List::Tools => Got::of(mcp.tools().list().await),
                List::Resources => Got::of(mcp.resources().list().await),
                List::ResourceTemplates => Got::of(mcp.resources().list_templates().await),
                List::Prompts => Got::of(mcp.prompts().list().await),
            };
        }
        if let Some(tool) = &step.call {
            let arguments = if arguments.is_null() { json!({}) } else { arguments };
            let tool = fill(tool)?;
            let mut call = mcp.tools().call(&tool, arguments);
            if let Some(token) = &step.progress {
                call = call.progress(token.clone());
            }
            return Got::of(call.await);
        }
        if let Some(uri) = &step.read {
            return Got::of(mcp.resources().read(&fill(uri)?).await);
        }
        if let Some(prompt) = &step.get {
            return Got::of(mcp.prompts().get(&fill(prompt)?, arguments).await);
        }
        if let Some(raw) = &step.raw {
            return self.raw(raw).await;
        }
        if let Some(method) = &step.notify {
            let sent = mcp.raw().notify(&fill(method)?, arguments).await;
            return Got::of(sent.map(|()| Value::Null));
        }
        if let Some(method) = &step.wait {
            let found = mcp.notifications().wait_for(&fill(method)?, count, timeout).await;
            let shown = |one: crate::Notification| json!({"method": one.method, "params": one.params});
            return Got::of(found.map(|all| all.into_iter().map(shown).collect::<Value>()));
        }
        if let Some(filter) = &step.listen {
            let filter = self.variables.fill(&Value::Object(filter.clone()))?;
            return match mcp.listen(filter).await {
                Ok(subscription) => {
                    let shown = json!({"id": subscription.id(), "notifications": subscription.agreed()});
                    self.subscriptions.push(subscription);
                    Ok(Got::json(shown))
                }
                Err(error) => Got::of::<Value>(Err(error)),
            };
        }
        if let Some(part) = &step.log {
            let line = self.stage.server.wait_for_log(&fill(part)?, timeout).await;
            return line.map(|line| Got::json(line.into())).map_err(|error| error.to_string());
        }
        if let Some(url) = &step.http_calls {
            return self.http_calls(&fill(url)?, count, timeout).await;
        }
        match &step.authenticate {
            Some(user) => {
                let token = self.stage.token(self.suite, user, &self.variables)?;
                Got::of(mcp.authenticate(token).await.map(|()| Value::Null))
            }
            None => Err("the step does nothing".into()),
        }
    }

    async fn raw(&self, raw: &Value) -> Result<Got, String> {
        let raw = self.variables.fill(raw)?;
        let channel = self.mcp.raw();
        match &raw {
            Value::String(text) => Got::of(channel.send(text).await),
            message if message["jsonrpc"].is_string() => Got::of(channel.send(&message.to_string()).await),
            message => {
                let request = RpcRequest::new(text(&message["method"]), message["params"].clone());
                let id = message.get("id").cloned().unwrap_or_else(|| "raw".into());
                Got::of(channel.exchange(request.id(id)).await)
            }
        }
    }

    async fn http_calls(&self, url: &str, count: usize, timeout: Duration) -> Result<Got, String> {
        let http = self.stage.http.as_ref().ok_or("the suite has no `httpMocks`")?;
        let seen = || http.calls().into_iter().filter(|call| call.url.contains(url)).collect::<Vec<_>>();
        let enough = async {
            while seen().len() < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let in_time = tokio::time::timeout(timeout, enough).await.is_ok();
        let calls = seen();
        if !in_time {
            let all: Vec<String> = http.calls().iter().map(ToString::to_string).collect();
            return Err(format!(
                "{count} calls with `{url}` in the URL did not come within {timeout:?}, {} did; all calls: {all:?}",
                calls.len()
            ));
        }
        // Headers by name: easier to expect than pairs.
        let shown = calls.iter().map(|call| {
            let headers: serde_json::Map<String, Value> =
                call.headers.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
            json!({"url": call.url, "method": call.method, "headers": headers, "body": call.body, "json": call.json()})
        });
        Ok(Got::json(shown.collect()))
    }
}
