//! The instances that hold calls open, as states of requests name them.

use std::net::IpAddr;

use rmcp::{
    ErrorData,
    model::{ClientCapabilities, JsonObject},
};
use serde_json::Value;

use crate::{AppFuture, Caller};

/// Tells other instances where a call is held open, and reaches them.
pub trait StateHome: Send + Sync + 'static {
    /// The state of a request, with the instance to which a retry belongs: `<state>.<instance>`. Whatever reads it trusts nothing but the
    /// state.
    fn mark(&self, state: &str) -> String;

    /// The state `to`, with the instance that the marked state `from` names; none if that names no instance.
    fn mark_as(&self, from: &str, to: &str) -> Option<String>;

    /// Has the instance that the marked state `state` names serve a request of `caller`, and returns its result. `None` if that is this instance, or one
    /// that is gone and did nothing. The default knows no other instances.
    fn pass_on<'a>(
        &'a self,
        _state: &'a str,
        _caller: &'a Caller,
        _request: PassedOn,
    ) -> AppFuture<'a, Option<Result<Value, ErrorData>>> {
        Box::pin(std::future::ready(None))
    }
}

/// A request of the era without sessions that this instance makes of another one.
#[derive(Debug)]
pub struct PassedOn {
    /// Its method.
    pub method: &'static str,
    /// Value of its header `Mcp-Name`: the name of a tool or the id of a task.
    pub name: String,
    /// Its parameters, without `_meta`.
    pub params: JsonObject,
    /// Capabilities of the caller's client.
    pub capabilities: ClientCapabilities,
    /// Address that the caller's request came from.
    pub address: Option<IpAddr>,
}
