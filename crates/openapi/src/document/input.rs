//! The input of a tool: parameters and fields of the body, side by side.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{
    bounded::{Schemas, Written},
    json::{object, size_of_json},
    schema::{Direction, Pass},
    sources::{Identity, Node},
};

/// Longest name of an argument; clients accept no longer one.
const LONGEST_NAME: usize = 64;

/// An argument.
pub(super) struct Argument<'d> {
    pub(super) name: Arc<str>,
    pub(super) schema: ArgumentSchema<'d>,
    /// In place of the description of the schema.
    pub(super) description: Option<String>,
    pub(super) required: bool,
    pub(super) deprecated: bool,
    /// An example of the parameter.
    pub(super) example: Option<&'d Value>,
}

/// The schema of an argument.
#[derive(Clone, Copy)]
pub(super) enum ArgumentSchema<'d> {
    /// One of the document.
    Of(Node<'d>),
    /// An array of those.
    ListOf(Node<'d>),
    /// Any value.
    Any,
    /// Any text.
    Text,
    /// A file.
    File,
    /// Several files.
    Files,
}

/// Arguments that have no name in the document.
#[derive(Clone, Copy)]
pub(super) enum Open<'d> {
    /// There are none.
    Closed,
    /// Any.
    Any,
    /// Those that fit.
    Of(Node<'d>),
}

/// All arguments.
pub(super) struct Input<'d> {
    pub(super) arguments: Vec<Argument<'d>>,
    pub(super) open: Open<'d>,
    /// An `anyOf` or `oneOf` that says which arguments go together.
    pub(super) choices: Vec<(&'static str, Node<'d>)>,
    pub(super) example: Option<Value>,
}

const FILE: &str = "A file: base64, or a data: URI";

impl<'d> Input<'d> {
    /// The input schema; none where even its outline is longer than `limit`.
    pub(super) fn schema(&self, schemas: &Schemas<'_, 'd>, limit: usize) -> Option<Written> {
        schemas.write(Direction::Input, limit, &|pass| self.root(pass))
    }

    /// Digest of all that the schema is made from: inputs with the same one have the same schema.
    pub(super) fn digest(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        let mut add = |part: &[u8]| {
            digest.update(part.len().to_le_bytes());
            digest.update(part);
        };
        let of =
            |node: Option<Node<'_>>| node.map_or([0; size_of::<usize>()], |node| node.identity().bytes());
        for argument in &self.arguments {
            let (kind, node) = match argument.schema {
                ArgumentSchema::Of(node) => (0, Some(node)),
                ArgumentSchema::ListOf(node) => (1, Some(node)),
                ArgumentSchema::Any => (2, None),
                ArgumentSchema::Text => (3, None),
                ArgumentSchema::File => (4, None),
                ArgumentSchema::Files => (5, None),
            };
            add(argument.name.as_bytes());
            add(&[kind, u8::from(argument.required), u8::from(argument.deprecated)]);
            add(&of(node));
            add(argument.description.as_deref().unwrap_or_default().as_bytes());
            add(&argument.example.map_or([0; size_of::<usize>()], |example| Identity::of(example).bytes()));
        }
        for (key, node) in &self.choices {
            add(key.as_bytes());
            add(&of(Some(*node)));
        }
        match self.open {
            Open::Closed => add(b"closed"),
            Open::Any => add(b"any"),
            Open::Of(node) => add(&of(Some(node))),
        }
        add(self.example.as_ref().map(Value::to_string).unwrap_or_default().as_bytes());
        digest.finalize().into()
    }

    fn root(&self, pass: &mut Pass<'_, 'd>) -> Vec<(String, Value)> {
        let mut properties = Vec::with_capacity(self.arguments.len());
        let mut required = Vec::new();
        pass.count(60);
        for argument in &self.arguments {
            pass.count(argument.name.len() + 5);
            if argument.required {
                pass.count(argument.name.len() + 3);
                required.push(Value::from(&*argument.name));
            }
            properties.push((argument.name.to_string(), argument.schema(pass)));
            if pass.is_over() {
                return Vec::new();
            }
        }
        let mut root = vec![
            ("type".to_owned(), "object".into()),
            ("properties".to_owned(), Value::Object(object(properties))),
        ];
        if !required.is_empty() {
            root.push(("required".to_owned(), Value::Array(required)));
        }
        for (key, choice) in &self.choices {
            let alternatives: Vec<Value> = choice.items().map(|part| pass.schema(part, 0, "")).collect();
            root.push(((*key).to_owned(), Value::Array(alternatives)));
        }
        match self.open {
            Open::Closed => root.push(("additionalProperties".to_owned(), false.into())),
            Open::Any => {}
            Open::Of(node) => root.push(("additionalProperties".to_owned(), pass.schema(node, 1, ""))),
        }
        if let Some(example) = &self.example {
            pass.count(size_of_json(example));
            root.push(("examples".to_owned(), Value::Array(vec![example.clone()])));
        }
        root
    }
}

impl<'d> Argument<'d> {
    fn schema(&self, pass: &mut Pass<'_, 'd>) -> Value {
        let text = |members: &[(&str, &str)]| {
            let members = members.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value)));
            members.collect::<Vec<_>>()
        };
        let mut members = match self.schema {
            ArgumentSchema::Of(node) => match pass.schema(node, 1, &self.name) {
                Value::Object(members) => members.into_iter().collect(),
                // `false`: nothing fits. Nothing is left to describe.
                other => return other,
            },
            ArgumentSchema::ListOf(node) => {
                let items = pass.schema(node, 2, "");
                vec![("type".to_owned(), "array".into()), ("items".to_owned(), items)]
            }
            ArgumentSchema::Any => Vec::new(),
            ArgumentSchema::Text => text(&[("type", "string")]),
            ArgumentSchema::File => text(&[("type", "string"), ("description", FILE)]),
            ArgumentSchema::Files => {
                let items = object(text(&[("type", "string"), ("description", FILE)]));
                vec![("type".to_owned(), "array".into()), ("items".to_owned(), Value::Object(items))]
            }
        };
        if let Some(description) =
            self.description.as_deref().filter(|text| !text.is_empty() && !pass.is_terse())
        {
            pass.count(description.len() + 18);
            let is_file = matches!(self.schema, ArgumentSchema::File);
            let whole = match is_file {
                true => format!("{}. {FILE}", description.trim_end_matches('.')),
                false => description.to_owned(),
            };
            match members.iter_mut().find(|(key, _)| key == "description") {
                Some((_, value)) => *value = whole.into(),
                None => members.push(("description".to_owned(), whole.into())),
            }
        }
        let has = |members: &[(String, Value)], key: &str| members.iter().any(|(other, _)| other == key);
        if self.deprecated && !has(&members, "deprecated") {
            members.push(("deprecated".to_owned(), true.into()));
        }
        if let Some(example) = self.example.filter(|_| !has(&members, "examples") && !pass.is_terse()) {
            pass.count(size_of_json(example) + 14);
            members.push(("examples".to_owned(), Value::Array(vec![example.clone()])));
        }
        Value::Object(object(members))
    }
}

/// Names of arguments, each used once. The first that asks for a name gets it.
#[derive(Default)]
pub(super) struct ArgumentNames {
    taken: HashSet<Arc<str>>,
    /// Numbers of which all lower ones are taken, by what stands in front of them.
    numbers: HashMap<String, usize>,
}

impl ArgumentNames {
    /// The name of an argument called `name` in the request, or, where another has that, the name with `place` in front: `body_id`.
    pub(super) fn take(&mut self, name: &str, place: &str) -> Arc<str> {
        let plain = argument_name(name);
        let qualified = argument_name(&format!("{place}_{plain}"));
        let free = [&plain, &qualified].into_iter().find(|name| !self.taken.contains(&***name)).cloned();
        let name: Arc<str> = free.unwrap_or_else(|| self.numbered(&qualified)).into();
        self.taken.insert(Arc::clone(&name));
        name
    }

    /// A name with the lowest number that is free.
    fn numbered(&mut self, name: &str) -> String {
        // Numbers have a digit or more.
        let first = self.numbers.entry(clip(name, LONGEST_NAME - 2).to_owned()).or_insert(2);
        loop {
            let number = format!("_{first}");
            let numbered = format!("{}{number}", clip(name, LONGEST_NAME - number.len()));
            *first += 1;
            if !self.taken.contains(&*numbered) {
                return numbered;
            }
        }
    }
}

/// `name` in the characters that clients accept: letters, digits, `_`, `-` and `.`.
fn argument_name(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if name.chars().all(fits) && !name.is_empty() {
        return clip(name, LONGEST_NAME).to_owned();
    }
    let parts = name.split(|c| !fits(c)).filter(|part| !part.is_empty());
    let joined = parts.collect::<Vec<_>>().join("_");
    match joined.is_empty() {
        true => "argument".to_owned(),
        false => clip(&joined, LONGEST_NAME).to_owned(),
    }
}

fn clip(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_argument_has_a_name_of_its_own() {
        let mut names = ArgumentNames::default();
        let mut take = |name: &str, place: &str| names.take(name, place).to_string();
        assert_eq!(take("id", "path"), "id");
        assert_eq!(take("id", "query"), "query_id");
        assert_eq!(take("id", "body"), "body_id");
        assert_eq!(take("body_id", "body"), "body_body_id");
        assert_eq!(take("filter[name]", "query"), "filter_name");
        assert_eq!(take("filter.name", "query"), "filter.name");
        assert_eq!(take("filter name", "query"), "query_filter_name");
        assert_eq!(take("filter(name)", "query"), "query_filter_name_2");
        assert_eq!(take("ids[]", "query"), "ids");
        assert_eq!(take("$filter", "query"), "filter");
        assert_eq!(take("名", "query"), "argument");
        assert_eq!(take(&"x".repeat(70), "query"), "x".repeat(64));
        assert_eq!(take(&"x".repeat(71), "query").len(), 64);
    }

    #[test]
    fn numbers_of_equal_names_go_on_where_they_were() {
        let mut names = ArgumentNames::default();
        let all: HashSet<Arc<str>> = (0..3_000).map(|_| names.take("名", "body")).collect();
        assert_eq!(all.len(), 3_000);
        assert_eq!(names.numbers["body_argument"], 3_000);
        assert_eq!(&*names.take(&"x".repeat(64), "body"), "x".repeat(64));
    }
}
