//! Lines of the values of a file, by JSON pointer.

use std::{collections::HashMap, path::Path};

use granit_parser::{Event, Parser};
#[cfg(feature = "toml")]
use toml::de::{DeTable, DeValue};

use crate::escape;

/// Format of a file.
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
    /// The format that the extension of a file names.
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

/// Line of each value of a file. A tree, so that its size grows with the text and not with the length of the paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lines {
    /// From 1; 0 when there is no file.
    line: usize,
    /// By key, escaped as in a JSON pointer, or by the index of an item.
    below: HashMap<String, Lines>,
}

impl Lines {
    /// Reads the line of every key and item, as far as the text parses.
    pub fn of(text: &str, format: Format) -> Self {
        let mut lines = match format {
            // The YAML parser gives the places of JSON too.
            Format::Yaml | Format::Json => yaml(text),
            #[cfg(feature = "toml")]
            Format::Toml => match DeTable::parse(text) {
                Ok(table) => toml_table(1, table.get_ref(), &LineStarts::of(text)),
                Err(_) => Self::default(),
            },
        };
        lines.line = lines.line.max(1);
        lines
    }

    /// The line of the value at `pointer`, or of the nearest value around it.
    pub fn nearest(&self, pointer: &str) -> Option<usize> {
        let mut here = self;
        for part in pointer.split('/').skip(1) {
            let Some(below) = here.below.get(part) else { break };
            here = below;
        }
        (here.line > 0).then_some(here.line)
    }
}

/// A mapping or list that is being read.
struct Open {
    lines: Lines,
    is_map: bool,
    /// Of a mapping: the key whose value comes next, and its line. A key that is not plain text has no name.
    key: Option<(String, usize)>,
    items: usize,
}

impl Open {
    fn new(line: usize, is_map: bool) -> Self {
        Self { lines: Lines { line, below: HashMap::new() }, is_map, key: None, items: 0 }
    }

    /// Adds the next node: a key of a mapping, its value, or an item.
    fn add(&mut self, value: Lines, text: Option<&str>) {
        if !self.is_map {
            self.lines.below.insert(self.items.to_string(), value);
            self.items += 1;
        } else if let Some((key, line)) = self.key.take() {
            self.lines.below.insert(key, Lines { line, ..value });
        } else {
            self.key = Some((text.map(escape).unwrap_or_default(), value.line));
        }
    }
}

fn yaml(text: &str) -> Lines {
    let mut open: Vec<Open> = Vec::new();
    for event in Parser::new_from_str(text) {
        let Ok((event, span)) = event else { break };
        let line = span.start.line();
        let (whole, text) = match event {
            Event::Scalar(value, ..) => (Lines { line, below: HashMap::new() }, Some(value)),
            Event::Alias(..) => (Lines { line, below: HashMap::new() }, None),
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                open.push(Open::new(line, matches!(event, Event::MappingStart(..))));
                continue;
            }
            Event::MappingEnd | Event::SequenceEnd if open.len() == 1 => break,
            Event::MappingEnd | Event::SequenceEnd => match open.pop() {
                Some(whole) => (whole.lines, None),
                None => break,
            },
            _ => continue,
        };
        if let Some(around) = open.last_mut() {
            around.add(whole, text.as_deref());
        }
    }
    // If the text breaks off, keep the part that was read.
    while let Some(whole) = open.pop() {
        match open.last_mut() {
            Some(around) => around.add(whole.lines, None),
            None => return whole.lines,
        }
    }
    Lines::default()
}

/// Offsets at which lines begin.
#[cfg(feature = "toml")]
struct LineStarts(Vec<usize>);

#[cfg(feature = "toml")]
impl LineStarts {
    fn of(text: &str) -> Self {
        Self(text.match_indices('\n').map(|(at, _)| at + 1).collect())
    }

    fn line_at(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset) + 1
    }
}

#[cfg(feature = "toml")]
fn toml_table(line: usize, table: &DeTable<'_>, starts: &LineStarts) -> Lines {
    let below = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
        let key: &toml::Spanned<std::borrow::Cow<'_, str>> = key;
        (escape(key.get_ref()), toml_value(starts.line_at(key.span().start), value.get_ref(), starts))
    };
    Lines { line, below: table.iter().map(below).collect() }
}

#[cfg(feature = "toml")]
fn toml_value(line: usize, value: &DeValue<'_>, starts: &LineStarts) -> Lines {
    match value {
        DeValue::Table(table) => toml_table(line, table, starts),
        DeValue::Array(items) => {
            let item = |(at, item): (usize, &toml::Spanned<DeValue<'_>>)| {
                (at.to_string(), toml_value(starts.line_at(item.span().start), item.get_ref(), starts))
            };
            Lines { line, below: items.iter().enumerate().map(item).collect() }
        }
        _ => Lines { line, below: HashMap::new() },
    }
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
    fn keys_that_are_not_plain_text_do_not_shift_later_lines() {
        let lines = Lines::of("x: &a 1\n? [1, 2]\n: y\n*a : z\nb: 1\nc:\n  - 2\n", Format::Yaml);
        assert_eq!((lines.nearest("/b"), lines.nearest("/c/0")), (Some(5), Some(7)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn long_keys_around_many_items_are_not_kept_once_for_each_item() {
        let key = "k".repeat(1000);
        let mut text: String = (0..200).map(|depth| format!("{{{key}{depth}: ")).collect();
        text += &format!("[{}]{}", "1, ".repeat(5_000), "}".repeat(200));
        let lines = Lines::of(&text, Format::Yaml);
        assert_eq!(lines.nearest("/x"), Some(1));
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(peak < 300_000, "{peak} KiB for {} bytes", text.len());
    }

    #[cfg(feature = "toml")]
    #[test]
    fn the_lines_of_many_toml_keys_are_not_counted_from_the_start_for_each() {
        let text: String = (0..100_000).map(|n| format!("k{n} = 1\n")).collect();
        let started = std::time::Instant::now();
        assert_eq!(Lines::of(&text, Format::Toml).nearest("/k99999"), Some(100_000));
        assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
    }

    #[test]
    fn a_missing_value_has_the_line_of_the_nearest_value_around_it() {
        assert_eq!(Lines::of("a:\n  b: 1\n", Format::Yaml).nearest("/a/missing/deep"), Some(1));
    }
}
