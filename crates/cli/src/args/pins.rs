//! Arguments of `gatewright pins`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `gatewright pins`.
#[derive(Debug, Args)]
pub struct PinsArgs {
    #[command(subcommand)]
    pub command: PinsCommand,
}

/// Commands for pinned definitions of tools (`apps.X.pin`). Each starts the apps and compares their tools with the file beside the configuration
/// whose extension is `lock`.
#[derive(Debug, Subcommand)]
pub enum PinsCommand {
    /// List pinned tools: approved, changed, new and gone ones.
    List {
        /// Configuration file. Its apps are started for the command.
        #[arg(short, long, value_name = "FILE", default_value = "gatewright.yaml")]
        config: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what differs from the approved definitions. Exit code 1 if something does.
    Diff {
        /// Apps (`<app>`) and tools (`<app>:<tool>`, by the app's own name). Default: all.
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Configuration file. Its apps are started for the command.
        #[arg(short, long, value_name = "FILE", default_value = "gatewright.yaml")]
        config: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Approve the definitions as they are now: write them to the file. Running servers follow.
    Approve {
        /// Apps (`<app>`) and tools (`<app>:<tool>`, by the app's own name).
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Approve everything that differs.
        #[arg(long, conflicts_with = "names")]
        all: bool,
        /// Configuration file. Its apps are started for the command.
        #[arg(short, long, value_name = "FILE", default_value = "gatewright.yaml")]
        config: PathBuf,
    },
}
