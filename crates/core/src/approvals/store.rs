//! Approvals in records that instances share, sealed.
//!
//! Each approval has a record under its id. One list has those that wait, bounded in number; one record for each caller has what is in
//! `caller`. Every change replaces exactly the record that was read, so that two instances never use one approval twice.

use std::{
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use data_encoding::HEXLOWER;
use futures::future::BoxFuture;
use tokio::sync::Notify;

use super::{
    ApprovalDuration, ApprovalEvent, ApprovalEventKind, ApprovalListener, ApprovalRecord, ApprovalState,
    Approver, CannotDecide, NotRequested, SealedState,
    caller::{CallerRecord, StandingApproval},
    record::now_ms,
    sealed::{SealedRecords, Write},
    waiting::{Entry, has_room},
};
use crate::{
    Authenticator, Claimant, MemoryRecords, Principal, RecordsError, RequestDigest, SealKey, SharedRecords,
    access::Sealer,
};

/// Time for which an approval stands that is given for an hour.
const HOUR: Duration = Duration::from_secs(3_600);
/// Name of the list.
const LIST: &str = "waiting";

/// The approvals of a gateway.
pub struct ApprovalStore {
    pub(super) records: SealedRecords,
    listener: OnceLock<Arc<dyn ApprovalListener>>,
    page: OnceLock<String>,
    callers: OnceLock<Weak<dyn Authenticator>>,
    /// Notified when an approval was settled here that a script waits for.
    pub(super) woken: Notify,
}

impl std::fmt::Debug for ApprovalStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApprovalStore").finish_non_exhaustive()
    }
}

impl From<RecordsError> for NotRequested {
    fn from(_: RecordsError) -> Self {
        Self::Store
    }
}

/// A decision that was taken for its request.
pub(super) type Taken = Result<ApprovalDuration, Option<String>>;

impl ApprovalStore {
    /// Approvals in the memory of this process.
    pub fn in_memory() -> Self {
        Self::new(Arc::new(MemoryRecords::default()), SealKey::random())
    }

    /// Approvals in `records`, sealed with keys of `key`.
    pub fn new(records: Arc<dyn SharedRecords>, key: SealKey) -> Self {
        let records = SealedRecords::new(records, key);
        let (listener, page, callers) = Default::default();
        Self { records, listener, page, callers, woken: Notify::new() }
    }

    /// Notifies `listener` of every step from now on. Only the first listener is kept.
    pub fn notify(&self, listener: Arc<dyn ApprovalListener>) {
        let _ = self.listener.set(listener);
    }

    /// Names the page on which users decide. Only the first address is kept.
    pub fn decided_at(&self, page: impl Into<String>) {
        let _ = self.page.set(page.into());
    }

    /// Asks `authenticator` for the credentials of callers, to which approvals that stand are bound. Only the first one is kept.
    pub fn callers_of(&self, authenticator: &Arc<dyn Authenticator>) {
        let _ = self.callers.set(Arc::downgrade(authenticator));
    }

    async fn credential(&self, principal: &Principal) -> Result<Option<String>, RecordsError> {
        match self.callers.get() {
            Some(callers) => callers.upgrade().ok_or(RecordsError::Unavailable)?.credential(principal).await,
            None => Ok(None),
        }
    }

    /// The sealer of states: those of a store in memory are good as long as the record of those that were used.
    pub(crate) fn sealer(&self) -> Sealer {
        Sealer::new(self.records.key())
    }

    pub(super) fn page(&self) -> Option<String> {
        self.page.get().cloned()
    }

    pub(super) fn tell(&self, event: &ApprovalEvent) {
        tracing::debug!(object = %event.object, "{}", event.kind.name());
        if let Some(listener) = self.listener.get() {
            listener.notice(event);
        }
    }

    /// The id of the approval of one request: hard to guess, and the same for the same request of the same caller.
    pub(super) fn id(&self, principal: &Principal, digest: RequestDigest) -> String {
        let mut call = caller_name(principal);
        call.extend_from_slice(digest.as_bytes());
        format!("apr_{}", HEXLOWER.encode(&self.records.key().digest("approval id", &call)[..16]))
    }

    fn caller_key(&self, principal: &Principal) -> String {
        let digest = self.records.key().digest("approvals of a caller", &caller_name(principal));
        format!("caller {}", HEXLOWER.encode(&digest[..16]))
    }

    /// Uses a state. Returns `false` if it was used before.
    pub(super) async fn claim(
        &self,
        principal: &Principal,
        state: &SealedState,
    ) -> Result<bool, RecordsError> {
        self.change_caller(principal, |record, now| {
            record.claim(&state.nonce, state.issued_ms, state.until_ms, now)
        })
        .await
    }

    /// Keeps what follows from an approval that was given for longer than a request for an object that a policy asks `about`.
    pub(super) async fn stand(
        &self,
        principal: &Principal,
        duration: ApprovalDuration,
        about: (&str, &str),
        approvers: Option<&str>,
        run: Option<&str>,
    ) -> Result<(), RecordsError> {
        // A script is forgotten in a day or so; an hour bounds both.
        let until_ms = now_ms() + super::record::millis(HOUR);
        let Some(mut stands) = StandingApproval::of(duration, about, approvers, run, until_ms) else {
            return Ok(());
        };
        stands.credential = self.credential(principal).await?;
        self.change_caller(principal, |record, now| {
            record.stand(stands.clone(), now);
            true
        })
        .await
        .map(|_| ())
    }

    async fn change_caller(
        &self,
        principal: &Principal,
        mut step: impl FnMut(&mut CallerRecord, u64) -> bool + Send,
    ) -> Result<bool, RecordsError> {
        self.records
            .change(&self.caller_key(principal), |record: Option<CallerRecord>| {
                let (mut record, now) = (record.unwrap_or_default(), now_ms());
                if !step(&mut record, now) {
                    return (Write::Leave, false);
                }
                let life = Duration::from_millis(record.until_ms().saturating_sub(now).max(1));
                (Write::Put(record, life), true)
            })
            .await
    }

    /// Returns `true` if an approval stands for requests for an object that a policy asks `about`.
    pub(super) async fn stands(
        &self,
        principal: &Principal,
        about: (&str, &str),
        approvers: Option<&str>,
        run: Option<&str>,
    ) -> Result<bool, RecordsError> {
        let (_, record) = self.records.read::<CallerRecord>(&self.caller_key(principal)).await?;
        let Some(record) = record else { return Ok(false) };
        let mut standing = record.standing(about, approvers, run, now_ms()).peekable();
        if standing.peek().is_none() {
            return Ok(false);
        }
        let credential = self.credential(principal).await?;
        Ok(standing.any(|one| one.credential == credential))
    }

    /// Takes the decision on a request, if there is one that `approvers` made. Nobody else can take it then.
    pub(super) async fn take(
        &self,
        id: &str,
        approvers: Option<&str>,
    ) -> Result<Option<Taken>, RecordsError> {
        self.records
            .change(id, |record: Option<ApprovalRecord>| {
                let record =
                    record.filter(|one| one.expires_ms > now_ms() && one.approvers.as_deref() == approvers);
                match record {
                    Some(record) if record.state == ApprovalState::Approved => {
                        (Write::Remove, Some(Ok(record.duration)))
                    }
                    Some(record) if record.state == ApprovalState::Denied => {
                        (Write::Remove, Some(Err(record.by)))
                    }
                    _ => (Write::Leave, None),
                }
            })
            .await
    }

    /// Lets an approval wait, of which `most_of_caller` of one subject may. The same request waits once, however often it is made; then the earlier
    /// record is returned.
    ///
    /// # Errors
    /// Too many wait, or the store does not answer.
    pub fn request<'a>(
        &'a self,
        record: ApprovalRecord,
        claimant: &'a Claimant,
        most_of_caller: usize,
    ) -> BoxFuture<'a, Result<ApprovalRecord, NotRequested>> {
        Box::pin(async move {
            let entry = Entry::of(&record, claimant);
            let has_room = self
                .change_list(|list| {
                    if let Some(one) = list.iter_mut().find(|one| one.id == entry.id) {
                        return (one.add_runs(&entry.runs), true);
                    }
                    let has_room = has_room(list, claimant, &entry.subject, most_of_caller);
                    if has_room {
                        list.push(entry.clone());
                    }
                    (has_room, has_room)
                })
                .await?;
            if !has_room {
                return Err(NotRequested::TooMany);
            }
            let (kept, is_new) = self
                .records
                .change(&record.id, |before: Option<ApprovalRecord>| {
                    let waits = |before: &ApprovalRecord| {
                        before.expires_ms > now_ms() && before.approvers == record.approvers
                    };
                    match before.filter(waits) {
                        Some(before) => (Write::Leave, (before, false)),
                        None => (Write::Put(record.clone(), life(&record)), (record.clone(), true)),
                    }
                })
                .await?;
            if is_new {
                self.tell(&event(&kept, ApprovalEventKind::Asked));
            }
            Ok(kept)
        })
    }

    /// Returns `true` while nobody has decided on the approval `id`, and it has not expired.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn waits(&self, id: &str) -> Result<bool, RecordsError> {
        let (_, record) = self.records.read::<ApprovalRecord>(id).await?;
        Ok(record.is_some_and(|one| one.state == ApprovalState::Waiting && one.expires_ms > now_ms()))
    }

    /// The approvals that wait for `approver`, newest first.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn list(&self, approver: Approver<'_>) -> Result<Vec<ApprovalRecord>, RecordsError> {
        let ids = self
            .change_list(|list| (false, list.iter().map(|entry| entry.id.clone()).collect::<Vec<_>>()))
            .await?;
        let records = self.records.read_many::<ApprovalRecord>(&ids).await?;
        let mut waiting: Vec<ApprovalRecord> = records
            .into_iter()
            .filter(|one| one.state == ApprovalState::Waiting && one.expires_ms > now_ms())
            .filter(|one| approver.may_decide(one))
            .collect();
        waiting.sort_by_key(|one| std::cmp::Reverse(one.created_ms));
        Ok(waiting)
    }

    /// Decides on the approval `id`, or with an [`ApprovalRecord::decision_id`] on the one that somebody saw: for `Some`, the request passes once, and for
    /// as long as that stands; for `None` it fails once.
    ///
    /// # Errors
    /// No such approval waits for `approver`, or the store does not answer.
    pub fn decide<'a>(
        &'a self,
        id: &'a str,
        approved: Option<ApprovalDuration>,
        approver: Approver<'a>,
    ) -> BoxFuture<'a, Result<ApprovalRecord, CannotDecide>> {
        Box::pin(async move {
            let (decision_id, id) = (id, id.split_once('-').map_or(id, |(id, _)| id));
            if !is_id(id) {
                return Err(CannotDecide::NotFound);
            }
            // A form that was left open is not for the same request of later.
            let is_meant = |one: &ApprovalRecord| decision_id == id || decision_id == one.decision_id();
            let waits = |one: &ApprovalRecord, now| {
                one.state == ApprovalState::Waiting && one.expires_ms > now && is_meant(one)
            };
            let (_, record) = self.records.read::<ApprovalRecord>(id).await?;
            if !record.is_some_and(|one| waits(&one, now_ms()) && approver.may_decide(&one)) {
                return Err(CannotDecide::NotFound);
            }
            self.announce(id).await?;
            let decided = self
                .records
                .change(id, |record: Option<ApprovalRecord>| {
                    let now = now_ms();
                    let may = |one: &ApprovalRecord| waits(one, now) && approver.may_decide(one);
                    let Some(mut record) = record.filter(may) else {
                        return (Write::Leave, None);
                    };
                    // Whoever waited long for it has as long again to use it.
                    record.expires_ms = now.saturating_add(record.expires_ms - record.created_ms);
                    record.state =
                        if approved.is_some() { ApprovalState::Approved } else { ApprovalState::Denied };
                    let offered = approved.filter(|duration| record.durations().contains(duration));
                    record.duration = offered.unwrap_or_default();
                    record.by = Some(approver.name().to_owned());
                    (Write::Put(record.clone(), life(&record)), Some(record))
                })
                .await?;
            let record = decided.ok_or(CannotDecide::NotFound)?;
            let kind = match record.state {
                ApprovalState::Denied => ApprovalEventKind::Denied,
                ApprovalState::Approved | ApprovalState::Waiting => ApprovalEventKind::Approved,
            };
            self.tell(&event(&record, kind));
            if let Err(error) = self.unlist(id).await {
                tracing::debug!(%error, "an approval stays in the list until it expires");
            }
            Ok(record)
        })
    }

    /// Decides on the approval that a form shows, by its [`ApprovalRecord::decision_id`].
    ///
    /// # Errors
    /// As [`Self::decide`]; the id of the request alone is none.
    pub async fn decide_on_shown(
        &self,
        decision_id: &str,
        approved: Option<ApprovalDuration>,
        approver: Approver<'_>,
    ) -> Result<ApprovalRecord, CannotDecide> {
        if !decision_id.contains('-') {
            return Err(CannotDecide::NotFound);
        }
        self.decide(decision_id, approved, approver).await
    }

    /// Ends an approval that waits, for one that its caller gave elsewhere.
    pub(super) async fn withdraw(&self, id: &str) {
        let gone = self
            .records
            .change(id, |record: Option<ApprovalRecord>| match record {
                Some(record) if record.state == ApprovalState::Waiting => (Write::Remove, true),
                _ => (Write::Leave, false),
            })
            .await;
        if gone == Ok(true)
            && let Err(error) = self.unlist(id).await
        {
            tracing::debug!(%error, "an approval stays in the list until it expires");
        }
    }

    /// Removes an approval from the list, and wakes the scripts that wait for it.
    async fn unlist(&self, id: &str) -> Result<(), RecordsError> {
        let runs = self
            .change_list(|list| {
                let removed = list.extract_if(.., |entry| entry.id == id).collect::<Vec<_>>();
                (!removed.is_empty(), removed.into_iter().flat_map(|entry| entry.runs).collect::<Vec<_>>())
            })
            .await?;
        self.settle(&runs).await
    }

    /// Changes the list, without those that have expired. `step` says whether it changed something.
    pub(super) async fn change_list<R: Send>(
        &self,
        mut step: impl FnMut(&mut Vec<Entry>) -> (bool, R) + Send,
    ) -> Result<R, RecordsError> {
        let (expired, result) = self
            .records
            .change(LIST, |list: Option<Vec<Entry>>| {
                let (now, mut list) = (now_ms(), list.unwrap_or_default());
                let expired: Vec<Entry> = list.extract_if(.., |entry| entry.expires_ms <= now).collect();
                let (is_changed, result) = step(&mut list);
                if !is_changed && expired.is_empty() {
                    return (Write::Leave, (expired, result));
                }
                let last = list.iter().map(|entry| entry.expires_ms).max();
                match last {
                    // Kept for a day more, so that somebody looks at those that expired.
                    Some(last) => {
                        let life = Duration::from_millis(last.saturating_sub(now)) + 24 * HOUR;
                        (Write::Put(list, life), (expired, result))
                    }
                    None => (Write::Remove, (expired, result)),
                }
            })
            .await?;
        let runs: Vec<String> = expired.iter().flat_map(|entry| entry.runs.iter().cloned()).collect();
        for entry in expired {
            self.tell(&ApprovalEvent {
                kind: ApprovalEventKind::Expired,
                at: std::time::SystemTime::now(),
                subject: entry.subject,
                client: entry.client,
                object: entry.object,
                policy: entry.policy,
                digest: entry.digest,
                by: None,
                duration: None,
            });
        }
        if let Err(error) = self.settle(&runs).await {
            tracing::debug!(%error, "scripts whose approval expired go on with the next look of their clients");
        }
        Ok(result)
    }
}

/// Subject and client, so that no two callers have the same bytes.
fn caller_name(principal: &Principal) -> Vec<u8> {
    let client = principal.client_id.as_deref();
    let mut name = (principal.subject.len() as u64).to_be_bytes().to_vec();
    name.extend_from_slice(principal.subject.as_bytes());
    name.push(u8::from(client.is_some()));
    name.extend_from_slice(client.unwrap_or_default().as_bytes());
    name.push(0xff);
    name
}

fn is_id(id: &str) -> bool {
    id.strip_prefix("apr_").is_some_and(|rest| rest.len() == 32 && HEXLOWER.decode(rest.as_bytes()).is_ok())
}

fn life(record: &ApprovalRecord) -> Duration {
    Duration::from_millis(record.expires_ms.saturating_sub(now_ms()).max(1))
}

fn event(record: &ApprovalRecord, kind: ApprovalEventKind) -> ApprovalEvent {
    ApprovalEvent {
        kind,
        at: std::time::SystemTime::now(),
        subject: record.subject.clone(),
        client: record.client.clone(),
        object: record.object.clone(),
        policy: record.policy.clone(),
        digest: record.digest.clone(),
        by: record.by.clone(),
        duration: (kind == ApprovalEventKind::Approved).then_some(record.duration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_a_store_in_memory_open_in_that_store_alone() {
        let (principal, stores) =
            (Principal::local(), [ApprovalStore::in_memory(), ApprovalStore::in_memory()]);
        let state = SealedState::asking(RequestDigest::of("a:b", &rmcp::model::JsonObject::default()), 1_000);
        let sealed = stores[0].sealer().approval(&principal, "a:b", &state);
        let opens = |store: &ApprovalStore| {
            store.sealer().open_approval::<SealedState>(&principal, "a:b", &sealed).is_some()
        };
        assert_eq!(stores.each_ref().map(opens), [true, false]);
    }
}
