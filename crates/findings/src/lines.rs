//! On which line of a file each value is, by JSON pointer.

use std::{collections::HashMap, path::Path};

use granit_parser::{Event, Parser};
#[cfg(feature = "toml")]
use toml::de::{DeTable, DeValue};

use crate::escape;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `.yaml`, `.yml`
    Yaml,
    /// `.json`
    Json,
    /// `.toml`
    #[cfg(feature = "toml")]
    Toml,
}

impl Format {
    /// The format a file's extension names.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "yaml" | "yml" => Some(Self::Yaml),
            "json" => Some(Self::Json),
            #[cfg(feature = "toml")]
            "toml" => Some(Self::Toml),
            _ => None,
        }
    }
}

/// On which line each value of a file is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lines(HashMap<String, usize>);

impl Lines {
    /// The line of every key and item; empty when the text does not parse.
    pub fn of(text: &str, format: Format) -> Self {
        let mut lines = HashMap::new();
        match format {
            // JSON is YAML as far as places go.
            Format::Yaml | Format::Json => yaml(text, &mut lines),
            #[cfg(feature = "toml")]
            Format::Toml => {
                if let Ok(table) = DeTable::parse(text) {
                    toml_table(table.get_ref(), "", text, &mut lines);
                }
            }
        }
        Self(lines)
    }

    /// The line of the value at `pointer`, or of the nearest value around it.
    pub fn nearest(&self, pointer: &str) -> Option<usize> {
        let mut pointer = pointer;
        loop {
            if let Some(line) = self.0.get(pointer) {
                return Some(*line);
            }
            pointer = &pointer[..pointer.rfind('/')?];
        }
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

fn yaml(text: &str, lines: &mut HashMap<String, usize>) {
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

#[cfg(feature = "toml")]
fn toml_table(table: &DeTable<'_>, path: &str, text: &str, lines: &mut HashMap<String, usize>) {
    for (key, value) in table {
        let path = format!("{path}/{}", escape(key.get_ref()));
        lines.insert(path.clone(), line_at(text, key.span().start));
        toml_value(value.get_ref(), &path, text, lines);
    }
}

#[cfg(feature = "toml")]
fn toml_value(value: &DeValue<'_>, path: &str, text: &str, lines: &mut HashMap<String, usize>) {
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

#[cfg(feature = "toml")]
fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_and_item_has_its_line() {
        let lines =
            Lines::of("info:\n  name: a\napps:\n  crm:\n    args:\n      - x\n      - y\n", Format::Yaml);
        assert_eq!((lines.nearest("/info/name"), lines.nearest("/apps/crm/args/1")), (Some(2), Some(7)));
        let lines = Lines::of("{\n  \"apps\": {\n    \"crm\": {}\n  }\n}", Format::Json);
        assert_eq!(lines.nearest("/apps/crm"), Some(3));
    }

    #[cfg(feature = "toml")]
    #[test]
    fn toml_has_lines_too() {
        let lines = Lines::of("[info]\nname = \"a\"\n\n[apps.crm]\nbuiltin = \"crm\"\n", Format::Toml);
        assert_eq!(lines.nearest("/apps/crm/builtin"), Some(5));
    }

    #[test]
    fn what_is_missing_is_looked_for_around_its_place() {
        assert_eq!(Lines::of("a:\n  b: 1\n", Format::Yaml).nearest("/a/missing/deep"), Some(1));
    }
}
