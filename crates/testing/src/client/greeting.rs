//! What a server must say when it is greeted (`initialize`, lifecycle of 2024-11-05 to 2025-11-25).

use gatewright_core::rmcp::model::ProtocolVersion;
use serde_json::Value;

use crate::{ClientError, shorten};

/// The revisions with `initialize`, oldest first.
fn revisions() -> impl Iterator<Item = &'static str> {
    let known = ProtocolVersion::KNOWN_VERSIONS.iter().filter(|version| version.has_initialize());
    known.map(ProtocolVersion::as_str)
}

/// Refuses an answer a client of MCP cannot go on with: one without what every `InitializeResult` has, or in a revision the
/// client does not speak and did not ask for.
pub(super) fn check(asked: &str, result: &Value) -> Result<(), ClientError> {
    let wrong = |problem: String| {
        let answer = shorten(&result.to_string(), 300);
        Err(ClientError::Shape { method: "initialize".into(), problem, answer })
    };
    let Some(chosen) = result["protocolVersion"].as_str() else {
        return wrong("it has no text `protocolVersion`".into());
    };
    if chosen != asked && !revisions().any(|known| known == chosen) {
        let known: Vec<_> = revisions().collect();
        return wrong(format!(
            "its `protocolVersion` is {chosen:?}, which this client does not speak; a server that does not know {asked} answers \
             with one it knows of {known:?}"
        ));
    }
    if !result["capabilities"].is_object() {
        return wrong("it has no object `capabilities`".into());
    }
    for key in ["name", "version"] {
        if !result["serverInfo"][key].is_string() {
            return wrong(format!("it has no text `serverInfo.{key}`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn says_what_a_greeting_lacks() {
        let whole = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}});
        assert!(check("2025-11-25", &whole).is_ok());
        for (pointer, value, says) in [
            ("/protocolVersion", json!(null), "no text `protocolVersion`"),
            ("/protocolVersion", json!("1999-01-01"), "\"1999-01-01\", which this client does not speak"),
            ("/capabilities", json!([]), "no object `capabilities`"),
            ("/serverInfo/name", json!(7), "no text `serverInfo.name`"),
            ("/serverInfo", json!({"name": "a"}), "no text `serverInfo.version`"),
        ] {
            let mut broken = whole.clone();
            *broken.pointer_mut(pointer).unwrap() = value;
            let error = check("2025-11-25", &broken).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        assert_eq!(revisions().collect::<Vec<_>>(), ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]);
        let future = json!({"protocolVersion": "2031-01-01", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}});
        assert!(check("2031-01-01", &future).is_ok(), "what was asked for is spoken");
    }
}
