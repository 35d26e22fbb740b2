//! References within a schema.

use gatewright_core::rmcp::model::JsonObject;
use serde_json::Value;

/// Longest reference that is followed, in bytes: it is read anew wherever it leads.
const LONGEST: usize = 2_000;

/// The target of a reference within `root`.
pub(crate) fn target<'s>(root: &'s JsonObject, reference: &str) -> Option<&'s Value> {
    let path = reference.strip_prefix("#/").filter(|path| path.len() <= LONGEST)?;
    let (first, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
    root.get(&first.replace("~1", "/").replace("~0", "~"))?.pointer(rest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_lead_into_the_document_and_long_ones_nowhere() {
        let long = "n".repeat(LONGEST);
        let root =
            json!({"$defs": {"a/b": {"allOf": [{"type": "string"}]}, "~": 1}, "x/y": 2, long.clone(): 3});
        let target = |reference: &str| target(root.as_object().unwrap(), reference).cloned();
        assert_eq!(target("#/$defs/a~1b/allOf/0/type"), Some(json!("string")));
        assert_eq!(target("#/$defs/~0"), Some(json!(1)));
        assert_eq!(target("#/x~1y"), Some(json!(2)));
        assert_eq!(target(&format!("#/{long}")), Some(json!(3)));
        assert_eq!(target(&format!("#/{long}/")), None);
        for none in ["", "#", "#/", "#/$defs/gone", "other.json#/$defs/~0", "$defs"] {
            assert_eq!(target(none), None, "{none}");
        }
    }
}
