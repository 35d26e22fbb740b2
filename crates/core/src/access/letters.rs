//! Likeness of names by their letters: cheap, before names are compared closely.

/// The number of each letter of a name, by its lowest five bits.
pub(super) struct Letters {
    counts: [u8; 32],
    length: usize,
}

impl Letters {
    pub(super) fn of(name: &str) -> Self {
        let mut counts = [0_u8; 32];
        for byte in name.bytes() {
            let count = &mut counts[usize::from(byte & 31)];
            *count = count.saturating_add(1);
        }
        Self { counts, length: name.len() }
    }

    /// Letters that two names share, in thousandths of the letters of both.
    pub(super) fn shared(&self, other: &Self) -> usize {
        let shared: usize = self.counts.iter().zip(&other.counts).map(|(a, b)| usize::from(*a.min(b))).sum();
        2_000 * shared / (self.length + other.length).max(1)
    }
}
