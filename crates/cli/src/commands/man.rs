//! `gatewright man`: manual pages, generated from the command line.

use std::{fs, process::ExitCode};

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::{
    args::{Cli, ManArgs},
    output,
};

/// Prints `gatewright(1)`, or writes the pages of all commands into a folder.
pub fn run(args: &ManArgs) -> anyhow::Result<ExitCode> {
    match &args.folder {
        Some(folder) => {
            let problem = || format!("{} cannot be written", folder.display());
            fs::create_dir_all(folder).with_context(problem)?;
            clap_mangen::generate_to(Cli::command(), folder).with_context(problem)?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            output::raw(&page)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
