//! Adds a table to a TOML file, and takes it out, without touching any other line.

use serde_json::Value;
use toml::Table;

/// The text with `[section.name]`, written as `table`, at its end. A table of that name is replaced.
///
/// # Errors
/// The text is no TOML, or has the section in a form that cannot be added to.
pub fn insert(text: &str, section: &str, name: &str, table: &str) -> Result<String, String> {
    let mut wanted = parse(text)?;
    let new: Table = table.parse().map_err(|_| odd())?;
    let entry = new.get(section).and_then(|servers| servers.get(name)).ok_or_else(odd)?;
    let slot = wanted.entry(section).or_insert_with(|| toml::Value::Table(Table::new()));
    let toml::Value::Table(servers) = slot else {
        return Err(format!("`{section}` is there, and is no table"));
    };
    let is_there = servers.insert(name.to_owned(), entry.clone()).is_some();
    let text = if is_there { without(text, section, name) } else { text.to_owned() };
    let line_break = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { line_break };
    let gap = if text.trim().is_empty() { "" } else { line_break };
    checked(format!("{text}{end}{gap}{}", table.replace('\n', line_break)), &wanted)
}

/// The text without `[section.name]` and the tables below it; `None` if it is not there.
///
/// # Errors
/// The text is no TOML, or has the table in a form that cannot be taken out.
pub fn remove(text: &str, section: &str, name: &str) -> Result<Option<String>, String> {
    let mut wanted = parse(text)?;
    let Some(toml::Value::Table(servers)) = wanted.get_mut(section) else { return Ok(None) };
    if servers.remove(name).is_none() {
        return Ok(None);
    }
    let edited = without(text, section, name);
    if servers.is_empty() && parse(&edited).is_ok_and(|found| !found.contains_key(section)) {
        wanted.remove(section);
    }
    checked(edited, &wanted).map(Some)
}

/// The file as JSON.
///
/// # Errors
/// The text is no TOML.
pub fn value(text: &str) -> Result<Value, String> {
    serde_json::to_value(parse(text)?).map_err(|_| odd())
}

fn parse(text: &str) -> Result<Table, String> {
    text.parse().map_err(|error: toml::de::Error| {
        // Without the text around the place, which may contain secrets.
        let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
        format!("it is not TOML: line {}", line.unwrap_or(1))
    })
}

fn odd() -> String {
    "it is written in a way that cannot be changed without touching the rest of it".to_owned()
}

fn checked(edited: String, wanted: &Table) -> Result<String, String> {
    match parse(&edited) {
        Ok(found) if found == *wanted => Ok(edited),
        _ => Err(odd()),
    }
}

/// The text without the lines of a table and of those below it, and without an empty line before each.
fn without(text: &str, section: &str, name: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut kept: Vec<&str> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        if !heads(lines[at], section, name) {
            kept.push(lines[at]);
            at += 1;
            continue;
        }
        let next = lines[at + 1..]
            .iter()
            .position(|line| header(line).is_some())
            .map_or(lines.len(), |found| at + 1 + found);
        // Comments and empty lines before the next table are of that one.
        let last = lines[at..next]
            .iter()
            .rposition(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
        at += last.unwrap_or_default() + 1;
        if kept.last().is_some_and(|line| line.trim().is_empty()) {
            kept.pop();
        }
    }
    kept.concat()
}

/// Returns true if the line opens the table, or one below it.
fn heads(line: &str, section: &str, name: &str) -> bool {
    let servers = header(line).and_then(|mut table| table.remove(section));
    servers.is_some_and(|servers| servers.get(name).is_some())
}

/// The tables that a line such as `[a.b]` opens.
fn header(line: &str) -> Option<Table> {
    line.trim_start().starts_with('[').then(|| line.parse::<Table>().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "[mcp_servers.gw]\nurl = \"u\"\n";

    #[test]
    fn a_table_is_added_at_the_end_and_taken_out_byte_for_byte() {
        for text in [
            "model = \"o\" # mine\n",
            "# only a comment\n",
            "[mcp_servers.a]\ncommand = \"x\" # y\n\n[mcp_servers.a.env]\nK = \"v\"\n",
            "a = \"\"\"\n[mcp_servers.b]\n\"\"\"\r\n",
        ] {
            let after = insert(text, "mcp_servers", "gw", TABLE).unwrap();
            assert!(after.starts_with(text) && after.contains("[mcp_servers.gw]"), "{after}");
            assert_eq!(remove(&after, "mcp_servers", "gw").unwrap().as_deref(), Some(text));
        }
        assert_eq!(insert("", "mcp_servers", "gw", TABLE).unwrap(), TABLE);
    }

    #[test]
    fn a_table_between_others_is_replaced_or_taken_out_with_those_below_it() {
        let text = "[mcp_servers.gw]\nurl = \"old\"\n[mcp_servers.gw.env]\nA = \"1\"\n\n# of b\n[mcp_servers.b]\nurl = \"b\"\n";
        let rest = "\n# of b\n[mcp_servers.b]\nurl = \"b\"\n";
        assert_eq!(remove(text, "mcp_servers", "gw").unwrap().as_deref(), Some(rest));
        assert_eq!(insert(text, "mcp_servers", "gw", TABLE).unwrap(), format!("{rest}\n{TABLE}"));
        assert_eq!(remove(rest, "mcp_servers", "gw").unwrap(), None);
    }

    #[test]
    fn forms_that_cannot_be_edited_are_refused_without_being_shown() {
        for text in [
            "mcp_servers = { a = { url = \"hush\" } }\n",
            "mcp_servers = \"hush\"\n",
            "a = hush\n",
            "x = [\"hush\"\n",
        ] {
            let problem = insert(text, "mcp_servers", "gw", TABLE).unwrap_err();
            assert!(!problem.contains("hush"), "{problem}");
        }
        assert!(remove("mcp_servers.gw.url = \"hush\"\n", "mcp_servers", "gw").is_err());
    }
}
