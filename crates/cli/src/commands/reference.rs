//! `gatewright reference`: pages of the documentation that are generated from the code.

use std::process::ExitCode;

use crate::{args::Reference, config, output, reference};

/// Prints one page as Markdown.
pub fn run(page: Reference) -> anyhow::Result<ExitCode> {
    let text = match page {
        Reference::Config => reference::config(&config::schema::schema()?),
        Reference::Errors => reference::errors(),
        Reference::Commands => reference::commands(),
        Reference::Clients => reference::clients(),
    };
    output::raw(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
