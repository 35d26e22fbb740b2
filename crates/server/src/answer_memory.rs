//! A budget for answers of apps, from their arrival until the response that they become is written: in all, and a share of it for each caller.
//!
//! Answers to the calls of a script have the room of the script instead. What is on its way to a client counts in [`crate::unsent`].

use std::sync::{Arc, Mutex, PoisonError};

use gatewright_core::{AnswerRoom, Claimant, NoShare, Portion, Reserved, Share, Shares};

/// Bytes that values of answers take in memory until their calls end.
#[derive(Debug)]
pub(crate) struct AnswerMemory {
    shares: Arc<Shares>,
}

impl AnswerMemory {
    /// A budget of `mib` MiB. Answers are soon passed on, and whoever is alone may have half of it.
    pub(crate) fn new(mib: usize) -> Self {
        Self { shares: Shares::of_memory(mib << 20, Portion::AsMuchAsFree) }
    }

    /// Room for the answers to the calls of one request of `claimant`, and for what is made of them. It is given back when the room is dropped: with the
    /// request, or once its response is there. Answers that are longer than the whole budget take all of it.
    pub(crate) fn of(&self, claimant: Arc<Claimant>) -> AnswerRoom {
        let shares = self.shares.clone();
        let kept: Mutex<Option<Share>> = Mutex::default();
        AnswerRoom::new(move |bytes| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            let taken = kept.as_ref().map_or(0, Share::amount);
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(shares.most() - taken);
            let more = match &mut *kept {
                Some(share) => share.grow_whole(bytes),
                none => shares.take((*claimant).clone(), bytes).map(|share| *none = Some(share)),
            };
            more.map_err(|why| reason(bytes, why))?;
            Ok(Box::new(()) as Reserved)
        })
    }
}

/// The reason that a caller gets in place of an answer that takes `bytes` bytes in memory.
fn reason(bytes: usize, why: NoShare) -> String {
    let whose = match why {
        NoShare::Share => {
            "other answers to this caller, or its network, have its share of the memory for answers"
        }
        NoShare::Room => "other answers have the memory for answers",
    };
    format!(
        "the tool answered, and its answer was dropped: it would take {bytes} bytes of memory, and {whose}. What was asked may have \
         been done. Make fewer calls at a time, and ask for less at once; `http.maxUnsentMib` is the limit"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(subject: &str) -> Arc<Claimant> {
        Arc::new(Claimant::new(Some(subject.into()), None, &[]))
    }

    #[test]
    fn a_caller_has_half_or_one_answer_of_any_length_and_others_have_the_rest() {
        let memory = AnswerMemory::new(1);
        let full = |subject: &str| {
            let room = memory.of(caller(subject));
            room.reserve(100_000).map(|_| room)
        };
        let parts: Vec<_> = std::iter::from_fn(|| full("ada").ok()).take(20).collect();
        assert_eq!(parts.len(), 5, "half of the budget");
        let why = full("ada").err().unwrap();
        assert!(
            why.contains("100000 bytes") && why.contains("this caller") && why.contains("http.maxUnsentMib"),
            "{why}"
        );
        let bob = memory.of(caller("bob"));
        drop(bob.reserve(500_000).unwrap());
        assert!(full("eve").err().unwrap().contains("other answers have"), "it is kept with the request");
        drop((parts, bob));
        assert_eq!(memory.shares.taken(), 0);
        let alone = memory.of(caller("ada"));
        drop(alone.reserve(700_000).unwrap());
        drop(alone.reserve(64 << 20).unwrap());
        assert_eq!(memory.shares.taken(), 1 << 20, "what one request needs in all counts as one answer");
        drop(alone);
        assert!(memory.of(caller("bob")).reserve(1 << 20).is_ok(), "given back");
    }
}
