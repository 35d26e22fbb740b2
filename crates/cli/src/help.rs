//! The commands in groups, for `gatewright --help`.

use clap::{Command, CommandFactory as _};

use crate::args::Cli;

/// Headings, and the names of their commands. Commands that are in none come last.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Start", &["demo", "init", "add", "connect", "disconnect", "serve", "check"]),
    ("Use", &["tools", "login", "logout"]),
    ("Operate", &["health", "executions", "policy", "pins", "audit"]),
    ("Users and clients", &["user", "client", "consent", "api-key", "key"]),
    ("Test", &["test", "mock", "token", "eval"]),
];
const MORE: &str = "More";

/// The command line, with a help text that lists the commands in groups. clap knows one heading for all of them.
pub fn grouped() -> Command {
    let command = Cli::command();
    let listing = listing(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{listing}Options:\n{{options}}\n"
    ))
}

fn listing(command: &Command) -> String {
    let visible: Vec<&Command> = command.get_subcommands().filter(|one| !one.is_hide_set()).collect();
    let widest = visible.iter().map(|one| one.get_name().len()).max().unwrap_or_default();
    let line = |one: &Command| {
        let about = one.get_about().map(ToString::to_string).unwrap_or_default();
        format!("  {:widest$}  {}\n", one.get_name(), about)
    };
    let of_group = |names: &[&str]| -> String {
        let found = names.iter().filter_map(|name| visible.iter().find(|one| one.get_name() == *name));
        found.map(|one| line(one)).collect()
    };
    let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    let rest: Vec<&str> =
        visible.iter().map(|one| one.get_name()).filter(|name| !listed.contains(name)).collect();
    let groups = GROUPS.into_iter().chain([(MORE, rest.as_slice())]);
    groups.map(|(heading, names)| format!("{heading}:\n{}\n", of_group(names))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_listed_once_under_a_heading() {
        let help = grouped().render_help().to_string();
        for one in Cli::command().get_subcommands().filter(|one| !one.is_hide_set()) {
            let name = format!("\n  {} ", one.get_name());
            assert_eq!(help.matches(&name).count(), 1, "{name}: {help}");
        }
        for heading in ["Start:", "Use:", "Operate:", "Users and clients:", "Test:", "More:", "Options:"] {
            assert!(help.contains(heading), "{heading}: {help}");
        }
        assert!(!help.contains("Commands:") && !help.contains("reference "), "{help}");
    }
}
