//! Advice for keys and values of earlier versions.

use gatewright_findings::Finding;
use serde_json::Value;

/// JSON pointer, the value that was removed (without one: the key), and the advice.
const REMOVED: [(&str, Option<&str>, &str); 3] = [
    (
        "/auth/auditFile",
        None,
        "was removed: `audit.file` takes the events of the authorization server too; name the file there",
    ),
    (
        "/codecall/embedding/store/exactUpTo",
        None,
        "was removed: a query is compared with every vector; delete this key",
    ),
    (
        "/codecall/embedding/store/type",
        Some("qdrant"),
        "`qdrant` was removed; use `pgvector` to share vectors between instances, or `file`; vectors are computed again once",
    ),
];

/// Replaces the problem of each finding about a removed key or value by the advice.
pub(super) fn explain(mut findings: Vec<Finding>, value: &Value) -> Vec<Finding> {
    for finding in &mut findings {
        let found = value.pointer(&finding.pointer).and_then(Value::as_str);
        let advice = REMOVED.iter().find(|(pointer, removed, _)| {
            finding.pointer == *pointer && (removed.is_none() || *removed == found)
        });
        if let Some((_, _, advice)) = advice {
            finding.problem = (*advice).to_owned();
        }
    }
    findings
}
