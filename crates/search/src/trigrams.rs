//! Terms of a dictionary that share three-letter pieces with a word: candidates for a misspelling.

use crate::segment::Dictionary;

/// Shortest word that is corrected.
pub(crate) const MIN_CHARS: usize = 4;
const BUCKETS: usize = 1 << 13;

/// Terms by the hash of their trigrams.
#[derive(Debug, Default)]
pub(crate) struct Trigrams {
    starts: Vec<u32>,
    terms: Vec<u32>,
}

impl Trigrams {
    pub(crate) fn new(dictionary: &Dictionary) -> Self {
        let mut pairs = Vec::new();
        for number in 0..dictionary.len() {
            let term = dictionary.term(number);
            if term.chars().count() < MIN_CHARS || !term.chars().all(char::is_alphabetic) {
                continue;
            }
            each_trigram(term, |bucket| pairs.push((bucket, number as u32)));
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut starts = vec![0; BUCKETS + 1];
        for (bucket, _) in &pairs {
            starts[usize::from(*bucket) + 1] += 1;
        }
        for at in 0..BUCKETS {
            starts[at + 1] += starts[at];
        }
        Self { starts, terms: pairs.into_iter().map(|(_, term)| term).collect() }
    }

    /// Terms that have a trigram of this bucket.
    pub(crate) fn terms(&self, bucket: u16) -> &[u32] {
        let at = |bucket: usize| self.starts.get(bucket).map_or(0, |start| *start as usize);
        &self.terms[at(usize::from(bucket))..at(usize::from(bucket) + 1)]
    }
}

/// The buckets of a word's trigrams.
pub(crate) fn buckets(word: &str) -> Vec<u16> {
    let mut buckets = Vec::new();
    each_trigram(word, |bucket| buckets.push(bucket));
    buckets.sort_unstable();
    buckets.dedup();
    buckets
}

/// Trigrams of the word with its edges marked, hashed to a bucket.
fn each_trigram(word: &str, mut each: impl FnMut(u16)) {
    let mut window = ['\u{2}', '\u{2}', '\u{2}'];
    for (at, c) in word.chars().chain(['\u{3}']).enumerate() {
        window = [window[1], window[2], c];
        if at > 0 {
            let mut hash = 0x811c_9dc5_u32;
            for part in window {
                hash = (hash ^ u32::from(part)).wrapping_mul(0x0100_0193);
            }
            each(((hash ^ (hash >> 15)) & (BUCKETS as u32 - 1)) as u16);
        }
    }
}
