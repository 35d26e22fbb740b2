//! The text of a tool that is embedded, and the key of its vector.

use gatewright_search::Entry;
use sha2::{Digest as _, Sha256};

use crate::Key;

/// Characters of a description that are embedded; a sentence encoder reads little more.
const MAX_DESCRIPTION: usize = 512;

/// The text that stands for a tool: its name in words, then its description.
pub(crate) fn of(entry: &Entry<'_>) -> String {
    let bare = entry
        .name
        .strip_prefix(entry.app_id)
        .map_or(entry.name, |rest| rest.trim_start_matches([':', '.', '/']));
    let mut out = String::new();
    let mut before = ' ';
    for c in bare.chars() {
        if c.is_alphanumeric() {
            if before.is_lowercase() && c.is_uppercase() {
                out.push(' ');
            }
            out.extend(c.to_lowercase());
        } else if !out.ends_with(' ') && !out.is_empty() {
            out.push(' ');
        }
        before = c;
    }
    out.truncate(out.trim_end().len());
    if !entry.description.is_empty() {
        out.push_str(": ");
        out.extend(entry.description.chars().take(MAX_DESCRIPTION));
    }
    out
}

/// The key of a text's vector under a model: the same text and model have the same key in every process.
pub(crate) fn key(model: &str, text: &str) -> Key {
    let mut hash = Sha256::new();
    hash.update(model.len().to_le_bytes());
    hash.update(model.as_bytes());
    hash.update(text.as_bytes());
    let digest = hash.finalize();
    let mut key = [0; 16];
    key.copy_from_slice(&digest[..16]);
    Key(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_reads_as_its_name_in_words_and_its_description() {
        let entry = Entry { name: "mail:sendMessage_now", app_id: "mail", description: "Sends it." };
        assert_eq!(of(&entry), "send message now: Sends it.");
        assert_eq!(of(&Entry { name: "x", app_id: "", description: "" }), "x");
    }

    #[test]
    fn a_key_changes_with_the_model_and_with_the_text() {
        assert_eq!(key("m", "t"), key("m", "t"));
        assert_ne!(key("m", "t"), key("m", "u"));
        assert_ne!(key("m", "t"), key("mt", ""));
    }
}
