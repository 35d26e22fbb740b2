//! Reference pages generated from the code, as Markdown: every key, every error code, every command, every client.
//!
//! They are files in `docs/reference`; a test compares those with the output.

mod clients;
mod commands;
mod config;
mod errors;

pub use clients::clients;
pub use commands::commands;
pub use config::config;
pub use errors::errors;

/// First lines of every page: `page` is the argument that prints it.
fn head(title: &str, page: &str) -> String {
    format!(
        "# {title}\n\nGenerated from the code by `gatewright reference {page}`. Do not edit it: a test compares it with the code.\n"
    )
}

/// Text for a cell of a table. Links of rustdoc to items become plain text.
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
