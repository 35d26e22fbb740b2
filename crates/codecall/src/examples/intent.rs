//! The intent of a tool, inferred from its name and hints.

use gatewright_core::ToolEntry;

/// The contract's intents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Intent {
    Create,
    List,
    Get,
    Update,
    Delete,
    Search,
}

const VERBS: [(Intent, &[&str]); 6] = [
    (Intent::Search, &["search", "find", "query", "lookup", "match"]),
    (Intent::List, &["list", "all", "index", "browse", "enumerate"]),
    (
        Intent::Create,
        &["create", "add", "new", "insert", "open", "register", "start", "send", "post", "write", "upload"],
    ),
    (Intent::Delete, &["delete", "remove", "cancel", "void", "destroy", "drop", "revoke", "purge"]),
    (
        Intent::Update,
        &[
            "update", "edit", "set", "patch", "rename", "assign", "change", "close", "move", "merge",
            "escalate", "pay",
        ],
    ),
    (
        Intent::Get,
        &["get", "read", "fetch", "show", "retrieve", "describe", "view", "count", "report", "stats"],
    ),
];

/// The first verb of the name decides; without one, the hints do.
pub(super) fn of(tool: &ToolEntry) -> Intent {
    let words = words(&tool.local_name);
    let named = words.iter().find_map(|word| VERBS.iter().find(|(_, verbs)| verbs.contains(&word.as_str())));
    if let Some((intent, _)) = named {
        return *intent;
    }
    let hints = tool.tool.annotations.as_ref();
    let read_only = hints.is_some_and(|hints| hints.read_only_hint == Some(true));
    let destructive = hints.is_some_and(|hints| hints.destructive_hint == Some(true));
    let required =
        tool.input_schema().get("required").and_then(|r| r.as_array()).is_some_and(|r| !r.is_empty());
    match (read_only, destructive, required) {
        (true, _, true) => Intent::Get,
        (true, _, false) => Intent::List,
        (false, true, _) => Intent::Delete,
        (false, false, true) => Intent::Create,
        (false, false, false) => Intent::Get,
    }
}

/// Returns `true` for a verb of an action.
pub(super) fn is_verb(word: &str) -> bool {
    VERBS.iter().any(|(_, verbs)| verbs.contains(&word))
}

/// The name's words in lower case: split at separators and case changes.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut previous_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && previous_lower) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        previous_lower = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn a_name_is_split_at_case_and_separators() {
        assert_eq!(words("listUsers_byTeam-2"), ["list", "users", "by", "team", "2"]);
    }
}
