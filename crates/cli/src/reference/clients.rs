//! The MCP clients as a Markdown page: their files, and how each is told of a gateway.

use std::fmt::Write as _;

use gatewright_server::clients::{Client, FileFormat, Way};
use serde_json::Value;

use super::{cell, head};

const NAME: &str = "gatewright";
const URL: &str = "http://127.0.0.1:3000/mcp";

/// Every client with its file, its key, and both entries.
pub fn clients() -> String {
    let mut text = head("Clients", "clients");
    text.push_str(
        "\n`gatewright init` reads the files of these clients, `gatewright connect` adds the gateway to one of them, and `gatewright disconnect` takes \
         it out. `connect` shows the change and asks, keeps a copy beside the file (`.before-gatewright`), and leaves comments, order and \
         layout as they are. For a file elsewhere, such as that of a project, use `--file`.\n\n",
    );
    text.push_str(&table());
    text.push_str("\n## Files\n\n| client | Linux | macOS | Windows | another folder | key | described in |\n|---|---|---|---|---|---|---|\n");
    for client in Client::ALL {
        let facts = client.facts();
        let [linux, macos, windows] = facts.places.map(|place| place.shown());
        let moved =
            facts.moved_by.map(|(variable, file)| format!("`${variable}/{file}`")).unwrap_or_default();
        let _ = writeln!(
            text,
            "| {} | `{linux}` | `{macos}` | `{windows}` | {moved} | `{}` | <{}> |",
            facts.title, facts.section, facts.source
        );
    }
    text.push_str("\n`~/.config` is `$XDG_CONFIG_HOME` where that is set.\n");
    let args = ["serve", "--stdio", "--config", "/home/me/gatewright.yaml"].map(str::to_owned);
    for client in Client::ALL {
        let facts = client.facts();
        let kind = match facts.format {
            FileFormat::Json => "json",
            FileFormat::Toml => "toml",
        };
        let block = |way| format!("```{kind}\n{}```\n", client.file_with(NAME, way));
        let bridge =
            if client.takes_addresses() { "" } else { ", over a bridge, as its file takes commands only" };
        let _ = write!(
            text,
            "\n## {}\n\nA running gateway{bridge}:\n\n{}\nA gateway that the client starts (`gatewright connect {} --stdio`):\n\n{}",
            facts.title,
            block(Way::Url(URL)),
            facts.id,
            block(Way::Command("/usr/bin/gatewright", &args)),
        );
    }
    text
}

/// A line for each client: the command that connects it, and how to do it by hand. README.md and the quickstart have it, too.
fn table() -> String {
    let mut text = "| client | connect it | or by hand |\n|---|---|---|\n".to_owned();
    for client in Client::ALL {
        let facts = client.facts();
        let instruction = client.instruction(NAME, URL);
        let by_hand = match &instruction.file {
            None => format!("`{}`", instruction.text),
            Some(file) => {
                let value: Value = serde_json::from_str(&instruction.text).unwrap_or_default();
                format!("in `{file}`: `{value}`")
            }
        };
        let _ =
            writeln!(text, "| {} | `gatewright connect {}` | {} |", facts.title, facts.id, cell(&by_hand));
    }
    text
}
