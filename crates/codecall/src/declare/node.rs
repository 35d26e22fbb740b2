//! Types as a graph in which equal types are one node, so that a type that is used twice is found by its number.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use gatewright_core::JsonBudget;
use serde_json::Value;

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
    hints: HashMap<Id, &'s str>,
    recursive: Recursive<'s>,
}

/// Types that contain themselves.
#[derive(Debug, Default)]
struct Recursive<'s> {
    names: Names,
    /// Each type's name, and its node once that is known.
    types: Vec<(String, Option<Id>)>,
    /// Their numbers by the address of the schema, and by the schema itself: those of several tools may be equal.
    by_place: HashMap<usize, usize>,
    by_schema: HashMap<&'s Value, usize>,
}

/// Named types of one answer.
const MOST_NAMED: usize = 200;
/// The longest name that is suggested for a type.
const LONGEST_HINT: usize = 100;
/// Size of the largest schemas of types that are compared with those of other tools.
const COMPARED: JsonBudget = JsonBudget { values: 4_000, bytes: 64 * 1024 };

fn place(schema: &Value) -> usize {
    std::ptr::from_ref(schema).addr()
}

impl<'s> Graph<'s> {
    /// The type by which `schema`, which contains itself, is named. Equal types of several tools share a name. `hint` is a likely one.
    pub(super) fn recursive(&mut self, schema: &'s Value, hint: &str) -> Id {
        let Recursive { names, types, by_place, by_schema } = &mut self.recursive;
        let number = *by_place.entry(place(schema)).or_insert_with(|| {
            let next = types.len();
            let is_compared = COMPARED.has_room_for(schema);
            let number = if is_compared { *by_schema.entry(schema).or_insert(next) } else { next };
            if number == next && next < MOST_NAMED {
                types.push((names.free(&pascal(hint)), None));
            }
            number
        });
        match types.get(number) {
            Some((name, _)) => {
                let name = name.clone();
                self.add(Node::Named(name))
            }
            // One too many.
            None => self.text("unknown"),
        }
    }

    /// Notes the type that was read of `schema`, if it is one that contains itself.
    pub(super) fn is_read(&mut self, schema: &Value, id: Id) {
        let Recursive { types, by_place, .. } = &mut self.recursive;
        if let Some((_, node)) = by_place.get(&place(schema)).and_then(|number| types.get_mut(*number)) {
            node.get_or_insert(id);
        }
    }

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
        let mut seen = HashSet::new();
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

    pub(super) fn hint(&mut self, id: Id, name: &'s str) {
        if name.len() <= LONGEST_HINT {
            self.hints.entry(id).or_insert(name);
        }
    }

    pub(super) fn get(&self, id: Id) -> &Node<'s> {
        &self.nodes[id]
    }

    /// Names for types that would be written more than once and for those that contain themselves.
    ///
    /// The inputs themselves get none: they are read in place. What is beyond [`MOST_NAMED`] is written in place, too.
    pub(super) fn names(&self, inputs: &[Id], results: &[Id]) -> HashMap<Id, String> {
        let in_place: HashSet<Id> = inputs.iter().copied().collect();
        let may_be_named = |id: Id| !in_place.contains(&id) && self.is_worth_a_name(id);
        let mut written = vec![0_u32; self.nodes.len()];
        inputs.iter().chain(results).for_each(|root| written[*root] += 1);
        // The parts of a type have smaller numbers than the type.
        for id in (0..self.nodes.len()).rev() {
            let times = if may_be_named(id) { written[id].min(1) } else { written[id].min(2) };
            self.each_part(id, |part| written[part] = written[part].saturating_add(times));
        }
        let mut names: HashMap<Id, String> = HashMap::new();
        let mut taken = self.recursive.names.clone();
        for (name, id) in &self.recursive.types {
            if let Some(id) = id {
                names.entry(*id).or_insert_with(|| name.clone());
            }
        }
        for id in (0..self.nodes.len()).filter(|id| written[*id] > 1 && may_be_named(*id)) {
            if names.len() >= MOST_NAMED {
                break;
            }
            names
                .entry(id)
                .or_insert_with(|| taken.free(&pascal(self.hints.get(&id).copied().unwrap_or(""))));
        }
        names
    }

    /// The types that are part of `roots`, with these.
    pub(super) fn reached(&self, roots: &[Id]) -> HashSet<Id> {
        let (mut reached, mut open) = (HashSet::new(), roots.to_vec());
        while let Some(id) = open.pop() {
            if reached.insert(id) {
                self.each_part(id, |part| open.push(part));
                if let Node::Named(name) = &self.nodes[id] {
                    open.extend(
                        self.recursive.types.iter().find(|(own, _)| own == name).and_then(|(_, id)| *id),
                    );
                }
            }
        }
        reached
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

/// The names that are taken, each with the number that the next type of this name gets.
#[derive(Debug, Clone)]
struct Names(HashMap<String, u32>);

impl Default for Names {
    fn default() -> Self {
        Self(TAKEN.iter().map(|name| ((*name).to_owned(), 2)).collect())
    }
}

impl Names {
    /// Takes `name` or the first of `name2`, `name3` … that is not taken.
    fn free(&mut self, name: &str) -> String {
        let mut free = name.to_owned();
        while self.0.contains_key(&free) {
            let next = self.0.entry(name.to_owned()).or_insert(2);
            free = format!("{name}{next}");
            *next += 1;
        }
        self.0.insert(free.clone(), 2);
        free
    }
}

/// A name as types are named: letters and digits of its words, each with a capital.
fn pascal(name: &str) -> String {
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
