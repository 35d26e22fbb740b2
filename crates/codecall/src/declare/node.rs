//! Types as a graph in which equal types are one node, so that a type that is used twice is found by its number.

use std::{borrow::Cow, collections::HashMap};

/// Number of a node.
pub(super) type Id = usize;

/// One type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Node<'s> {
    /// A keyword or a literal.
    Text(Cow<'s, str>),
    Array(Id),
    Tuple(Vec<Id>),
    /// An object whose keys are data.
    Record(Id),
    Union(Vec<Id>),
    Intersection(Vec<Id>),
    Object(Object<'s>),
    /// A type that contains itself, by its name.
    Named(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Object<'s> {
    pub(super) properties: Vec<Property<'s>>,
    /// The type of other properties, where the schema gives one.
    pub(super) rest: Option<Id>,
    /// A rule over several properties.
    pub(super) rule: Option<String>,
    /// Properties that are left out.
    pub(super) more: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Property<'s> {
    pub(super) name: &'s str,
    pub(super) optional: bool,
    pub(super) of: Id,
    pub(super) about: &'s str,
    /// Default, range, format and the like.
    pub(super) facts: String,
}

/// The types of one answer.
#[derive(Debug, Default)]
pub(super) struct Graph<'s> {
    nodes: Vec<Node<'s>>,
    ids: HashMap<Node<'s>, Id>,
    /// Likely names, the first that was suggested for each node.
    hints: HashMap<Id, String>,
    /// Types that contain themselves: name, schema, and node once it is known.
    pub(super) recursive: Vec<(String, &'s serde_json::Value, Option<Id>)>,
}

impl<'s> Graph<'s> {
    pub(super) fn add(&mut self, node: Node<'s>) -> Id {
        if let Some(id) = self.ids.get(&node) {
            return *id;
        }
        let id = self.nodes.len();
        self.nodes.push(node.clone());
        self.ids.insert(node, id);
        id
    }

    pub(super) fn text(&mut self, text: impl Into<Cow<'s, str>>) -> Id {
        self.add(Node::Text(text.into()))
    }

    /// A union of `options`, without repetitions; the option itself when there is one.
    pub(super) fn union(&mut self, options: impl IntoIterator<Item = Id>) -> Id {
        let mut flat: Vec<Id> = Vec::new();
        for option in options {
            match &self.nodes[option] {
                Node::Union(inner) => flat.extend(inner.iter().copied()),
                _ => flat.push(option),
            }
        }
        let mut seen = std::collections::HashSet::new();
        flat.retain(|id| seen.insert(*id));
        let is_unknown = |id: &Id| matches!(&self.nodes[*id], Node::Text(text) if text == "unknown");
        if let Some(unknown) = flat.iter().copied().find(is_unknown) {
            return unknown;
        }
        match flat.as_slice() {
            [] => self.text("unknown"),
            [only] => *only,
            _ => self.add(Node::Union(flat)),
        }
    }

    pub(super) fn hint(&mut self, id: Id, name: &str) {
        self.hints.entry(id).or_insert_with(|| name.to_owned());
    }

    pub(super) fn get(&self, id: Id) -> &Node<'s> {
        &self.nodes[id]
    }

    /// Names for types that are used more than once and for those that contain themselves.
    ///
    /// The inputs themselves get none: they are read in place.
    pub(super) fn names(&self, inputs: &[Id], results: &[Id]) -> HashMap<Id, String> {
        let mut uses = vec![0_u32; self.nodes.len()];
        let mut open: Vec<Id> = inputs.iter().chain(results).copied().collect();
        let mut order = Vec::new();
        while let Some(id) = open.pop() {
            uses[id] += 1;
            if uses[id] == 1 {
                order.push(id);
                self.each_part(id, |part| open.push(part));
            }
        }
        let mut names: HashMap<Id, String> = HashMap::new();
        let mut taken: Vec<String> = TAKEN.iter().map(|name| (*name).to_owned()).collect();
        for (name, _, id) in &self.recursive {
            taken.push(name.clone());
            if let Some(id) = id {
                names.entry(*id).or_insert_with(|| name.clone());
            }
        }
        order.sort_unstable();
        for id in order {
            let shared = uses[id] > 1 && !inputs.contains(&id) && self.is_worth_a_name(id);
            if shared && !names.contains_key(&id) {
                let name = free(&pascal(self.hints.get(&id).map_or("", String::as_str)), &taken);
                taken.push(name.clone());
                names.insert(id, name);
            }
        }
        names
    }

    fn is_worth_a_name(&self, id: Id) -> bool {
        match &self.nodes[id] {
            Node::Object(object) => object.properties.len() > 1,
            Node::Union(options) => options.len() > 4,
            _ => false,
        }
    }

    fn each_part(&self, id: Id, mut each: impl FnMut(Id)) {
        match &self.nodes[id] {
            Node::Text(_) | Node::Named(_) => {}
            Node::Array(of) | Node::Record(of) => each(*of),
            Node::Tuple(parts) | Node::Union(parts) | Node::Intersection(parts) => {
                parts.iter().for_each(|part| each(*part));
            }
            Node::Object(object) => {
                object.properties.iter().map(|property| property.of).chain(object.rest).for_each(each);
            }
        }
    }
}

/// Names that TypeScript or the answer itself uses.
const TAKEN: [&str; 11] = [
    "Tools", "Promise", "Record", "Array", "Object", "String", "Number", "Boolean", "Function", "Symbol",
    "Date",
];

/// `name` or the first of `name2`, `name3` … that is not taken.
pub(super) fn free(name: &str, taken: &[String]) -> String {
    let is_free = |candidate: &String| !taken.contains(candidate);
    let numbered = (2_u32..).map(|number| format!("{name}{number}"));
    std::iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
}

/// A name as types are named: letters and digits of its words, each with a capital.
pub(super) fn pascal(name: &str) -> String {
    const LONGEST: usize = 32;
    let mut out = String::new();
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    for word in words {
        let (first, rest) = word.split_at(1);
        if out.len() + word.len() > LONGEST {
            break;
        }
        out.push_str(&first.to_ascii_uppercase());
        out.push_str(rest);
    }
    if out.starts_with(|c: char| c.is_ascii_alphabetic()) { out } else { format!("Type{out}") }
}
