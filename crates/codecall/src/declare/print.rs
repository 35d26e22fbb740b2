//! Types to TypeScript, as wordy as there is room.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
};

use super::{
    node::{Graph, Id, Node, Object, Property},
    read::quoted,
    words::{misleads, only_repeats, short, to_the_point},
};

/// The room for comments and for results.
#[derive(Debug, Clone, Copy)]
pub(super) struct Level {
    /// Characters of the tool's description.
    pub(super) about: usize,
    /// Characters of the description of a required property, and of an optional one.
    pub(super) required: usize,
    pub(super) optional: usize,
    /// Default, range and format.
    pub(super) facts: bool,
    /// Nesting of objects in a result; deeper ones are `object`.
    pub(super) depth: usize,
    /// Properties of one object in a result.
    pub(super) properties: usize,
}

/// From wordy to terse. What a call needs (names, types, what is required) stays in all of them.
pub(super) const LEVELS: [Level; 8] = [
    Level { about: 280, required: 160, optional: 120, facts: true, depth: 8, properties: 80 },
    Level { about: 160, required: 100, optional: 60, facts: true, depth: 6, properties: 60 },
    Level { about: 120, required: 60, optional: 36, facts: true, depth: 5, properties: 40 },
    Level { about: 120, required: 48, optional: 0, facts: true, depth: 4, properties: 30 },
    Level { about: 90, required: 0, optional: 0, facts: true, depth: 3, properties: 24 },
    Level { about: 70, required: 0, optional: 0, facts: false, depth: 3, properties: 16 },
    Level { about: 70, required: 0, optional: 0, facts: false, depth: 2, properties: 12 },
    Level { about: 70, required: 0, optional: 0, facts: false, depth: 1, properties: 10 },
];

/// For one tool among others.
pub(super) const BRIEF: Level =
    Level { about: 0, required: 60, optional: 30, facts: true, depth: 3, properties: 12 };

/// Longest declaration of one tool, in bytes; types that come later are `unknown`.
const LONGEST: usize = 12 * 1024;
/// Longest list of names of properties that are not shown.
const MOST_HIDDEN_BYTES: usize = 72;
/// Longest object on one line.
const LONGEST_LINE: usize = 96;

/// Prints types of a graph.
pub(super) struct Printer<'g, 's> {
    pub(super) graph: &'g Graph<'s>,
    pub(super) names: &'g HashMap<Id, String>,
    pub(super) level: Level,
    /// The types are those of a result: cut at the depth and the width of the level.
    pub(super) result: bool,
    /// Texts that stand beside the type, in lower case: comments do not repeat them.
    known: String,
    /// Receives the types whose names are written.
    used: Option<&'g RefCell<BTreeSet<Id>>>,
    out: String,
}

impl<'g, 's> Printer<'g, 's> {
    pub(super) fn new(
        graph: &'g Graph<'s>,
        names: &'g HashMap<Id, String>,
        level: Level,
        result: bool,
    ) -> Self {
        Self { graph, names, level, result, known: String::new(), used: None, out: String::new() }
    }

    /// For types that stand beside the name and a description of `tool`.
    pub(super) fn beside(mut self, tool: &str, about: &str) -> Self {
        self.known = format!("{tool} {about}").to_lowercase();
        self
    }

    /// Adds the types whose names are written to `used`.
    pub(super) fn noting(self, used: &'g RefCell<BTreeSet<Id>>) -> Self {
        Self { used: Some(used), ..self }
    }

    /// The type itself, not its name.
    pub(super) fn in_place(mut self, id: Id) -> String {
        self.body(id, 0, 0);
        self.out
    }

    /// The type, by its name if it has one.
    pub(super) fn by_name(mut self, id: Id) -> String {
        self.of(id, 0, 0);
        self.out
    }

    fn of(&mut self, id: Id, indent: usize, depth: usize) {
        match self.names.get(&id) {
            Some(name) => {
                self.out.push_str(name);
                self.note(id);
            }
            None => self.body(id, indent, depth),
        }
    }

    fn note(&self, id: Id) {
        if let Some(used) = self.used {
            used.borrow_mut().insert(id);
        }
    }

    fn body(&mut self, id: Id, indent: usize, depth: usize) {
        if self.out.len() > LONGEST {
            self.out.push_str("unknown");
            return;
        }
        match self.graph.get(id) {
            Node::Text(text) => self.out.push_str(text),
            Node::Named(name) => {
                self.out.push_str(name);
                let of_name = self.names.iter().find(|(_, own)| *own == name);
                of_name.into_iter().for_each(|(id, _)| self.note(*id));
            }
            Node::Array(of) => {
                let is_compound = !self.names.contains_key(of)
                    && matches!(self.graph.get(*of), Node::Union(_) | Node::Intersection(_));
                if is_compound {
                    self.out.push('(');
                }
                self.of(*of, indent, depth);
                self.out.push_str(if is_compound { ")[]" } else { "[]" });
            }
            Node::Tuple(parts) => {
                self.out.push('[');
                self.joined(parts, ", ", indent, depth);
                self.out.push(']');
            }
            Node::Record(of) => {
                self.out.push_str("Record<string, ");
                self.of(*of, indent, depth);
                self.out.push('>');
            }
            Node::Union(options) => self.joined(options, " | ", indent, depth),
            Node::Intersection(parts) => {
                for (at, part) in parts.iter().enumerate() {
                    if at > 0 {
                        self.out.push_str(" & ");
                    }
                    let is_union =
                        !self.names.contains_key(part) && matches!(self.graph.get(*part), Node::Union(_));
                    self.out.push_str(if is_union { "(" } else { "" });
                    self.of(*part, indent, depth);
                    self.out.push_str(if is_union { ")" } else { "" });
                }
            }
            Node::Object(_) if self.result && depth >= self.level.depth => self.out.push_str("object"),
            Node::Object(object) => self.object(object, indent, depth),
        }
    }

    fn joined(&mut self, parts: &[Id], between: &str, indent: usize, depth: usize) {
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                self.out.push_str(between);
            }
            self.of(*part, indent, depth);
        }
    }

    /// The properties that there is room for, in their order. Of results, addresses for machines give way first.
    fn shown<'o>(&self, object: &'o Object<'s>) -> Vec<&'o Property<'s>> {
        let all = || object.properties.iter();
        let most = if self.result { self.level.properties } else { usize::MAX };
        let excess = object.properties.len().saturating_sub(most);
        let mut left_out = all().filter(|property| is_link(property.name)).count().min(excess);
        let kept = all().filter(|property| {
            let goes = left_out > 0 && is_link(property.name);
            left_out -= usize::from(goes);
            !goes
        });
        kept.take(most).collect()
    }

    /// On one line if it is short and nothing is said of its properties, else one property to a line.
    fn object(&mut self, object: &Object<'s>, indent: usize, depth: usize) {
        let shown = self.shown(object);
        let more = object.more + object.properties.len() - shown.len();
        let start = self.out.len();
        let comments: Vec<String> = shown.iter().map(|property| self.comment(property)).collect();
        let note = note(object, &shown, more);
        if note.is_none() && comments.iter().all(String::is_empty) {
            self.inline(object, &shown, indent, depth);
            let line = &self.out[start..];
            if line.len() <= LONGEST_LINE || !line.contains('\n') {
                return;
            }
            self.out.truncate(start);
        }
        self.out.push_str("{\n");
        if let Some(note) = note {
            self.margin(indent + 1);
            self.out.push_str(&format!("// {note}\n"));
        }
        for (property, comment) in shown.into_iter().zip(comments) {
            self.margin(indent + 1);
            self.property(property, indent + 1, depth);
            self.out.push(';');
            if !comment.is_empty() {
                self.out.push_str(" // ");
                self.out.push_str(&comment);
            }
            self.out.push('\n');
        }
        if let Some(rest) = object.rest {
            self.margin(indent + 1);
            self.rest(rest, indent + 1, depth);
            self.out.push_str(";\n");
        }
        self.margin(indent);
        self.out.push('}');
    }

    fn inline(&mut self, object: &Object<'s>, shown: &[&Property<'s>], indent: usize, depth: usize) {
        self.out.push_str("{ ");
        for (at, property) in shown.iter().enumerate() {
            self.out.push_str(if at > 0 { "; " } else { "" });
            self.property(property, indent + 1, depth);
        }
        if let Some(rest) = object.rest {
            self.out.push_str("; ");
            self.rest(rest, indent + 1, depth);
        }
        self.out.push_str(" }");
    }

    fn property(&mut self, property: &Property<'s>, indent: usize, depth: usize) {
        match is_identifier(property.name) {
            true => self.out.push_str(property.name),
            false => self.out.push_str(&quoted(property.name)),
        }
        self.out.push_str(if property.optional { "?: " } else { ": " });
        self.of(property.of, indent, depth + 1);
    }

    fn rest(&mut self, rest: Id, indent: usize, depth: usize) {
        self.out.push_str("[name: string]: unknown");
        if !matches!(self.graph.get(rest), Node::Text(text) if text == "unknown") {
            self.out.push_str(" /* ");
            self.of(rest, indent, depth + 1);
            self.out.push_str(" */");
        }
    }

    fn comment(&self, property: &Property<'s>) -> String {
        let most = if property.optional { self.level.optional } else { self.level.required };
        let about = match most {
            0 => String::new(),
            _ if self.result => short(to_the_point(property.about), most / 2),
            _ => short(to_the_point(property.about), most),
        };
        let about = if only_repeats(&about, property.name, &self.known) { String::new() } else { about };
        let facts = if self.level.facts && !self.result { property.facts.as_str() } else { "" };
        match (about.is_empty(), facts.is_empty()) {
            (true, _) => plain(facts),
            (false, true) => plain(about.trim_end_matches('.')),
            (false, false) => plain(&format!("{}; {facts}", about.trim_end_matches(['.', ';']))),
        }
    }

    fn margin(&mut self, indent: usize) {
        self.out.extend(std::iter::repeat_n(' ', indent));
    }
}

/// The rule of an object, and the names of properties that are not shown, as far as there is room: `also body, closed_at, 12 more`.
fn note(object: &Object<'_>, shown: &[&Property<'_>], mut more: usize) -> Option<String> {
    let is_hidden = |name: &&str| !is_link(name) && !shown.iter().any(|property| property.name == *name);
    let hidden = object.properties.iter().map(|property| property.name).filter(is_hidden);
    let mut also = String::new();
    for name in hidden.take_while(|name| is_identifier(name)) {
        if also.len() + name.len() > MOST_HIDDEN_BYTES {
            break;
        }
        also.push_str(if also.is_empty() { "also " } else { ", " });
        also.push_str(name);
        more -= 1;
    }
    let more = match (also.is_empty(), more) {
        (true, 0) => None,
        (true, more) => Some(format!("{more} more")),
        (false, 0) => Some(also),
        (false, more) => Some(format!("{also}, {more} more")),
    };
    match (object.rule.as_deref().map(plain), more) {
        (Some(rule), Some(more)) => Some(format!("{rule}; {more}")),
        (rule, more) => rule.or(more),
    }
}

/// A text that ends no comment, its own or one around it, and begins no line.
pub(super) fn plain(text: &str) -> String {
    let safe = |c: char| if misleads(c) { ' ' } else { c };
    let text: String = text.chars().map(safe).collect();
    if text.contains("*/") { text.replace("*/", "* /") } else { text }
}

/// Returns `true` for names of addresses that a script hardly reads, such as `events_url`, and of ids that nothing takes.
fn is_link(name: &str) -> bool {
    ["_url", "_urls", "Url"].iter().any(|end| name.ends_with(end) && name != "html_url")
        || matches!(name, "url" | "node_id" | "_links")
}

fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_' || c == '$')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
}
