//! Learning a shape from values.

use serde_json::{Map, Value};

use crate::{
    digits,
    names::is_field_name,
    shape::{
        Array, DEEPEST, Field, MOST_FIELDS, MOST_NODES, Magnitude, Node, Object, Scalars, Shape, Witness,
        Witnesses,
    },
};

/// Items of one array that are looked at, spread over its length.
const MOST_ITEMS: usize = 16;
/// Members of a map that are looked at.
const MOST_MEMBERS: usize = 16;

impl Shape {
    /// Adds `value`, which came from `witness`. Looks at no more than `work` parts of it.
    pub fn learn(&mut self, value: &Value, witness: Witness, work: usize) {
        let mut learner = Learner { nodes: self.nodes, work, witness };
        learner.value(&mut self.root, value, 0);
        self.nodes = learner.nodes;
    }

    /// Adds an object of these members.
    pub fn learn_members(&mut self, members: &Map<String, Value>, witness: Witness, work: usize) {
        let mut learner = Learner { nodes: self.nodes, work, witness };
        learner.object(&mut self.root, members, 0);
        self.nodes = learner.nodes;
    }
}

struct Learner {
    nodes: usize,
    work: usize,
    witness: Witness,
}

impl Learner {
    fn value(&mut self, node: &mut Node, value: &Value, depth: usize) {
        if self.work == 0 {
            return;
        }
        self.work -= 1;
        match value {
            Value::Null => node.scalars.add(Scalars::NULL),
            Value::Bool(_) => node.scalars.add(Scalars::BOOLEAN),
            Value::Number(number) => node.scalars.add(match number {
                long if digits::is_long(long) => Scalars::DIGITS,
                number if number.is_f64() => Scalars::NUMBER,
                _ => Scalars::INTEGER,
            }),
            Value::String(text) if digits::loses_digits(text) => node.scalars.add(Scalars::DIGITS),
            Value::String(_) => node.scalars.add(Scalars::TEXT),
            Value::Array(_) | Value::Object(_) if depth == DEEPEST => node.scalars.add(Scalars::UNKNOWN),
            Value::Array(items) => self.array(node, items, depth),
            Value::Object(members) => self.object(node, members, depth),
        }
    }

    fn array(&mut self, node: &mut Node, items: &[Value], depth: usize) {
        let length = Magnitude::of(items.len());
        let array = match &mut node.array {
            Some(array) => array,
            None if self.take_node() => node.array.insert(Box::new(Array {
                shortest: length,
                longest: length,
                items: Node::default(),
            })),
            None => return node.scalars.add(Scalars::UNKNOWN),
        };
        array.shortest = array.shortest.min(length);
        array.longest = array.longest.max(length);
        let step = items.len().div_ceil(MOST_ITEMS).max(1);
        for item in items.iter().step_by(step) {
            self.value(&mut array.items, item, depth + 1);
        }
    }

    /// An object is added with all its names or not at all: a name that was left out would count as absent.
    fn object(&mut self, node: &mut Node, members: &Map<String, Value>, depth: usize) {
        let object = node.object.get_or_insert_default();
        if !object.is_map && (members.len() > MOST_FIELDS || self.is_overfull(object, members)) {
            self.forget_names(object);
        }
        if object.is_map {
            object.seen += 1;
            for value in members.values().take(MOST_MEMBERS) {
                self.rest(object, value, depth);
            }
            return;
        }
        if self.work < members.len() {
            self.work = 0;
            return;
        }
        object.seen += 1;
        for (at, (name, value)) in members.iter().enumerate() {
            match object.position(name, at) {
                Some(known) => self.field(&mut object.fields[known], value, depth),
                None if is_field_name(name) && self.take_node() => {
                    let mut field = Field {
                        name: name.as_str().into(),
                        seen: 0,
                        witnesses: Witnesses::default(),
                        node: Node::default(),
                    };
                    self.field(&mut field, value, depth);
                    object.fields.push(field);
                }
                None => self.rest(object, value, depth),
            }
        }
    }

    fn field(&mut self, field: &mut Field, value: &Value, depth: usize) {
        field.seen += 1;
        field.witnesses.add(self.witness);
        self.value(&mut field.node, value, depth + 1);
    }

    fn rest(&mut self, object: &mut Object, value: &Value, depth: usize) {
        if object.rest.is_none() && self.nodes < MOST_NODES {
            self.nodes += 1;
        }
        self.value(object.rest.get_or_insert_default(), value, depth + 1);
    }

    fn is_overfull(&self, object: &Object, members: &Map<String, Value>) -> bool {
        if object.fields.len() + members.len() <= MOST_FIELDS {
            return false;
        }
        let new = members.iter().enumerate().filter(|(at, (name, _))| object.position(name, *at).is_none());
        object.fields.len() + new.count() > MOST_FIELDS
    }

    /// Makes a map of an object's shape.
    fn forget_names(&mut self, object: &mut Object) {
        let before = object.fields.iter().map(|field| 1 + field.node.below()).sum::<usize>()
            + object.rest.as_ref().map_or(0, |rest| 1 + rest.below());
        object.forget_names();
        let after = object.rest.as_ref().map_or(0, |rest| 1 + rest.below());
        self.nodes = self.nodes.saturating_sub(before) + after;
    }

    fn take_node(&mut self) -> bool {
        let is_free = self.nodes < MOST_NODES;
        self.nodes += usize::from(is_free);
        is_free
    }
}
