//! Memory for questions that wait for their answers, and for the results of calls that end meanwhile: a budget for all, and a share of it for each caller.

use std::{collections::VecDeque, fmt, sync::Arc};

use serde::Serialize;

use super::CannotAsk;
use crate::{Claimant, Portion, Share, Shares, measure};

/// Bytes for all. One caller has a fifth.
const MOST_BYTES: usize = 64 << 20;
/// Messages of a request that the connection of its client keeps until the request is answered, in the era with sessions.
const KEPT: usize = 16;

/// The budget of all callers.
pub(super) fn budget() -> Arc<Shares> {
    Shares::of_memory(MOST_BYTES, Portion::QuarterOfFree)
}

/// The part of the budget that a caller may have.
#[derive(Clone)]
pub(super) struct QuestionRoom {
    bytes: Arc<Shares>,
    claimant: Claimant,
}

impl fmt::Debug for QuestionRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuestionRoom").field("claimant", &self.claimant).finish_non_exhaustive()
    }
}

impl QuestionRoom {
    pub(super) fn new(bytes: Arc<Shares>, claimant: Claimant) -> Self {
        Self { bytes, claimant }
    }

    pub(super) fn claimant(&self) -> &Claimant {
        &self.claimant
    }

    /// Room for the text and the values of a question.
    ///
    /// # Errors
    /// There is none, or the caller has its share of it.
    pub(super) fn of_question(&self, question: &impl Serialize) -> Result<Share, CannotAsk> {
        let json = serde_json::to_vec(question).unwrap_or_default();
        let values = measure(&json, usize::MAX).map_or(0, |measured| measured.bytes);
        let bytes = json.len().saturating_add(usize::try_from(values).unwrap_or(usize::MAX));
        self.take(bytes).ok_or(CannotAsk::Busy)
    }

    pub(super) fn take(&self, bytes: usize) -> Option<Share> {
        self.bytes.take(self.claimant.clone(), bytes).ok()
    }
}

/// Room of the last questions that a client was asked on the stream of its request, which keeps them.
#[derive(Debug, Default)]
pub(super) struct KeptQuestions(VecDeque<Share>);

impl KeptQuestions {
    pub(super) fn push(&mut self, room: Share) {
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        self.0.push_back(room);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn questions_count_by_what_their_values_take_until_their_call_ends() {
        let budget = budget();
        let of =
            |subject: &str| QuestionRoom::new(budget.clone(), Claimant::new(Some(subject.into()), None, &[]));
        let (ada, bob) = (of("ada"), of("bob"));
        let many = json!({"message": "m", "_meta": {"a": vec![json!([[]]); 30_000]}});
        let mut kept = KeptQuestions::default();
        let asked = (0..100).map_while(|_| ada.of_question(&many).ok()).map(|room| kept.push(room)).count();
        assert!((1..4).contains(&asked), "{asked}");
        assert!(budget.taken() > 30_000 * 100 * asked && budget.taken() < MOST_BYTES / 3);
        assert!(bob.of_question(&many).is_ok());
        drop(kept);
        assert_eq!(budget.taken(), 0);
    }
}
