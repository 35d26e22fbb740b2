//! The actions of steps: requests, and waiting for events.

use std::time::Duration;

use serde_json::{Value, json};

use super::{StepRunner, outcome::Outcome};
use crate::{
    matchers::text,
    protocol::{Notification, RpcRequest},
    suite::format::{List, Step},
};

impl StepRunner<'_> {
    /// Sends the request of a step, or waits for its event.
    pub(super) async fn act(&mut self, step: &Step) -> Result<Outcome, String> {
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
        if let Some(http) = &step.http {
            let timeout = step.timeout_ms.map_or(self.response_limit, Duration::from_millis);
            return self.http(step, http, timeout).await;
        }
        if let Some(url) = &step.http_calls {
            return self.http_calls(&fill(url)?, count, timeout).await;
        }
        if let Some(method) = &step.asked {
            let asked = mcp.wait_for_server_requests(&fill(method)?, count, timeout).await;
            let to_json = |one: RpcRequest| json!({"method": one.method, "params": one.params});
            return Outcome::of(asked.map(|all| all.into_iter().map(to_json).collect::<Value>()));
        }
        match &step.authenticate {
            Some(user) => {
                let caller = self.environment.caller(self.suite, Some(user), &self.variables)?;
                let headers = self.environment.headers(&caller);
                let outcome = mcp.authenticate_with(caller.token, headers).await;
                Outcome::of(outcome.map(|()| Value::Null))
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
}
