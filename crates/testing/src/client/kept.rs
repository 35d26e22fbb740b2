//! Lists of what a server sent on its own, which end before they take too much memory.

use std::ops::Deref;

use serde_json::Value;

/// Most bytes of one list: enough for any test, and little enough for a server that never stops.
const MOST: usize = 32 << 20;
/// Memory of an entry or a value beside its text, in bytes.
const AROUND: usize = 100;

/// A list of at most 32 MiB. What comes later is not kept.
#[derive(Debug)]
pub(super) struct Kept<T> {
    entries: Vec<T>,
    bytes: usize,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), bytes: 0 }
    }
}

impl<T> Kept<T> {
    /// Adds an entry with `bytes` of text. Returns `false` if there is no room for it.
    pub(super) fn push(&mut self, entry: T, bytes: usize) -> bool {
        let bytes = self.bytes.saturating_add(bytes).saturating_add(AROUND);
        if bytes > MOST {
            return false;
        }
        self.bytes = bytes;
        self.entries.push(entry);
        true
    }

    /// Adds an entry whatever room there is.
    pub(super) fn push_always(&mut self, entry: T) {
        self.entries.push(entry);
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl<T> Deref for Kept<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.entries
    }
}

/// Memory of a value, in bytes, about.
pub(super) fn bytes_of(value: &Value) -> usize {
    let below = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(bytes_of).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + bytes_of(value)).sum(),
        _ => 0,
    };
    below + AROUND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_ends_before_it_takes_too_much_and_has_room_again_once_it_is_cleared() {
        let mut list = Kept::default();
        let kept = (0..100).filter(|number| list.push(*number, 1 << 20)).count();
        assert_eq!((kept, list.len()), (31, 31));
        assert!(!list.push(0, MOST));
        list.clear();
        assert!(list.push(0, 1 << 20));
    }
}
