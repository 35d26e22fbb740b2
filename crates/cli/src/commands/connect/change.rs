//! The change of a client's file, for people: the gateway's entry alone, since any line of the file may have secrets of others.

use gatewright_findings::printable;
use gatewright_server::clients::{Client, FileFormat};
use serde_json::{Map, Value};

use crate::{clients, write::toml_lines};

/// Most lines of an entry, and most characters of one of them.
const MOST_LINES: usize = 30;
const LONGEST_LINE: usize = 300;

/// The values of an entry that a change adds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// This command wrote them.
    Shown,
    /// They were in the file before.
    Hidden,
}

/// The change from `before` to `after` as a diff of the entry `name`. Values that were in the file are not in it.
pub fn shown(client: Client, name: &str, before: &str, after: &str, new_values: Values) -> String {
    let is_same = |(a, b): &(&str, &str)| a == b || a.replace(',', "") == b.replace(',', "");
    let line = before.lines().zip(after.lines()).take_while(is_same).count() + 1;
    let mut lines = vec![format!("@@ line {line}, in `{}` @@", client.facts().section)];
    let mut add = |sign: char, text: &str, values: Values| {
        let Some(mut entry) = clients::server(client, text, name) else { return };
        if values == Values::Hidden {
            hide(&mut entry);
        }
        let text = text_of(client, name, entry);
        let all = text.lines().count();
        lines.extend(
            text.lines().take(MOST_LINES).map(|line| format!("{sign} {}", printable(line, LONGEST_LINE))),
        );
        if all > MOST_LINES {
            lines.push(format!("{sign} … {} more lines", all - MOST_LINES));
        }
    };
    add('-', before, Values::Hidden);
    add('+', after, new_values);
    lines.join("\n")
}

/// Replaces values and keeps keys.
fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(hide),
        value => *value = "…".into(),
    }
}

/// The entry as it stands in the client's file.
fn text_of(client: Client, name: &str, entry: Value) -> String {
    match (client.facts().format, entry) {
        (FileFormat::Toml, Value::Object(keys)) => {
            format!("[{}.{name}]\n{}", client.facts().section, toml_lines(&keys))
        }
        (_, entry) => {
            let all = Value::Object(Map::from_iter([(name.to_owned(), entry)]));
            let text = serde_json::to_string_pretty(&all).unwrap_or_default();
            text.lines().filter_map(|line| line.strip_prefix("  ")).collect::<Vec<_>>().join("\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_is_shown_in_the_layout_of_the_file_and_bounded() {
        let after = "{\n  \"mcpServers\": {\n    \"gw\": {\"url\": \"https://u.example\"}\n  }\n}";
        let (before, client) = ("{\n  \"mcpServers\": {\n  }\n}", Client::Cursor);
        assert_eq!(
            shown(client, "gw", before, after, Values::Shown),
            "@@ line 3, in `mcpServers` @@\n+ \"gw\": {\n+   \"url\": \"https://u.example\"\n+ }"
        );
        let toml = "[mcp_servers.gw]\nurl = \"hush\"\nenv = { K = \"hush\", N = [1] }\n";
        assert_eq!(
            shown(Client::Codex, "gw", toml, "", Values::Hidden),
            "@@ line 1, in `mcp_servers` @@\n- [mcp_servers.gw]\n- env = { \"K\" = \"…\", \"N\" = \"…\" }\n- url = \"…\""
        );
        let many: Map<String, Value> =
            (0..50_000).map(|n| (format!("{n}{}", "k".repeat(500)), n.into())).collect();
        let text = shown(client, "gw", &json!({"mcpServers": {"gw": many}}).to_string(), "", Values::Hidden);
        assert!(text.len() < 12_000 && text.ends_with("- … 49972 more lines"), "{text}");
    }
}
