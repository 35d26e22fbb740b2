//! `gatewright reference`: the parts of the documentation that are made from the code.

use std::process::ExitCode;

use crate::{args::Reference, config, reference};

/// Prints one reference as Markdown.
pub fn run(what: Reference) -> anyhow::Result<ExitCode> {
    let text = match what {
        Reference::Config => reference::config(&config::schema()?),
        Reference::Errors => reference::errors(),
        Reference::Commands => reference::commands(),
    };
    print!("{text}");
    Ok(ExitCode::SUCCESS)
}
