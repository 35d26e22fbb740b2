//! A budget for answers of apps while they are read: in all, and a share of it for each caller.
//!
//! Answers to the calls of a script have the room of the script instead. What is on its way to a client counts in [`crate::unsent`].

use std::sync::Arc;

use gatewright_core::{AnswerRoom, Claimant, NoShare, Portion, Reserved, Shares};

/// Bytes that values of answers take in memory until their calls end.
#[derive(Debug)]
pub(crate) struct AnswerMemory {
    most: usize,
    shares: Arc<Shares>,
}

impl AnswerMemory {
    /// A budget of `mib` MiB. Reading is soon over, and whoever reads alone may have half of it.
    pub(crate) fn new(mib: usize) -> Self {
        let most = mib << 20;
        Self { most, shares: Shares::new(most, Portion::AsMuchAsFree) }
    }

    /// Room for the answers to the calls of one request of `claimant`. An answer that is longer than the whole budget takes all of it.
    pub(crate) fn of(&self, claimant: Arc<Claimant>) -> AnswerRoom {
        let (shares, most) = (self.shares.clone(), self.most);
        AnswerRoom::new(move |bytes| {
            let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(most);
            let share = shares.take((*claimant).clone(), bytes).map_err(|why| reason(bytes, why))?;
            Ok(Box::new(share) as Reserved)
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
        let (ada, bob) = (memory.of(caller("ada")), memory.of(caller("bob")));
        let parts: Vec<_> = std::iter::from_fn(|| ada.reserve(100_000).ok()).take(20).collect();
        assert_eq!(parts.len(), 5, "half of the budget");
        let why = memory.of(caller("ada")).reserve(100_000).err().unwrap();
        assert!(
            why.contains("100000 bytes") && why.contains("this caller") && why.contains("http.maxUnsentMib"),
            "{why}"
        );
        let rest = bob.reserve(500_000).unwrap();
        assert!(memory.of(caller("eve")).reserve(100_000).err().unwrap().contains("other answers have"));
        drop((parts, rest));
        assert_eq!(memory.shares.taken(), 0);
        drop(ada.reserve(u64::MAX).unwrap());
        assert!(bob.reserve(1 << 20).is_ok(), "given back");
    }
}
