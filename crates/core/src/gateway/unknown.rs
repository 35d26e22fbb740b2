//! Requests that `rmcp` could not read: an unknown method, or a known one whose params do not fit.

use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CancelTaskParams, CompleteRequestParams, CustomRequest, ErrorCode,
        GetPromptRequestParams, GetTaskParams, InitializeRequestParams, PaginatedRequestParams,
        ReadResourceRequestParams, SetLevelRequestParams, SubscribeRequestParams, UnsubscribeRequestParams,
        UpdateTaskParams,
    },
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Era, names::clipped};

/// Every method that clients may ask for. Others are unknown, and observers do not get their names.
pub const METHODS: [&str; 18] = [
    "initialize",
    "ping",
    "tools/call",
    "tools/list",
    "prompts/get",
    "prompts/list",
    "resources/read",
    "resources/list",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "logging/setLevel",
    "server/discover",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
];

/// Name of a method for observers; `_OTHER` for one that is not served.
pub(super) fn label(method: &str) -> &'static str {
    METHODS.into_iter().find(|served| *served == method).unwrap_or("_OTHER")
}

/// -32602 with what is wrong for a method there is, -32601 for the rest (JSON-RPC 2.0 §5.1).
pub(super) fn refusal(request: &CustomRequest, era: Era) -> ErrorData {
    let params = request.params.clone().unwrap_or_else(|| Value::Object(Default::default()));
    let problem = match request.method.as_str() {
        name if !era.has_method(name) => return method(name),
        "initialize" => problem::<InitializeRequestParams>(params),
        "tools/call" => problem::<CallToolRequestParams>(params),
        "prompts/get" => problem::<GetPromptRequestParams>(params),
        "resources/read" => problem::<ReadResourceRequestParams>(params),
        "resources/subscribe" => problem::<SubscribeRequestParams>(params),
        "resources/unsubscribe" => problem::<UnsubscribeRequestParams>(params),
        "completion/complete" => problem::<CompleteRequestParams>(params),
        "logging/setLevel" => problem::<SetLevelRequestParams>(params),
        "tasks/get" => problem::<GetTaskParams>(params),
        "tasks/update" => problem::<UpdateTaskParams>(params),
        "tasks/cancel" => problem::<CancelTaskParams>(params),
        "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => {
            problem::<PaginatedRequestParams>(params)
        }
        name => return method(name),
    };
    ErrorData::invalid_params(
        format!("the params of `{}` do not fit: {}", request.method, clipped(&problem)),
        None,
    )
}

/// The error for a method that is not served.
pub(super) fn method(name: &str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("unknown method `{}`", clipped(name)), None)
}

fn problem<T: DeserializeOwned>(params: Value) -> String {
    match serde_json::from_value::<T>(params) {
        Err(error) => error.to_string(),
        Ok(_) => "an unexpected field or type".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_keeps_its_name_for_observers_when_its_params_do_not_fit() {
        let source = include_str!("handler.rs");
        let calls = ["self.operate(\"", "self.watch_stream(\""].map(|call| source.split(call).skip(1));
        let methods: Vec<&str> =
            calls.into_iter().flatten().filter_map(|rest| rest.split('"').next()).collect();
        assert_eq!(methods.len(), METHODS.len() - 1, "all but tools/call: {methods:?}");
        assert!(methods.iter().all(|method| label(method) == *method), "{methods:?}");
        assert_eq!(label("made/up"), "_OTHER");
    }
}
