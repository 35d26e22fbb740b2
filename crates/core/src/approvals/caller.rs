//! The record of one caller: states that were used, and approvals that stand.
//!
//! One record of bounded size for each caller. A state is good once; when a caller used more states than are kept, the oldest ones make
//! room, and every state from before then counts as used.

use serde::{Deserialize, Serialize};

use super::ApprovalDuration;

/// Used states that are kept.
const MOST_USED: usize = 256;
/// Approvals of one caller that stand at the same time.
const MOST_STANDING: usize = 64;

/// The record of a caller.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct CallerRecord {
    /// States from this time and before count as used.
    used_before_ms: u64,
    /// The time until which one of those would be good.
    #[serde(default)]
    used_until_ms: u64,
    used: Vec<Used>,
    standing: Vec<StandingApproval>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Used {
    nonce: String,
    issued_ms: u64,
    until_ms: u64,
}

/// An approval that stands for an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StandingApproval {
    /// The text of the object.
    pub(super) object: String,
    pub(super) policy: String,
    /// The scope whose holder gave it.
    pub(super) approvers: Option<String>,
    /// The script that it is for; none: all requests.
    pub(super) run: Option<String>,
    pub(super) until_ms: u64,
    /// The credential that the caller was known by.
    #[serde(default)]
    pub(super) credential: Option<String>,
}

impl CallerRecord {
    /// Uses a state. Returns `false` if it was used before.
    pub(super) fn claim(&mut self, nonce: &str, issued_ms: u64, until_ms: u64, now_ms: u64) -> bool {
        if issued_ms <= self.used_before_ms || self.used.iter().any(|used| used.nonce == nonce) {
            return false;
        }
        self.used.retain(|used| used.until_ms > now_ms);
        self.used.push(Used { nonce: nonce.to_owned(), issued_ms, until_ms });
        if self.used.len() > MOST_USED
            && let Some(oldest) = (0..self.used.len()).min_by_key(|at| self.used[*at].issued_ms)
        {
            let oldest = self.used.swap_remove(oldest);
            self.used_before_ms = self.used_before_ms.max(oldest.issued_ms);
            self.used_until_ms = self.used_until_ms.max(oldest.until_ms);
        }
        true
    }

    /// Keeps an approval that stands.
    pub(super) fn stand(&mut self, stands: StandingApproval, now_ms: u64) {
        self.standing.retain(|one| one.until_ms > now_ms);
        if self.standing.len() == MOST_STANDING {
            self.standing.remove(0);
        }
        self.standing.push(stands);
    }

    /// The approvals that stand for requests for `object` that `policy` asks about.
    pub(super) fn standing(
        &self,
        (object, policy): (&str, &str),
        approvers: Option<&str>,
        run: Option<&str>,
        now_ms: u64,
    ) -> impl Iterator<Item = &StandingApproval> {
        self.standing.iter().filter(move |one| {
            one.until_ms > now_ms
                && one.object == object
                && one.policy == policy
                && one.approvers.as_deref() == approvers
                && (one.run.is_none() || one.run.as_deref() == run)
        })
    }

    /// The time until which the record is of use.
    pub(super) fn until_ms(&self) -> u64 {
        let used = self.used.iter().map(|used| used.until_ms);
        let standing = self.standing.iter().map(|one| one.until_ms);
        used.chain(standing).fold(self.used_until_ms, u64::max)
    }
}

impl StandingApproval {
    /// The approval that stands after one was given for `duration`; none for one request.
    pub(super) fn of(
        duration: ApprovalDuration,
        (object, policy): (&str, &str),
        approvers: Option<&str>,
        run: Option<&str>,
        until_ms: u64,
    ) -> Option<Self> {
        let run = match (duration, run) {
            (ApprovalDuration::Once, _) | (ApprovalDuration::Run, None) => return None,
            (ApprovalDuration::Run, Some(run)) => Some(run.to_owned()),
            (ApprovalDuration::Hour, _) => None,
        };
        Some(Self {
            object: object.to_owned(),
            policy: policy.to_owned(),
            approvers: approvers.map(str::to_owned),
            run,
            until_ms,
            credential: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stands(
        record: &CallerRecord,
        about: (&str, &str),
        approvers: Option<&str>,
        run: Option<&str>,
        now_ms: u64,
    ) -> bool {
        record.standing(about, approvers, run, now_ms).next().is_some()
    }

    #[test]
    fn a_state_is_used_once_however_many_come_after_it() {
        let mut record = CallerRecord::default();
        assert!(record.claim("a", 10, 1_000, 20) && !record.claim("a", 10, 1_000, 20));
        for n in 0..2 * MOST_USED as u64 {
            assert!(record.claim(&format!("n{n}"), 20 + n, 10_000, 30), "{n}");
        }
        assert!(record.used.len() <= MOST_USED);
        for (nonce, issued) in [("a", 10), ("n0", 20), ("n200", 220), ("n511", 531), ("never seen", 15)] {
            assert!(!record.claim(nonce, issued, 10_000, 30), "{nonce}");
        }
        assert!(record.claim("new", 600, 10_000, 30));
    }

    #[test]
    fn the_record_is_of_use_as_long_as_a_state_is_good_that_made_room() {
        let mut record = CallerRecord::default();
        assert!(record.claim("long", 1, 90_000, 10));
        for n in 0..=MOST_USED as u64 {
            assert!(record.claim(&format!("n{n}"), 20 + n, 1_000, 30));
        }
        assert!(!record.used.iter().any(|used| used.nonce == "long"));
        assert_eq!(record.until_ms(), 90_000);
    }

    #[test]
    fn an_approval_stands_for_its_tool_policy_approvers_and_run_until_it_ends() {
        let mut record = CallerRecord::default();
        let pay = ("shop:pay", "large");
        record.stand(StandingApproval::of(ApprovalDuration::Hour, pay, None, Some("exe_1"), 100).unwrap(), 0);
        record.stand(
            StandingApproval::of(
                ApprovalDuration::Run,
                ("shop:send", "mail"),
                Some("boss"),
                Some("exe_1"),
                100,
            )
            .unwrap(),
            0,
        );
        assert!(StandingApproval::of(ApprovalDuration::Once, pay, None, None, 100).is_none());
        assert!(stands(&record, pay, None, Some("exe_2"), 50) && stands(&record, pay, None, None, 50));
        assert!(!stands(&record, pay, None, None, 100), "it has ended");
        assert!(!stands(&record, ("shop:pay", "other"), None, None, 50));
        assert!(!stands(&record, pay, Some("boss"), None, 50), "the caller gave it, and now another has to");
        assert!(stands(&record, ("shop:send", "mail"), Some("boss"), Some("exe_1"), 50));
        assert!(!stands(&record, ("shop:send", "mail"), Some("boss"), Some("exe_2"), 50));
        for n in 0..100 {
            record.stand(
                StandingApproval::of(ApprovalDuration::Hour, (&format!("t{n}"), "p"), None, None, 100)
                    .unwrap(),
                0,
            );
        }
        assert_eq!(record.standing.len(), MOST_STANDING);
    }
}
