//! The list of approvals that wait: bounded, and shared out among callers.

use serde::{Deserialize, Serialize};

use super::ApprovalRecord;
use crate::{Claimant, Portion, RequestObject};

/// Approvals that wait at the same time, of all callers.
const MOST_WAITING: usize = 500;
/// Scripts that an approval is known to be waited for by; more go on with the next look of their clients.
const MOST_RUNS: usize = 32;

/// An approval that waits, as the list has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) subject: String,
    /// The subject or networks whose shares it takes part of.
    #[serde(default)]
    parties: Vec<String>,
    pub(super) client: Option<String>,
    #[serde(flatten)]
    pub(super) object: RequestObject,
    pub(super) policy: String,
    pub(super) digest: String,
    pub(super) expires_ms: u64,
    /// Scripts that make the call, at most [`MOST_RUNS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) runs: Vec<String>,
}

impl Entry {
    /// The entry of `record`, which takes part of the shares of `claimant`.
    pub(super) fn of(record: &ApprovalRecord, claimant: &Claimant) -> Self {
        Self {
            id: record.id.clone(),
            subject: record.subject.clone(),
            parties: claimant.parties().map(|(party, _)| party).collect(),
            client: record.client.clone(),
            object: record.object.clone(),
            policy: record.policy.clone(),
            digest: record.digest.clone(),
            expires_ms: record.expires_ms,
            runs: record.run.iter().cloned().collect(),
        }
    }

    /// Adds scripts that make the call. Returns `true` if there was one that was not known.
    pub(super) fn add_runs(&mut self, runs: &[String]) -> bool {
        let room = MOST_RUNS.saturating_sub(self.runs.len());
        let added: Vec<String> =
            runs.iter().filter(|run| !self.runs.contains(run)).take(room).cloned().collect();
        self.runs.extend_from_slice(&added);
        !added.is_empty()
    }
}

/// Returns `true` if one more of `claimant` may wait: a quarter of the free places at most, and the first one as long as there is one.
pub(super) fn has_room(list: &[Entry], claimant: &Claimant, subject: &str, most_of_caller: usize) -> bool {
    let Some(free) = MOST_WAITING.checked_sub(list.len() + 1) else { return false };
    let own = |is_own: &dyn Fn(&Entry) -> bool| list.iter().filter(|one| is_own(one)).count();
    let share = Portion::UpTo(most_of_caller);
    let mut parties = claimant.parties().peekable();
    if parties.peek().is_none() {
        // Callers without a name and an address count as one.
        return own(&|one| one.parties.is_empty() && one.subject == subject) < most_of_caller;
    }
    parties.all(|(party, times)| share.allows(own(&|one| one.parties.contains(&party)), times, 1, free))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(claimant: &Claimant, subject: &str, most: usize) -> impl FnMut(&mut Vec<Entry>) -> bool {
        move |list| {
            let may = has_room(list, claimant, subject, most);
            if may {
                list.push(Entry {
                    id: String::new(),
                    subject: subject.to_owned(),
                    parties: claimant.parties().map(|(party, _)| party).collect(),
                    client: None,
                    object: RequestObject::Tool("a:b".to_owned()),
                    policy: String::new(),
                    digest: String::new(),
                    expires_ms: 0,
                    runs: Vec::new(),
                });
            }
            may
        }
    }

    #[test]
    fn many_subjects_with_all_they_may_have_leave_room_for_others() {
        let mut list = Vec::new();
        for n in 0..25 {
            let subject = format!("s{n}");
            let claimant = Claimant::new(Some(subject.as_str().into()), None, &[]);
            while waiting(&claimant, &subject, 20)(&mut list) {}
        }
        for n in 0..20 {
            let subject = format!("late{n}");
            let claimant = Claimant::new(Some(subject.as_str().into()), None, &[]);
            assert!(waiting(&claimant, &subject, 20)(&mut list), "{n} {}", list.len());
        }
    }

    #[test]
    fn callers_without_names_have_shares_by_network_and_those_without_addresses_count_as_one() {
        let mut list = Vec::new();
        let at = |address: &str| Claimant::new(None, Some(address.parse().unwrap()), &[]);
        while waiting(&at("192.0.2.1"), "anonymous", 20)(&mut list) {}
        assert_eq!(list.len(), 20);
        assert!(waiting(&at("198.51.100.1"), "anonymous", 20)(&mut list));
        let nowhere = Claimant::default();
        for _ in 0..20 {
            assert!(waiting(&nowhere, "anonymous", 20)(&mut list));
        }
        assert!(!waiting(&nowhere, "anonymous", 20)(&mut list));
    }
}
