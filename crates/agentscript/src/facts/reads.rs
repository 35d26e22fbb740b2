//! Reads of results: a tree of parts, each part once.

use std::collections::{HashMap, HashSet};

use crate::plan::{Origin, Part, ResultUse};

/// Most reads that are kept.
const MAX_READS: usize = 400;
/// Longest name of a property that is kept, in bytes.
const MAX_NAME: usize = 128;

#[derive(Debug, Default)]
pub(super) struct Reads {
    uses: Vec<ResultUse>,
    known: HashMap<(Origin, Part), u32>,
    /// Values whose kind the script tests: it provides for others.
    tested: HashSet<Origin>,
    /// Values that the script adds properties to.
    changed: HashSet<Origin>,
    /// Names of properties that the script assigns to, of whatever object.
    assigned: HashSet<String>,
    /// The script changes objects in ways that cannot be followed.
    lost: bool,
}

impl Reads {
    /// The part of `of`; `None` when there is no room for more.
    pub(super) fn read(&mut self, of: Origin, part: Part, at: u32) -> Option<Origin> {
        if matches!(&part, Part::Property(name) if name.len() > MAX_NAME) {
            return None;
        }
        let key = (of, part);
        if let Some(index) = self.known.get(&key) {
            return Some(Origin::Use(*index));
        }
        if self.lost || self.uses.len() == MAX_READS {
            return None;
        }
        let index = u32::try_from(self.uses.len()).ok()?;
        self.uses.push(ResultUse { of, part: key.1.clone(), at, tentative: false, iterated: false });
        self.known.insert(key, index);
        Some(Origin::Use(index))
    }

    /// Notes that the script provides for the absence of `part`.
    pub(super) fn doubt(&mut self, part: Origin) {
        if let Origin::Use(index) = part
            && let Some(read) = self.uses.get_mut(index as usize)
        {
            read.tentative = true;
        }
    }

    /// Notes that the elements of which `item` is one are taken one after the other, at `at`.
    pub(super) fn iterate(&mut self, item: Origin, at: u32) {
        if let Origin::Use(index) = item
            && let Some(read) = self.uses.get_mut(index as usize).filter(|read| !read.iterated)
        {
            (read.iterated, read.at) = (true, at);
        }
    }

    /// Notes that the script tests the kind of `value`.
    pub(super) fn test(&mut self, value: Origin) {
        self.doubt(value);
        self.tested.insert(value);
    }

    /// Notes that the script adds properties to `value`.
    pub(super) fn change(&mut self, value: Origin) {
        self.changed.insert(value);
    }

    /// Notes that the script assigns to a property of this name.
    pub(super) fn assign(&mut self, name: &str) {
        if name.len() <= MAX_NAME && self.assigned.len() < MAX_READS {
            self.assigned.insert(name.to_owned());
        } else {
            self.give_up();
        }
    }

    /// Keeps no read at all: the script changes objects in ways that cannot be followed.
    pub(super) fn give_up(&mut self) {
        self.lost = true;
    }

    /// The reads of what the tools returned, without what the script wrote itself.
    pub(super) fn finish(self) -> Vec<ResultUse> {
        if self.lost {
            return Vec::new();
        }
        let mut kept: Vec<ResultUse> = Vec::new();
        let mut places: Vec<Option<u32>> = Vec::new();
        for mut read in self.uses {
            let written = self.changed.contains(&read.of)
                || matches!(&read.part, Part::Property(name) if self.assigned.contains(name));
            read.tentative |= self.tested.contains(&read.of);
            let of = match read.of {
                Origin::Use(index) => places.get(index as usize).copied().flatten().map(Origin::Use),
                call => Some(call),
            };
            let place = match of {
                Some(of) if !written => {
                    read.of = of;
                    kept.push(read);
                    u32::try_from(kept.len() - 1).ok()
                }
                _ => None,
            };
            places.push(place);
        }
        kept
    }
}
