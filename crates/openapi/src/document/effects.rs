//! Effects of an operation, by its method and the hints of the document.

use gatewright_core::rmcp::model::ToolAnnotations;
use http::Method;

use super::sources::Node;

/// Effects of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Effects {
    pub(super) read_only: bool,
    pub(super) destructive: bool,
    pub(super) idempotent: bool,
}

impl Effects {
    /// The effects by the method (RFC 9110 §9.2), unless `x-mcp-readonly`, `x-mcp-destructive` or `x-mcp-idempotent` of the operation
    /// say otherwise.
    ///
    /// The method does not tell whether a `POST` destroys something. It counts as destructive if its name or path begins or ends with a word
    /// such as `delete`.
    pub(super) fn of(operation: Node<'_>, method: &Method, id: &str, path: &str) -> Self {
        let hint = |keys: [&str; 2]| keys.iter().find_map(|key| operation.value.get(*key)?.as_bool());
        let is_query = method.as_str() == "QUERY";
        let by_method = method.is_safe() || is_query;
        let read_only = hint(["x-mcp-readonly", "x-mcp-read-only"]).unwrap_or(by_method);
        let destroys =
            *method == Method::DELETE || (!by_method && (is_destructive(id) || is_destructive(path)));
        let destructive = hint(["x-mcp-destructive", "x-mcp-destructive-hint"]).unwrap_or(destroys);
        Self {
            read_only,
            destructive: destructive && !read_only,
            idempotent: hint(["x-mcp-idempotent", "x-idempotent"])
                .unwrap_or(method.is_idempotent() || is_query),
        }
    }

    /// The annotations of a tool with these effects.
    pub(super) fn annotations(self) -> ToolAnnotations {
        let annotations = ToolAnnotations::new().read_only(self.read_only);
        match self.read_only {
            // The other hints are for tools that change something.
            true => annotations,
            false => annotations.destructive(self.destructive).idempotent(self.idempotent),
        }
    }
}

/// Returns `true` if the first or the last word of a name or a path is one for destroying things.
fn is_destructive(name: &str) -> bool {
    const WORDS: [&str; 10] =
        ["delete", "remove", "destroy", "purge", "wipe", "erase", "revoke", "drop", "terminate", "uninstall"];
    let is_word = |word: &str| WORDS.iter().any(|known| word.eq_ignore_ascii_case(known));
    // The words of `users/deleteAll`, `chat.delete` and `/users/{id}/delete`.
    let mut words: Vec<&str> = Vec::new();
    for part in name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()) {
        let mut start = 0;
        for (at, pair) in part.as_bytes().windows(2).enumerate() {
            if pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase() {
                words.push(&part[start..=at]);
                start = at + 1;
            }
        }
        words.push(&part[start..]);
    }
    words.first().is_some_and(|word| is_word(word))
        || words.last().is_some_and(|word| is_word(word))
        || words.get(1).is_some_and(|word| is_word(word))
}

#[cfg(test)]
mod tests {
    use super::is_destructive;

    #[test]
    fn words_for_destroying_are_found_in_names_and_paths() {
        for name in [
            "deleteUser",
            "users/delete-all",
            "chat.delete",
            "/users/{id}/delete",
            "UserRemove",
            "admin_purge_cache",
        ] {
            assert!(is_destructive(name), "{name}");
        }
        for name in ["createUser", "/deleted-users", "dropdown", "list", "", "a/b/undelete"] {
            assert!(!is_destructive(name), "{name}");
        }
    }
}
