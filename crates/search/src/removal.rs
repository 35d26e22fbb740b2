//! Words for taking away: a tool that does it is seldom meant by a request that does not say so.

use crate::parsed_query::ParsedQuery;

/// Stems with which a tool's name says that it removes something.
pub(crate) const TERMS: &[&str] = &[
    "clear", "delet", "destroy", "drop", "eras", "purg", "remov", "revok", "termin", "truncat", "uninstal",
    "wipe",
];

/// Stems besides these with which a request says so.
#[rustfmt::skip]
const ALSO: &[&str] = &[
    "abandon", "abort", "cancel", "clean", "close", "deactiv", "detach", "disabl", "discard", "dismiss", "eject",
    "empti", "end", "expel", "fire", "forget", "free", "kick", "kill", "leav", "lose", "off", "out", "prune", "reset",
    "rid", "stop", "strip", "throw", "tidi", "trash", "undo", "unfollow", "unlink", "unset", "unstar", "unsubscrib",
    "withdraw", "without",
];

/// Beginnings of such words in other languages.
const ABROAD: &[&str] =
    &["borr", "elimin", "entfern", "losch", "supprim", "verwijd", "удал", "删", "削除", "삭제"];

/// Returns true if a query asks for something to be taken away.
pub(crate) fn is_asked(parsed: &ParsedQuery) -> bool {
    let says = |term: &str| {
        TERMS.contains(&term) || ALSO.contains(&term) || ABROAD.iter().any(|start| term.starts_with(start))
    };
    let slots = &parsed.slots;
    slots.iter().any(|slot| says(&slot.term) || slot.alternatives.iter().any(|one| says(&one.term)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Document, Index};

    #[test]
    fn requests_to_take_away_are_told_from_others_in_some_languages() {
        let tool = Document {
            name: "files:delete_file".to_owned(),
            app_id: "files".to_owned(),
            description: "Delete a file for good".to_owned(),
            input_schema: Arc::default(),
        };
        let index = Index::build([tool]);
        let asks = |text| is_asked(&ParsedQuery::new(&index.inner, index.len(), text));
        for text in [
            "delete a file",
            "erase the file",
            "deletting of fiels",
            "get rid of it",
            "forget Ada",
            "Datei löschen",
            "supprimer le fichier",
            "удалить файл",
            "请删除文件",
        ] {
            assert!(asks(text), "{text}");
        }
        for text in ["", "read a file", "list the labels of an issue", "Datei lesen", "读取文件"] {
            assert!(!asks(text), "{text}");
        }
    }
}
