//! Answers to a handshake, without what the gateway has no use for: `rmcp` keeps them for as long as the connection lasts.

use rmcp::model::{
    Implementation, JsonRpcMessage, MetaObject, ProtocolVersion, ServerCapabilities, ServerJsonRpcMessage,
    ServerResult,
};
use serde_json::json;

/// Longest text that is kept, in bytes.
const LONGEST: usize = 4 << 10;
/// Longest name of a version or an extension, in bytes.
const LONGEST_NAME: usize = 256;
/// Versions, and extensions, of one server.
const MOST: usize = 32;

/// Shortens the answer to `initialize` or `server/discover`. Other messages stay as they are.
pub(crate) fn shorten(message: &mut ServerJsonRpcMessage) {
    let JsonRpcMessage::Response(response) = message else { return };
    match &mut response.result {
        ServerResult::InitializeResult(result) => {
            shorten_capabilities(&mut result.capabilities);
            shorten_server(&mut result.server_info);
            shorten_text(&mut result.instructions, LONGEST);
            shorten_version(&mut result.protocol_version);
            result.meta = None;
        }
        ServerResult::DiscoverResult(result) => {
            shorten_capabilities(&mut result.capabilities);
            shorten_text(&mut result.instructions, LONGEST);
            result.supported_versions.truncate(MOST);
            result.supported_versions.iter_mut().for_each(shorten_version);
            let server = result.server_info();
            result.meta = result.meta.as_ref().map(|_| MetaObject::default());
            if let Some(mut server) = server {
                shorten_server(&mut server);
                result.set_server_info(server);
            }
        }
        _ => {}
    }
}

fn shorten_capabilities(capabilities: &mut ServerCapabilities) {
    capabilities.experimental = None;
    for settings in [&mut capabilities.logging, &mut capabilities.completions].into_iter().flatten() {
        settings.clear();
    }
    let Some(extensions) = &mut capabilities.extensions else { return };
    let mut left = MOST;
    extensions.retain(|name, settings| {
        if left == 0 || name.len() > LONGEST_NAME {
            return false;
        }
        left -= 1;
        if serde_json::to_vec(settings).is_ok_and(|json| json.len() > LONGEST) {
            settings.clear();
        }
        true
    });
}

fn shorten_server(server: &mut Implementation) {
    cut(&mut server.name, LONGEST_NAME);
    cut(&mut server.version, LONGEST_NAME);
    shorten_text(&mut server.title, LONGEST);
    shorten_text(&mut server.description, LONGEST);
    server.icons = None;
    server.website_url = None;
}

fn shorten_text(text: &mut Option<String>, longest: usize) {
    if let Some(text) = text {
        cut(text, longest);
    }
}

fn cut(text: &mut String, longest: usize) {
    text.truncate(text.floor_char_boundary(longest));
    text.shrink_to_fit();
}

/// A version of that length is none that anybody knows.
fn shorten_version(version: &mut ProtocolVersion) {
    if version.as_str().len() > LONGEST_NAME
        && let Ok(unknown) = serde_json::from_value(json!("unknown"))
    {
        *version = unknown;
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::TASKS_EXTENSION_ID;
    use serde_json::Value;

    use super::*;

    fn shortened(result: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "result": result});
        let mut message: ServerJsonRpcMessage = serde_json::from_value(message).unwrap();
        shorten(&mut message);
        serde_json::to_value(message).unwrap()["result"].take()
    }

    fn capabilities() -> Value {
        let many: serde_json::Map<String, Value> = (0..1_000).map(|n| (format!("z{n}"), json!({}))).collect();
        let mut extensions = many.clone();
        extensions.insert(TASKS_EXTENSION_ID.to_owned(), json!({}));
        extensions.insert("large".to_owned(), json!({"a": "x".repeat(100_000)}));
        json!({"tools": {"listChanged": true}, "logging": many, "completions": many, "experimental": many,
               "extensions": extensions})
    }

    #[test]
    fn an_answer_to_a_handshake_keeps_a_bounded_part_of_what_it_says() {
        let long = "x".repeat(1_000_000);
        let server = json!({"name": long, "version": long, "title": long, "description": long,
                            "websiteUrl": "https://example.com", "icons": [{"src": long}]});
        let initialized = json!({"protocolVersion": long, "capabilities": capabilities(), "serverInfo": server,
                                 "instructions": long, "_meta": {"a": long}});
        let discovered = json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "supportedVersions": vec![long.clone(); 100], "capabilities": capabilities(), "instructions": long,
            "_meta": {"a": long, "io.modelcontextprotocol/serverInfo": server}});
        for result in [initialized, discovered] {
            let short = shortened(result);
            assert!(short.to_string().len() < 20_000, "{} bytes", short.to_string().len());
            let capabilities = &short["capabilities"];
            assert_eq!(capabilities["tools"]["listChanged"], true);
            assert_eq!(capabilities["extensions"][TASKS_EXTENSION_ID], json!({}));
            assert!(capabilities["logging"].is_object() && capabilities["completions"].is_object());
        }
    }

    #[test]
    fn what_an_ordinary_server_says_of_itself_stays() {
        let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "logging": {}},
            "serverInfo": {"name": "a", "version": "1", "title": "A"}, "instructions": "Ask first."});
        assert_eq!(shortened(result.clone()), result);
    }
}
