//! Words for taking away: a tool that does it is seldom meant by a request that does not say so.

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

/// Returns true if one of the terms of a query asks for something to be taken away.
pub(crate) fn is_asked<'t>(mut terms: impl Iterator<Item = &'t str>) -> bool {
    terms.any(|term| {
        TERMS.contains(&term) || ALSO.contains(&term) || ABROAD.iter().any(|start| term.starts_with(start))
    })
}
