//! Room for the automata of `patternProperties`, which the validators of a process keep as long as they are.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Memory of all automata of the process, as estimated.
const MOST: usize = 64 << 20;
/// Estimated memory of a small automaton with what a search with it keeps, and for each instruction and range of its program.
const SMALL: usize = 16 << 10;
const FOR_EACH: usize = 512;

static USED: AtomicUsize = AtomicUsize::new(0);

/// Room that is given back when it is dropped.
#[derive(Debug)]
pub(super) struct Reserved(usize);

/// Reserves room for an automaton of so many instructions and ranges; `None` if there is none left.
pub(super) fn reserve(size: usize) -> Option<Reserved> {
    let add = |used: usize| with(used, size);
    USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok().map(|_| Reserved(estimate(size)))
}

/// The room in use with another automaton.
fn with(used: usize, size: usize) -> Option<usize> {
    used.checked_add(estimate(size)).filter(|used| *used <= MOST)
}

fn estimate(size: usize) -> usize {
    size.saturating_mul(FOR_EACH).saturating_add(SMALL)
}

impl Drop for Reserved {
    fn drop(&mut self) {
        USED.fetch_sub(self.0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_thousands_of_small_automata_and_some_large_ones() {
        for (size, least, most) in [(10, 2_000, 4_000), (2_000, 50, 100), (200_000, 0, 0)] {
            let number = std::iter::successors(Some(0), |used| with(*used, size)).count() - 1;
            assert!((least..=most).contains(&number), "{number} of {size}");
        }
        let room = reserve(10).unwrap();
        assert!(USED.load(Ordering::Relaxed) >= room.0);
    }
}
