//! Corrections for words that no document has.

use crate::{index::IndexData, trigrams::MIN_CHARS};

/// Most terms offered for one word.
const MAX_CORRECTIONS: usize = 3;

/// Terms within one or two typing errors of `word`, best first, with how much each is to count (0-1).
pub(crate) fn corrections(inner: &IndexData, word: &str) -> Vec<(String, f32)> {
    let letters: Vec<char> = word.chars().collect();
    if letters.len() < MIN_CHARS || !letters.iter().all(|c| c.is_alphabetic()) {
        return Vec::new();
    }
    let allowed = if letters.len() >= 7 { 2 } else { 1 };
    let mut found: Vec<(usize, u32, String)> = Vec::new();
    for part in &inner.parts {
        for number in part.segment.trigrams.similar(word) {
            let frequency = part.frequency(number);
            let term = part.segment.dictionary.term(number as usize);
            if frequency == 0 {
                continue;
            }
            if let Some(known) = found.iter_mut().find(|(_, _, known)| known == term) {
                known.1 += frequency;
            } else if let Some(distance) = distance(&letters, term, allowed) {
                found.push((distance, frequency, term.to_owned()));
            }
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)).then_with(|| a.2.cmp(&b.2)));
    let best = found.first().map_or(0, |(distance, ..)| *distance);
    found.retain(|(distance, ..)| *distance == best);
    found.truncate(MAX_CORRECTIONS);
    found.into_iter().map(|(distance, _, term)| (term, if distance == 1 { 0.8 } else { 0.6 })).collect()
}

/// Typing errors (a letter wrong, missing, extra, or two swapped) between two words, if at most `allowed`.
fn distance(a: &[char], b: &str, allowed: usize) -> Option<usize> {
    let b: Vec<char> = b.chars().collect();
    if a.len().abs_diff(b.len()) > allowed {
        return None;
    }
    let mut older: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let current = row(a, &b, i, &previous, &older);
        older = std::mem::replace(&mut previous, current);
    }
    let last = previous[b.len()];
    (last <= allowed).then_some(last)
}

/// Row `i` of the edit table, from row `i - 1` and row `i - 2`.
fn row(a: &[char], b: &[char], i: usize, previous: &[usize], older: &[usize]) -> Vec<usize> {
    let mut current = vec![i; b.len() + 1];
    for j in 1..=b.len() {
        let changed = previous[j - 1] + usize::from(a[i - 1] != b[j - 1]);
        let mut best = changed.min(previous[j] + 1).min(current[j - 1] + 1);
        if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
            best = best.min(older[j - 2] + 1);
        }
        current[j] = best;
    }
    current
}
