//! Base64 of images, audio and blobs.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{rule::Rule, violation::Violation};

/// Checks the binary parts of a result of `tools/call`, `prompts/get` or `resources/read`.
pub(super) fn check(method: &str, result: &Value, found: &mut Vec<Violation>) {
    let blocks = |place: &'static str| {
        let all = result.get(place).and_then(Value::as_array).into_iter().flatten().enumerate();
        all.map(move |(at, block)| (format!("/{place}/{at}"), block))
    };
    for (place, block) in blocks("content") {
        check_block(method, &place, block, found);
    }
    for (place, message) in blocks("messages") {
        check_block(method, &format!("{place}/content"), &message["content"], found);
    }
    for (place, content) in blocks("contents") {
        check_text(method, &place, "blob", content, found);
    }
}

fn check_block(method: &str, place: &str, block: &Value, found: &mut Vec<Violation>) {
    match block["type"].as_str() {
        Some("image" | "audio") => check_text(method, place, "data", block, found),
        Some("resource") => {
            check_text(method, &format!("{place}/resource"), "blob", &block["resource"], found)
        }
        _ => {}
    }
}

fn check_text(method: &str, place: &str, key: &str, holder: &Value, found: &mut Vec<Violation>) {
    let Some(text) = holder[key].as_str() else { return };
    if let Err(error) = STANDARD.decode(text) {
        let problem = format!("this is no Base64 with padding (RFC 4648 §4): {error}");
        found.push(Violation::new(Rule::Base64, method, format!("{place}/{key}"), problem));
    }
}
