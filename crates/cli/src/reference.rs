//! References made from the code, as Markdown: every key, every error code, every command.
//!
//! The results are files of `docs/reference`; a test compares them with what the code says now.

mod commands;
mod config;
mod errors;

pub use commands::commands;
pub use config::config;
pub use errors::errors;

/// First lines of every reference: `what` is the argument that prints it again.
fn head(title: &str, what: &str) -> String {
    format!(
        "# {title}\n\nMade from the code by `gatewright reference {what}`; a test fails when this page says something else.\n"
    )
}

/// Text in a cell of a table. Links of rustdoc to items become their words.
fn cell(text: &str) -> String {
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    while let Some(at) = text.find("](crate::") {
        let end = text[at..].find(')').map_or(text.len(), |end| at + end + 1);
        text.replace_range(at..end, "");
        if let Some(open) = text[..at].rfind('[') {
            text.remove(open);
        }
    }
    text
}
