//! The data of a [`Shape`]. Learning is in `learn`, merging in `merge`, the way to JSON Schema in `schema`.

use serde::{Deserialize, Serialize};

/// Places in a value that one shape distinguishes, at most.
pub const MOST_NODES: usize = 512;
/// Levels of a value that are looked at.
pub const DEEPEST: usize = 12;
/// Names that are kept of the objects at one place. Objects with more different names are maps.
pub const MOST_FIELDS: usize = 128;
/// Different witnesses after which a name is shown to everyone.
pub const ENOUGH_WITNESSES: usize = 3;

/// The origin of a value: a number that is the same for all values of one principal. Never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness(pub(crate) u64);

impl Witness {
    /// The witness with this number, which should be a hash of the principal.
    pub fn new(number: u64) -> Self {
        Self(number.max(1))
    }
}

/// The shape of values that were seen at one source.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    #[serde(rename = "r")]
    pub(crate) root: Node,
    /// Nodes below the root.
    #[serde(rename = "n")]
    pub(crate) nodes: usize,
}

/// Types that JSON Schema tells apart and that have no parts, as a set of bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Scalars(pub(crate) u8);

impl Scalars {
    pub(crate) const NULL: Self = Self(1);
    pub(crate) const BOOLEAN: Self = Self(2);
    pub(crate) const INTEGER: Self = Self(4);
    pub(crate) const NUMBER: Self = Self(8);
    pub(crate) const TEXT: Self = Self(16);
    /// Text of a number whose digits a JavaScript number would lose.
    pub(crate) const DIGITS: Self = Self(32);
    /// Something that was not looked at, because it is too deep or there are too many nodes.
    pub(crate) const UNKNOWN: Self = Self(64);

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// All values seen at one place.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Node {
    #[serde(rename = "s", default)]
    pub(crate) scalars: Scalars,
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub(crate) object: Option<Box<Object>>,
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub(crate) array: Option<Box<Array>>,
}

/// All objects seen at one place.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Object {
    #[serde(rename = "c")]
    pub(crate) seen: u64,
    /// In the order in which they were first seen.
    #[serde(rename = "f", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) fields: Vec<Field>,
    /// Values under names that are not kept.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub(crate) rest: Option<Box<Node>>,
    /// Too many different names were seen: none is kept.
    #[serde(rename = "m", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_map: bool,
}

/// All members of one name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Field {
    #[serde(rename = "k")]
    pub(crate) name: Box<str>,
    #[serde(rename = "c")]
    pub(crate) seen: u64,
    #[serde(rename = "w")]
    pub(crate) witnesses: Witnesses,
    #[serde(rename = "n")]
    pub(crate) node: Node,
}

/// The first witnesses of a name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Witnesses(pub(crate) Vec<Witness>);

impl Witnesses {
    pub(crate) fn add(&mut self, witness: Witness) {
        if !self.are_enough() && !self.0.contains(&witness) {
            self.0.push(witness);
        }
    }

    pub(crate) fn are_enough(&self) -> bool {
        self.0.len() >= ENOUGH_WITNESSES
    }

    /// Returns `true` if `viewer` may see the name.
    pub(crate) fn allow(&self, viewer: Witness) -> bool {
        self.are_enough() || self.0.contains(&viewer)
    }
}

/// All arrays seen at one place. Lengths are kept by order of magnitude.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Array {
    #[serde(rename = "l")]
    pub(crate) shortest: Magnitude,
    #[serde(rename = "h")]
    pub(crate) longest: Magnitude,
    #[serde(rename = "i")]
    pub(crate) items: Node,
}

/// A length, as one of the ranges 0, 1, 2 to 10, 11 to 100 and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Magnitude(u8);

impl Magnitude {
    pub(crate) fn of(length: usize) -> Self {
        let mut magnitude = 0;
        while magnitude < 12 && Self(magnitude).most() < length as u64 {
            magnitude += 1;
        }
        Self(magnitude)
    }

    /// The least length of the range.
    pub(crate) fn least(self) -> u64 {
        match self.0 {
            0 => 0,
            n => Self(n - 1).most() + 1,
        }
    }

    /// The greatest length of the range.
    pub(crate) fn most(self) -> u64 {
        match self.0 {
            0 => 0,
            n => 10_u64.pow(u32::from(n.min(13)) - 1),
        }
    }
}

impl Node {
    /// Returns `true` if nothing was seen here.
    pub(crate) fn is_empty(&self) -> bool {
        self.scalars.0 == 0 && self.object.is_none() && self.array.is_none()
    }

    /// Nodes below this one.
    pub(crate) fn below(&self) -> usize {
        let of_object = self.object.as_ref().map_or(0, |object| {
            let fields: usize = object.fields.iter().map(|field| 1 + field.node.below()).sum();
            fields + object.rest.as_ref().map_or(0, |rest| 1 + rest.below())
        });
        of_object + self.array.as_ref().map_or(0, |array| 1 + array.items.below())
    }
}

impl Object {
    /// The field called `name`. `near` is its likely place.
    pub(crate) fn position(&self, name: &str, near: usize) -> Option<usize> {
        if self.fields.get(near).is_some_and(|field| &*field.name == name) {
            return Some(near);
        }
        self.fields.iter().position(|field| &*field.name == name)
    }
}

impl Shape {
    /// Returns `true` if no value was seen.
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// Places that it distinguishes below the root, at most [`MOST_NODES`].
    pub fn nodes(&self) -> usize {
        self.nodes
    }
}
