//! A request to its parts: "create a ticket and notify the owner" asks for two tools.

/// Most parts of a query that are looked at one by one.
pub(crate) const MAX_CLAUSES: usize = 8;

/// The clauses of a text, in order. Together they are the whole text.
pub(crate) fn clauses(text: &str) -> Vec<&str> {
    vec![text]
}
