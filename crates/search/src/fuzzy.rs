//! Corrections for words that no document has.
//!
//! Terms come from servers: those that share trigrams with a word are counted, and the closest of them are compared.

use rustc_hash::FxHashMap;

use crate::{
    index::IndexData,
    trigrams::{MIN_CHARS, buckets},
};

/// Most terms offered for one word.
const MAX_CORRECTIONS: usize = 3;
/// Terms that are compared with one word.
const MAX_COMPARED: usize = 256;
/// Terms with the same trigram, in all parts. A trigram of more terms says little, and is not looked up.
const MAX_SHARING: usize = 8_192;
/// Terms that are counted for all words of a query, those of several trigrams once for each.
const MAX_COUNTED: usize = 500_000;

/// The work that corrections for one query may still take.
#[derive(Debug)]
pub(crate) struct Budget {
    counted: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { counted: MAX_COUNTED }
    }
}

/// A term that shares trigrams with a word.
struct Candidate<'i> {
    term: &'i str,
    shared: usize,
    frequency: u32,
}

/// Terms within one or two typing errors of `word`, best first, with how much each is to count (0-1).
pub(crate) fn corrections(inner: &IndexData, word: &str, budget: &mut Budget) -> Vec<(String, f32)> {
    let letters: Vec<char> = word.chars().collect();
    if letters.len() < MIN_CHARS || !letters.iter().all(|c| c.is_alphabetic()) {
        return Vec::new();
    }
    let allowed = if letters.len() >= 7 { 2 } else { 1 };
    let mut found: Vec<(usize, u32, &str)> = candidates(inner, word, budget)
        .into_iter()
        .filter_map(|one| Some((distance(&letters, one.term, allowed)?, one.frequency, one.term)))
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)).then(a.2.cmp(b.2)));
    let best = found.first().map_or(0, |(distance, ..)| *distance);
    found.retain(|(distance, ..)| *distance == best);
    found.truncate(MAX_CORRECTIONS);
    let weight = |distance| if distance == 1 { 0.8 } else { 0.6 };
    found.into_iter().map(|(distance, _, term)| (term.to_owned(), weight(distance))).collect()
}

/// Terms that share at least a third of the word's trigrams: those that share the most, in no particular order.
fn candidates<'i>(inner: &'i IndexData, word: &str, budget: &mut Budget) -> Vec<Candidate<'i>> {
    let buckets = buckets(word);
    let needed = buckets.len().div_ceil(3).max(1);
    // The rarest first, in case that the budget ends.
    let sharing =
        |bucket: u16| inner.parts.iter().map(|part| part.segment.trigrams.terms(bucket).len()).sum::<usize>();
    let mut lists: Vec<(usize, u16)> = buckets.into_iter().map(|bucket| (sharing(bucket), bucket)).collect();
    lists.retain(|(terms, _)| *terms <= MAX_SHARING);
    lists.sort_unstable();
    lists.retain(|(terms, _)| {
        let left = budget.counted.checked_sub(*terms);
        budget.counted = left.unwrap_or(0);
        left.is_some()
    });
    let mut found: FxHashMap<&str, Candidate<'i>> = FxHashMap::default();
    let mut shared: Vec<u32> = Vec::new();
    for part in &inner.parts {
        shared.clear();
        lists.iter().for_each(|(_, bucket)| shared.extend_from_slice(part.segment.trigrams.terms(*bucket)));
        shared.sort_unstable();
        for same in shared.chunk_by(|a, b| a == b).filter(|same| same.len() >= needed) {
            let frequency = part.frequency(same[0]);
            if frequency > 0 {
                let term = part.segment.dictionary.term(same[0] as usize);
                let new = Candidate { term, shared: same.len(), frequency: 0 };
                found.entry(term).or_insert(new).frequency += frequency;
            }
        }
    }
    let mut found: Vec<Candidate<'i>> = found.into_values().collect();
    if found.len() > MAX_COMPARED {
        let order = |a: &Candidate<'_>, b: &Candidate<'_>| {
            let length = |one: &Candidate<'_>| one.term.len().abs_diff(word.len());
            b.shared.cmp(&a.shared).then(length(a).cmp(&length(b))).then(a.term.cmp(b.term))
        };
        found.select_nth_unstable_by(MAX_COMPARED, order);
        found.truncate(MAX_COMPARED);
    }
    found
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Document, Index};

    fn index(words: impl Iterator<Item = String>) -> Index {
        let document = |(at, text): (usize, String)| Document {
            name: format!("t:{at}"),
            app_id: "t".to_owned(),
            description: text,
            input_schema: Arc::default(),
        };
        let words: Vec<String> = words.collect();
        Index::build(words.chunks(50).map(|words| words.join(" ")).enumerate().map(document))
    }

    /// Three letters for a number.
    fn letters(number: usize) -> String {
        [number / 676, number / 26, number].iter().map(|part| char::from(b'a' + (part % 26) as u8)).collect()
    }

    #[test]
    fn few_of_the_terms_like_a_word_are_compared_and_the_closest_is_among_them() {
        let near = (0..5_000).map(|number| format!("warehouse{}", letters(number)));
        let index = index(near.chain(["warehousx".to_owned()]));
        let mut budget = Budget::default();
        assert!(candidates(&index.inner, "warehousk", &mut budget).len() <= MAX_COMPARED);
        let found = corrections(&index.inner, "warehousk", &mut budget);
        assert!(found.iter().any(|(term, _)| term == "warehousx"), "{found:?}");
    }

    #[test]
    fn many_words_like_many_terms_share_one_budget() {
        let terms: Vec<String> = (0..9_000).map(|number| format!("qwertyuiop{}", letters(number))).collect();
        let index = index(terms.iter().take(8_000).cloned());
        let mut budget = Budget::default();
        let compared =
            terms[8_000..8_064].iter().map(|word| candidates(&index.inner, word, &mut budget).len());
        let compared: Vec<usize> = compared.collect();
        assert!(compared[0] > 0 && compared[63] == 0, "{compared:?}");
        assert_eq!(budget.counted, 0);
    }

    #[test]
    fn trigrams_of_too_many_terms_are_not_looked_up() {
        let index = index((0..MAX_SHARING * 2).map(|number| format!("qwertyuiop{}", letters(number))));
        let mut budget = Budget::default();
        assert_eq!(candidates(&index.inner, "qwertyuiop", &mut budget).len(), 0);
        assert!(budget.counted > MAX_COUNTED / 2);
    }
}
