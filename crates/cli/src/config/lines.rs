//! On which line of a file each value is, by JSON pointer.

use std::collections::HashMap;

use granit_parser::{Event, Parser};
use toml::de::{DeTable, DeValue};

use super::{Format, findings::escape};

pub(super) type Lines = HashMap<String, usize>;

/// The line of every key and item; empty when the text does not parse.
pub(super) fn of(text: &str, format: Format) -> Lines {
    let mut lines = Lines::new();
    match format {
        // JSON is YAML as far as places go.
        Format::Yaml | Format::Json => yaml(text, &mut lines),
        Format::Toml => {
            if let Ok(table) = DeTable::parse(text) {
                toml_table(table.get_ref(), "", text, &mut lines);
            }
        }
    }
    lines
}

/// The line of the value at `pointer`, or of the nearest value around it.
pub(super) fn nearest(lines: &Lines, pointer: &str) -> Option<usize> {
    let mut pointer = pointer;
    loop {
        if let Some(line) = lines.get(pointer) {
            return Some(*line);
        }
        pointer = &pointer[..pointer.rfind('/')?];
    }
}

enum Frame {
    Map { path: String, key: Option<String> },
    List { path: String, next: usize },
}

impl Frame {
    /// The path of the value that comes next.
    fn child(&mut self) -> String {
        match self {
            Self::Map { path, key } => format!("{path}/{}", escape(&key.take().unwrap_or_default())),
            Self::List { path, next } => {
                *next += 1;
                format!("{path}/{}", *next - 1)
            }
        }
    }
}

fn yaml(text: &str, lines: &mut Lines) {
    let mut stack: Vec<Frame> = Vec::new();
    for event in Parser::new_from_str(text) {
        let Ok((event, span)) = event else { return };
        let line = span.start.line();
        match event {
            Event::Scalar(value, ..) => match stack.last_mut() {
                Some(Frame::Map { path, key: key @ None }) => {
                    lines.insert(format!("{path}/{}", escape(&value)), line);
                    *key = Some(value.into_owned());
                }
                Some(frame) => {
                    lines.entry(frame.child()).or_insert(line);
                }
                None => {}
            },
            Event::Alias(..) => {
                if let Some(frame) = stack.last_mut() {
                    frame.child();
                }
            }
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                let path = stack.last_mut().map(Frame::child).unwrap_or_default();
                lines.entry(path.clone()).or_insert(line);
                stack.push(if matches!(event, Event::MappingStart(..)) {
                    Frame::Map { path, key: None }
                } else {
                    Frame::List { path, next: 0 }
                });
            }
            Event::MappingEnd | Event::SequenceEnd => {
                stack.pop();
            }
            _ => {}
        }
    }
}

fn toml_table(table: &DeTable<'_>, path: &str, text: &str, lines: &mut Lines) {
    for (key, value) in table {
        let path = format!("{path}/{}", escape(key.get_ref()));
        lines.insert(path.clone(), line_at(text, key.span().start));
        toml_value(value.get_ref(), &path, text, lines);
    }
}

fn toml_value(value: &DeValue<'_>, path: &str, text: &str, lines: &mut Lines) {
    match value {
        DeValue::Table(table) => toml_table(table, path, text, lines),
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let path = format!("{path}/{index}");
                lines.insert(path.clone(), line_at(text, item.span().start));
                toml_value(item.get_ref(), &path, text, lines);
            }
        }
        _ => {}
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_knows_its_lines() {
        let yaml = "info:\n  name: a\napps:\n  crm:\n    args:\n      - x\n      - y\n";
        let lines = of(yaml, Format::Yaml);
        assert_eq!(lines["/info/name"], 2);
        assert_eq!(lines["/apps/crm/args/1"], 7);
        let json = "{\n  \"apps\": {\n    \"crm\": {}\n  }\n}";
        assert_eq!(of(json, Format::Json)["/apps/crm"], 3);
        let toml = "[info]\nname = \"a\"\n\n[apps.crm]\nbuiltin = \"crm\"\n";
        assert_eq!(of(toml, Format::Toml)["/apps/crm/builtin"], 5);
    }

    #[test]
    fn what_is_missing_is_looked_for_around_its_place() {
        let lines = of("a:\n  b: 1\n", Format::Yaml);
        assert_eq!(nearest(&lines, "/a/missing/deep"), Some(1));
    }
}
