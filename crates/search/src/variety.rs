//! Variety among the first hits of a request with several parts: words of it that no better hit has count once more.

use crate::{candidates::Candidate, features::Looked, parsed_query::ParsedQuery};

/// Candidates from which the first hits are chosen, the best ones.
const AMONG: usize = 20;
/// Hits that are chosen.
const CHOSEN: usize = 10;

/// Moves candidates up that have words of the request which those before them lack. All words together add `weight`.
pub(crate) fn vary(
    parsed: &ParsedQuery,
    weight: f32,
    candidates: &[Candidate],
    looked: &Looked,
    order: &mut Vec<(f32, Candidate)>,
) {
    if parsed.clauses < 2 {
        return;
    }
    let all = parsed.slots.iter().map(|slot| slot.idf).sum::<f32>().max(1e-6);
    let worth: Vec<f32> = parsed.slots.iter().map(|slot| weight * slot.idf / all).collect();
    let worth_of = |words: u64| -> f32 {
        worth.iter().enumerate().filter(|(at, _)| words >> at & 1 == 1).map(|(_, worth)| worth).sum()
    };
    let found = |one: &Candidate| {
        let same = |other: &Candidate| (other.part, other.document) == (one.part, one.document);
        candidates.iter().position(same).map_or(0, |at| looked.features[at].found)
    };
    let best = order.drain(..order.len().min(AMONG));
    let mut rest: Vec<(f32, Candidate, u64)> = best.map(|(key, one)| (key, one, found(&one))).collect();
    let (mut first, mut covered) = (Vec::with_capacity(rest.len()), 0);
    while first.len() < CHOSEN && !rest.is_empty() {
        let mut next = (0, f32::MIN);
        for (at, (key, _, words)) in rest.iter().enumerate() {
            let key = key + worth_of(words & !covered);
            if key > next.1 {
                next = (at, key);
            }
        }
        let (key, one, words) = rest.remove(next.0);
        covered |= words;
        first.push((key, one));
    }
    first.extend(rest.into_iter().map(|(key, one, _)| (key, one)));
    order.splice(..0, first);
}
