//! Adds an app to the text of a YAML file. The caller compares the result with what it should be.

use granit_parser::{Event, Parser};
use serde_json::{Map, Value};

use super::literal;

/// The text with one more app at the end of `apps`; `None` if its place cannot be found.
pub(super) fn insert(text: &str, id: &str, keys: &Map<String, Value>) -> Option<String> {
    let line_break = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let block = |indent: &str| app(id, keys, indent).replace('\n', line_break);
    match place(text)? {
        Place::Nowhere { is_empty } => {
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { line_break };
            let gap = if is_empty { "" } else { line_break };
            Some(format!("{text}{end}{gap}apps:{line_break}{}", block("  ")))
        }
        Place::Empty { start, end } => {
            let rest = text[end..].find('\n').map_or(text.len(), |length| end + length + 1);
            let comment = text[end..rest].trim_end();
            let key = text[..start].trim_end();
            Some(format!("{key}{comment}{line_break}{}{}", block("  "), &text[rest..]))
        }
        Place::Block { indent, end } => {
            let at = end_of_lines(text, end, indent);
            let gap = if text[..at].ends_with('\n') { "" } else { line_break };
            Some(format!("{}{gap}{}{}", &text[..at], block(&" ".repeat(indent)), &text[at..]))
        }
        Place::Flow { close } => {
            let before = text[..close].trim_end();
            let comma = if before.ends_with('{') { "" } else { "," };
            Some(format!(
                "{before}{comma} {}: {} {}",
                scalar(id),
                flow(&Value::Object(keys.clone())),
                &text[close..]
            ))
        }
    }
}

/// The lines of an app.
pub fn app(id: &str, keys: &Map<String, Value>, indent: &str) -> String {
    let mut text = format!("{indent}{}:\n", scalar(id));
    for (key, value) in keys {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                text.push_str(&format!("{indent}  {key}:\n"));
                for (name, value) in fields {
                    text.push_str(&format!("{indent}    {}: {}\n", scalar(name), quoted(value)));
                }
            }
            value => text.push_str(&format!("{indent}  {key}: {}\n", flow(value))),
        }
    }
    text
}

fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(items) => format!("[{}]", items.iter().map(quoted).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("{}: {}", scalar(key), flow(value))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        value => literal(value),
    }
}

/// A value with its text in quotes.
fn quoted(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => flow(value),
        value => literal(value),
    }
}

/// Text without quotes where it cannot be taken for anything else.
fn scalar(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '.' | '_'))
        && text.len() > 3
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_./-".contains(c))
        && text.chars().any(|c| c.is_ascii_alphabetic())
        && !["true", "false", "null"].contains(&text.to_ascii_lowercase().as_str())
        && !text.starts_with("...");
    let is_word = (2..=3).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphabetic())
        && !["yes", "no", "on", "off"].contains(&text.to_ascii_lowercase().as_str());
    if is_plain || is_word { text.to_owned() } else { literal(&Value::from(text)) }
}

/// The place of the apps in a file.
enum Place {
    /// There is no key `apps`.
    Nowhere { is_empty: bool },
    /// Its value, from `start` to `end`, is nothing or `{}`.
    Empty { start: usize, end: usize },
    /// A mapping with a key on each line, indented by `indent`, whose last value ends at `end`.
    Block { indent: usize, end: usize },
    /// A mapping in braces, of which the last is at `close`.
    Flow { close: usize },
}

fn place(text: &str) -> Option<Place> {
    // Below `apps`: depth 2 are its keys and values.
    let (mut depth, mut is_key, mut inside, mut any) = (0_usize, true, false, false);
    let (mut start, mut end, mut indent, mut is_flow, mut key_end) = (0, 0, None, false, 0);
    for event in Parser::new_from_str(text) {
        let (event, span) = event.ok()?;
        let (from, to) = (span.start.byte_offset()?, span.end.byte_offset()?);
        match event {
            Event::Scalar(value, ..) => {
                any = true;
                if depth == 1 && is_key {
                    inside = value == "apps" && indent.is_none() && start == 0;
                    key_end = to;
                } else if depth == 1 && inside {
                    let colon = key_end + text[key_end..].find(':')? + 1;
                    return (text[from..to].trim().is_empty())
                        .then_some(Place::Empty { start: colon, end: colon });
                } else if inside && depth == 2 && indent.is_none() {
                    indent = Some(span.start.col());
                }
                if inside && depth >= 2 {
                    end = to;
                }
                if depth == 1 {
                    is_key = !is_key;
                }
            }
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                if depth == 0 {
                    if !matches!(event, Event::MappingStart(..)) || text[from..].starts_with('{') {
                        return None;
                    }
                    any = true;
                } else if depth == 1 && inside && !is_key {
                    is_flow = text[from..].starts_with('{');
                    start = from;
                }
                depth += 1;
            }
            Event::MappingEnd | Event::SequenceEnd => {
                depth -= 1;
                if inside && depth >= 2 && text[..to].ends_with(['}', ']']) {
                    end = end.max(to);
                }
                if depth == 1 {
                    if inside && !is_key {
                        return Some(match (is_flow, indent) {
                            (true, None) => Place::Empty { start, end: to },
                            (true, Some(_)) => Place::Flow { close: to.checked_sub(1)? },
                            (false, Some(indent)) => Place::Block { indent, end },
                            (false, None) => return None,
                        });
                    }
                    is_key = !is_key;
                }
            }
            Event::Alias(..) if depth == 1 => is_key = !is_key,
            _ => {}
        }
    }
    Some(Place::Nowhere { is_empty: !any })
}

/// The end of the line of `end`, and of the comments after it that are indented like an app.
fn end_of_lines(text: &str, end: usize, indent: usize) -> usize {
    let line_end = |at: usize| text[at..].find('\n').map_or(text.len(), |length| at + length + 1);
    let mut at = if text[..end].ends_with('\n') { end } else { line_end(end) };
    while at < text.len() {
        let line = &text[at..line_end(at)];
        let spaces = line.len() - line.trim_start_matches(' ').len();
        if spaces < indent || !line.trim_start().starts_with('#') {
            break;
        }
        at = line_end(at);
    }
    at
}
