//! The commands as a Markdown page, from the description of the command line.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command, CommandFactory as _};

use super::{cell, head};
use crate::args::Cli;

/// Every command with its arguments.
pub fn commands() -> String {
    let mut text = head("Commands", "commands");
    let mut root = Cli::command();
    root.build();
    text.push_str("\nOptions of every command:\n\n");
    table(&mut text, root.get_arguments().filter(|arg| arg.is_global_set()));
    for command in root.get_subcommands() {
        describe(&mut text, "gatewright", command);
    }
    text
}

fn describe(text: &mut String, before: &str, command: &Command) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = format!("{before} {}", command.get_name());
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let _ = write!(text, "\n## `{name}`\n\n{}\n", about.trim());
    let own: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| {
            !arg.is_hide_set()
                && !["help", "version", "log_level", "log_format"].contains(&arg.get_id().as_str())
        })
        .collect();
    if !own.is_empty() {
        text.push('\n');
        table(text, own.into_iter());
    }
    for inner in command.get_subcommands() {
        describe(text, &name, inner);
    }
}

fn table<'a>(text: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    text.push_str("| argument | default | meaning |\n|---|---|---|\n");
    for arg in arguments {
        let values = || {
            let names: Vec<String> =
                arg.get_value_names().into_iter().flatten().map(|name| format!("<{name}>")).collect();
            names.join(" ")
        };
        let takes = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
        let flag = match (arg.get_long(), arg.get_short()) {
            (Some(long), short) => {
                let short = short.map(|short| format!("-{short}, ")).unwrap_or_default();
                let value = if takes { format!(" {}", values()) } else { String::new() };
                format!("{short}--{long}{value}")
            }
            _ => values(),
        };
        let defaults: Vec<String> =
            arg.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
        let default = if takes { defaults.join(" ") } else { String::new() };
        let mut about = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let choices = arg.get_possible_values();
        if takes && !choices.is_empty() {
            let names: Vec<String> =
                choices.iter().map(|choice| format!("`{}`", choice.get_name())).collect();
            let stop = if about.ends_with('.') { "" } else { "." };
            let _ = write!(about, "{stop} One of {}.", names.join(", "));
        }
        let _ = writeln!(text, "| `{flag}` | {default} | {} |", cell(&about));
    }
}
