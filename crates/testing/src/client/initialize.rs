//! Validation of `InitializeResult` (lifecycle of 2024-11-05 to 2025-11-25).

use gatewright_core::{Era, Revision};
use serde_json::Value;

use crate::{base::text::shorten, protocol::ClientError};

/// Protocol revisions with `initialize`, oldest first.
fn revisions() -> impl Iterator<Item = &'static str> {
    Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Session).map(Revision::as_str)
}

/// Rejects a result that lacks a required member of `InitializeResult`, or names a revision that the client neither supports
/// nor requested.
pub(super) fn validate(requested: &str, result: &Value) -> Result<(), ClientError> {
    let invalid = |problem: String| {
        let answer = shorten(&result.to_string(), 300);
        Err(ClientError::Shape { method: "initialize".into(), problem, answer })
    };
    let Some(chosen) = result["protocolVersion"].as_str() else {
        return invalid("it has no text `protocolVersion`".into());
    };
    if chosen != requested && !revisions().any(|known| known == chosen) {
        let known: Vec<_> = revisions().collect();
        return invalid(format!(
            "its `protocolVersion` is {chosen:?}, which this client does not speak; a server that does not know {requested} answers \
             with one it knows of {known:?}"
        ));
    }
    if !result["capabilities"].is_object() {
        return invalid("it has no object `capabilities`".into());
    }
    for key in ["name", "version"] {
        if !result["serverInfo"][key].is_string() {
            return invalid(format!("it has no text `serverInfo.{key}`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_the_member_that_is_missing_or_wrong() {
        let whole = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}});
        assert!(validate("2025-11-25", &whole).is_ok());
        for (pointer, value, message) in [
            ("/protocolVersion", json!(null), "no text `protocolVersion`"),
            ("/protocolVersion", json!("1999-01-01"), "\"1999-01-01\", which this client does not speak"),
            ("/capabilities", json!([]), "no object `capabilities`"),
            ("/serverInfo/name", json!(7), "no text `serverInfo.name`"),
            ("/serverInfo", json!({"name": "a"}), "no text `serverInfo.version`"),
        ] {
            let mut broken = whole.clone();
            *broken.pointer_mut(pointer).unwrap() = value;
            let error = validate("2025-11-25", &broken).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        assert_eq!(revisions().collect::<Vec<_>>(), ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]);
        let future = json!({"protocolVersion": "2031-01-01", "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}});
        assert!(validate("2031-01-01", &future).is_ok(), "the requested revision is always accepted");
    }
}
