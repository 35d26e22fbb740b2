//! Merging shapes of the same source, such as those that two instances learned.

use crate::shape::{Array, Field, MOST_FIELDS, MOST_NODES, Node, Object, Scalars, Shape};

impl Shape {
    /// Adds all that `other` saw. Counts are added, so merge each value's shape only once.
    pub fn merge(&mut self, other: Self) {
        self.root.merge(other.root);
        self.nodes = self.root.below();
        if self.nodes > MOST_NODES {
            let mut left = MOST_NODES;
            self.root.prune(&mut left);
            self.nodes = self.root.below();
        }
    }
}

impl Node {
    pub(crate) fn merge(&mut self, other: Self) {
        self.scalars.add(other.scalars);
        match (&mut self.object, other.object) {
            (Some(mine), Some(other)) => mine.merge(*other),
            (mine @ None, other) => *mine = other,
            (Some(_), None) => {}
        }
        match (&mut self.array, other.array) {
            (Some(mine), Some(other)) => mine.merge(*other),
            (mine @ None, other) => *mine = other,
            (Some(_), None) => {}
        }
    }

    /// Drops what is beyond `left` nodes, the deepest and latest first within each object.
    fn prune(&mut self, left: &mut usize) {
        if let Some(object) = &mut self.object {
            let keep = object.fields.len().min(*left);
            *left -= keep;
            if keep < object.fields.len() {
                object.fields.truncate(keep);
                object.rest.get_or_insert_default().scalars.add(Scalars::UNKNOWN);
            }
            object.fields.iter_mut().for_each(|field| field.node.prune(left));
            if let Some(rest) = &mut object.rest {
                *left = left.saturating_sub(1);
                rest.prune(left);
            }
        }
        match &mut self.array {
            Some(array) if *left > 0 => {
                *left -= 1;
                array.items.prune(left);
            }
            Some(_) => {
                self.array = None;
                self.scalars.add(Scalars::UNKNOWN);
            }
            None => {}
        }
    }
}

impl Object {
    fn merge(&mut self, other: Self) {
        self.seen = self.seen.saturating_add(other.seen);
        if let Some(rest) = other.rest {
            self.rest.get_or_insert_default().merge(*rest);
        }
        for (at, field) in other.fields.into_iter().enumerate() {
            match self.position(&field.name, at) {
                Some(known) => self.fields[known].merge(field),
                None => self.fields.push(field),
            }
        }
        self.is_map |= other.is_map;
        if self.is_map || self.fields.len() > MOST_FIELDS {
            self.forget_names();
        }
    }

    /// Makes a map of it: what was seen under names is the shape of its values.
    pub(crate) fn forget_names(&mut self) {
        self.is_map = true;
        let fields = std::mem::take(&mut self.fields);
        let rest = self.rest.get_or_insert_default();
        fields.into_iter().for_each(|field| rest.merge(field.node));
    }
}

impl Field {
    fn merge(&mut self, other: Self) {
        self.seen = self.seen.saturating_add(other.seen);
        other.witnesses.0.into_iter().for_each(|witness| self.witnesses.add(witness));
        self.node.merge(other.node);
    }
}

impl Array {
    fn merge(&mut self, other: Self) {
        self.shortest = self.shortest.min(other.shortest);
        self.longest = self.longest.max(other.longest);
        self.items.merge(other.items);
    }
}
