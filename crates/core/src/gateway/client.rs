//! The bound of what a client says of itself in `initialize`, which a session keeps until it ends.

use rmcp::{
    ErrorData,
    model::{ClientJsonRpcMessage, ClientRequest, InitializeRequestParams, JsonRpcMessage},
};
use serde_json::{Map, Value};

/// Most bytes that a session keeps of its client's description, as [`weight`] counts them.
const MOST_KEPT: usize = 16 * 1024;
/// Bytes that an entry of an object or an array takes besides its text, at most.
const ENTRY: usize = 256;

/// Takes out of an `initialize` request what nothing here reads: experimental capabilities, and the client's icons, description and
/// address. For transports, since the session keeps the request as they pass it on.
pub fn shed_unused(message: &mut ClientJsonRpcMessage) {
    if let JsonRpcMessage::Request(request) = message
        && let ClientRequest::InitializeRequest(initialize) = &mut request.request
    {
        initialize.params.capabilities.experimental = None;
        let client = &mut initialize.params.client_info;
        (client.icons, client.description, client.website_url) = (None, None, None);
    }
}

/// Refuses a client that describes itself at such length that its session would take much memory.
pub(super) fn check_kept(params: &InitializeRequestParams) -> Result<(), ErrorData> {
    let client = &params.client_info;
    let texts = [Some(&client.name), Some(&client.version), client.title.as_ref()];
    let texts: usize = texts.into_iter().flatten().map(String::len).sum();
    if texts > MOST_KEPT {
        return Err(too_long("clientInfo", texts));
    }
    let capabilities = serde_json::to_value(&params.capabilities).unwrap_or_default();
    match texts + weight(&capabilities) {
        all if all > MOST_KEPT => Err(too_long("capabilities", all)),
        _ => Ok(()),
    }
}

fn too_long(field: &str, bytes: usize) -> ErrorData {
    let message = format!(
        "`{field}` of `initialize` takes {bytes} bytes in the session; {MOST_KEPT} is the limit of clientInfo and capabilities \
         together, with {ENTRY} for each entry"
    );
    ErrorData::invalid_params(message, None)
}

/// Bytes that `value` takes in memory, roughly.
fn weight(value: &Value) -> usize {
    let of_entries = |entries: &Map<String, Value>| {
        entries.iter().map(|(key, value)| ENTRY + key.len() + weight(value)).sum::<usize>()
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| ENTRY + weight(item)).sum(),
        Value::Object(entries) => of_entries(entries),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(capabilities: Value, client_info: Value) -> ClientJsonRpcMessage {
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client_info});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        serde_json::from_value(message).unwrap()
    }

    fn params(message: &ClientJsonRpcMessage) -> &InitializeRequestParams {
        let JsonRpcMessage::Request(request) = message else { panic!("no request") };
        let ClientRequest::InitializeRequest(initialize) = &request.request else { panic!("no initialize") };
        &initialize.params
    }

    #[test]
    fn a_client_with_icons_experiments_and_every_capability_is_kept_without_what_nothing_reads() {
        let icon = json!({"src": format!("data:image/png;base64,{}", "A".repeat(50_000))});
        let experiments: Map<String, Value> = (0..5_000).map(|n| (n.to_string(), json!({}))).collect();
        let client = json!({"name": "c", "version": "1", "title": "C", "icons": [icon], "description": "d".repeat(20_000),
            "websiteUrl": "https://c.example"});
        let capabilities = json!({"experimental": experiments, "roots": {"listChanged": true}, "sampling": {"tools": {}, "context": {}},
            "elicitation": {"form": {}, "url": {}},
            "extensions": {"io.modelcontextprotocol/tasks": {}, "io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}});
        let mut message = request(capabilities, client);
        shed_unused(&mut message);
        let params = params(&message);
        assert!(params.capabilities.experimental.is_none() && params.client_info.icons.is_none());
        assert!(params.capabilities.supports_tasks() && params.capabilities.sampling.is_some());
        assert_eq!(check_kept(params), Ok(()));
    }

    #[test]
    fn a_client_that_describes_itself_at_length_is_refused_with_the_field_and_the_limit() {
        let many: Map<String, Value> = (0..1_000).map(|n| (format!("x/{n}"), json!({}))).collect();
        let named = |name: &str| json!({"name": name, "version": "1"});
        for (field, capabilities, client) in [
            ("clientInfo", json!({}), named(&"n".repeat(20_000))),
            ("capabilities", json!({"extensions": many}), named("c")),
            ("capabilities", json!({"extensions": {"x/y": {"a": vec![0; 1_000]}}}), named("c")),
            ("capabilities", json!({"sampling": {"context": {"a": "b".repeat(20_000)}}}), named("c")),
        ] {
            let error = check_kept(params(&request(capabilities, client))).unwrap_err();
            assert!(error.code.0 == -32602 && error.message.contains(field), "{error}");
            assert!(error.message.contains("16384 is the limit"), "{error}");
        }
    }
}
