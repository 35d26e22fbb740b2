//! Values of documents, each with the document that it is from.

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use super::{json::member, work::Work};

/// A value of a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node<'d> {
    pub(super) value: &'d Value,
    /// Place of its document among the sources.
    pub(super) source: usize,
    /// Work that is left for all documents.
    pub(super) work: &'d Work,
}

impl<'d> Node<'d> {
    /// Another value of the same document.
    pub(super) fn with(self, value: &'d Value) -> Self {
        Self { value, ..self }
    }

    /// A member of an object.
    pub(super) fn get(self, key: &str) -> Option<Self> {
        member(self.value, key).map(|value| self.with(value))
    }

    /// A text among the members of an object.
    pub(super) fn text(self, key: &str) -> Option<&'d str> {
        member(self.value, key).and_then(Value::as_str)
    }

    /// Returns `true` if a member is `true`.
    pub(super) fn is(self, key: &str) -> bool {
        member(self.value, key) == Some(&Value::Bool(true))
    }

    /// The members of an object; none of another value. Each is work, and there are no more once that is spent.
    pub(super) fn members(self) -> impl Iterator<Item = (&'d str, Self)> {
        let members = self.value.as_object().into_iter().flatten();
        let members = members.take_while(move |_| self.work.spend(1));
        members.map(move |(key, value)| (key.as_str(), self.with(value)))
    }

    /// The items of an array; none of another value. Each is work, as with [`Node::members`].
    pub(super) fn items(self) -> impl Iterator<Item = Self> {
        let items = self.value.as_array().into_iter().flatten();
        items.take_while(move |_| self.work.spend(1)).map(move |value| self.with(value))
    }

    /// Tells this value from all others, equal ones included.
    pub(super) fn identity(self) -> Identity {
        Identity::of(self.value)
    }
}

/// Values by the [`Node`] that they belong to. Nobody chooses addresses, so that a fast hash does.
pub(super) type ByNode<V> = FxHashMap<Identity, V>;
/// A set of [`Node`]s.
pub(super) type NodeSet = FxHashSet<Identity>;

/// Identity of a [`Node`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Identity(usize);

impl Identity {
    pub(super) fn of(value: &Value) -> Self {
        Self(std::ptr::from_ref(value).addr())
    }

    pub(super) fn bytes(self) -> [u8; size_of::<usize>()] {
        self.0.to_le_bytes()
    }
}
