//! Expectations of a suite: matchers by name, with an argument, inverted by `not`.

use serde_json::{Value, json};

use crate::{
    matchers::{Match, Registered, registered},
    protocol::{ClientError, RpcResponse},
};

/// An expectation: `name`, `name: argument`, or `not:` with one of these.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expectation {
    pub(super) name: String,
    pub(super) argument: Value,
    pub(super) negated: bool,
}

impl Expectation {
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        match value {
            Value::String(name) => Ok(Self { name: name.clone(), argument: Value::Null, negated: false }),
            Value::Object(one) if one.len() == 1 => {
                let (name, argument) = one.iter().next().ok_or("an expectation is empty")?;
                if name == "not" {
                    let inner = Self::parse(argument)?;
                    return Ok(Self { negated: !inner.negated, ..inner });
                }
                Ok(Self { name: name.clone(), argument: argument.clone(), negated: false })
            }
            other => Err(format!("an expectation is a name or a name with an argument, not {other}")),
        }
    }

    /// Creates the matcher, from an argument without variables.
    pub(super) fn matcher(&self, registered: &Registered) -> Result<Box<dyn Match>, String> {
        (registered.create)(&self.argument)
            .map_err(|problem| format!("`{}` {problem}, not {}", registered.name, self.argument))
    }

    /// Checks the argument as it is written. Text with variables may become any value.
    pub(super) fn check_argument(&self, registered: &Registered) -> Result<(), String> {
        match self.argument.as_str() {
            Some(text) if text.contains("${") => Ok(()),
            _ => self.matcher(registered).map(drop),
        }
    }
}

/// Finds a matcher. Case and underscores do not matter: `to_be_error`, `toBeError`.
pub(super) fn find(name: &str) -> Option<&'static Registered> {
    let normalized = |name: &str| name.replace('_', "").to_lowercase();
    let wanted = normalized(name);
    registered().iter().find(|one| normalized(&one.name) == wanted)
}

/// The outcome of a step that the server rejected: the JSON-RPC error in the response, if any, and the rejection.
pub(super) fn rejection(status: u16, error: &ClientError) -> RpcResponse {
    let mut raw = json!({});
    if let Some(error) = error.rpc_error() {
        raw = RpcResponse::failure(&error).raw;
    }
    raw["refused"] = json!({"status": status, "error": error.to_string()});
    RpcResponse { raw }
}
