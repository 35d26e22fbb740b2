//! Scopes that a request lacks, known before it is dispatched: over HTTP the answer is 403 with a challenge (RFC 6750 §3.1).
//!
//! It asks the same view as the request itself, which is refused there in any case.

use std::net::IpAddr;

use gatewright_json::read_json;
use rmcp::model::Reference;
use serde::Deserialize;

use super::{Gateway, subscriptions::wanted};
use crate::{
    Caller, Denied, DirectAccess, codes,
    observe::{Begun, ExecutionWatch},
    off_thread,
};

#[derive(Deserialize)]
struct Message {
    method: String,
    #[serde(default)]
    params: Params,
}

/// Objects that a request may name.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Params {
    name: Option<String>,
    uri: Option<String>,
    task_id: Option<String>,
    r#ref: Option<Reference>,
    notifications: Option<Notifications>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Notifications {
    #[serde(default)]
    resource_subscriptions: Vec<String>,
}

impl Gateway {
    /// The scopes that `caller`, in the mode that its client asks for, lacks for the JSON-RPC request `message`. Empty for requests that name nothing, name nothing
    /// that exists, or name a tool that no direct call reaches. Observers are told of a `tools/call` that lacks some, which came from `address`.
    pub async fn missing_scopes(
        &self,
        caller: Caller,
        address: Option<IpAddr>,
        message: impl AsRef<[u8]> + Send + 'static,
    ) -> Vec<String> {
        let bytes = message.as_ref().len();
        let read = move || read_json::<Message>(&message);
        let Ok(message) = off_thread(bytes, read).await else { return Vec::new() };
        let mode = self.mode(caller.principal(), caller.mode());
        let caller = caller.in_mode(mode);
        match self.decide_early(&message.method, &message.params, &caller).await {
            Err(Denied::Scopes(missing)) => {
                self.tell_of_refusal(&message, &caller, address);
                missing
            }
            Ok(()) | Err(Denied::Unknown | Denied::Policies | Denied::Ended) => Vec::new(),
        }
    }

    fn tell_of_refusal(&self, message: &Message, caller: &Caller, address: Option<IpAddr>) {
        let observers = self.shared.invoker.observers();
        let Some(name) = message.params.name.as_ref().filter(|_| message.method == "tools/call") else {
            return;
        };
        if observers.is_empty() {
            return;
        }
        let known = self.shared.registry.view(caller).known_tool(name).map(|entry| entry.name.clone());
        let begun = Begun {
            is_known: known.is_some(),
            tool: known.unwrap_or_else(|| name.as_str().into()),
            is_meta: false,
            principal: caller.principal(),
            arguments: None,
            context: None,
            address,
            by_client: true,
            plan: None,
        };
        ExecutionWatch::begin(observers, begun).end_refused(codes::ACCESS_DENIED);
    }

    async fn decide_early(&self, method: &str, params: &Params, caller: &Caller) -> Result<(), Denied> {
        let registry = &self.shared.registry;
        match (method, params) {
            ("tools/call", Params { name: Some(name), .. }) => {
                let question = |view: &crate::View| {
                    let known = view.known_tool(name).ok_or(Denied::Unknown)?;
                    if self.direct_access(known, caller.mode()) == DirectAccess::Refused {
                        return Ok(());
                    }
                    view.tool(name).map(drop)
                };
                registry.decide(caller, question).await
            }
            ("prompts/get", Params { name: Some(name), .. }) => {
                registry.decide(caller, |view| view.prompt(name).map(drop)).await
            }
            ("resources/read" | "resources/subscribe", Params { uri: Some(uri), .. }) => {
                registry.decide(caller, |view| view.resource(uri).map(drop)).await
            }
            ("completion/complete", Params { r#ref: Some(reference), .. }) => {
                registry.decide(caller, |view| view.completion(reference).map(drop)).await
            }
            ("tasks/get" | "tasks/update" | "tasks/cancel", Params { task_id: Some(id), .. }) => {
                let task = self.shared.invoker.sealer().open_task(caller.principal(), id);
                registry.view(caller).task(task.ok_or(Denied::Unknown)?).map(drop)
            }
            ("subscriptions/listen", Params { notifications: Some(wanted), .. }) => {
                self.decide_subscriptions(&wanted.resource_subscriptions, caller).await
            }
            _ => Ok(()),
        }
    }

    /// Looks `uris` up one by one, in a view that asks the apps with catalogs of single callers once.
    async fn decide_subscriptions(&self, uris: &[String], caller: &Caller) -> Result<(), Denied> {
        // The request itself is refused for another reason.
        let Ok(uris) = wanted(uris) else { return Ok(()) };
        let registry = &self.shared.registry;
        let (mut view, mut is_ready) = (registry.view(caller), false);
        for uri in uris {
            tokio::task::consume_budget().await;
            let mut found = view.resource(uri).map(drop);
            if found == Err(Denied::Unknown) && !is_ready && view.may_grow() {
                (view, is_ready) = (registry.ready_view(caller).await, true);
                found = view.resource(uri).map(drop);
            }
            match found {
                Ok(()) | Err(Denied::Unknown | Denied::Policies | Denied::Ended) => {}
                denied => return denied,
            }
        }
        Ok(())
    }
}
