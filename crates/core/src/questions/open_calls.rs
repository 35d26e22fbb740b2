//! Calls that stay open while their callers answer questions in other requests.
//!
//! A call is held in this process under a random id, for one principal, object and list of arguments, until a request names it or its
//! time is over. It is bounded in number and bytes, of one caller and of all.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use rmcp::model::{InputRequests, InputResponses, JsonObject};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::{
    Questions,
    open_questions::{OpenCallId, OpenQuestions, Outcome},
    room::{QuestionRoom, budget},
};
use crate::{AppFuture, Claimant, Portion, Principal, Share, Shares};

/// Calls that are held at once.
const MOST: usize = 1_000;
/// Those of one caller.
const MOST_OF_ONE: usize = 100;

/// The request that a call belongs to. A retry has the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallKey {
    subject: Arc<str>,
    client: Option<Arc<str>>,
    endpoint: Option<Arc<str>>,
    object: Arc<str>,
    arguments: ArgumentsDigest,
}

impl CallKey {
    /// The key of a request of `principal` for `object` with arguments of this digest.
    pub(crate) fn new(principal: &Principal, object: &str, arguments: ArgumentsDigest) -> Self {
        let (subject, client) = (principal.subject.clone(), principal.client_id.clone());
        let endpoint = principal.endpoint.clone();
        Self { subject, client, endpoint, object: object.into(), arguments }
    }

    fn is_of_same_object(&self, other: &Self) -> bool {
        (&self.subject, &self.client, &self.endpoint, &self.object)
            == (&other.subject, &other.client, &other.endpoint, &other.object)
    }
}

/// Digest of arguments, whose members may be in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArgumentsDigest([u8; 32]);

impl ArgumentsDigest {
    /// The digest of `arguments`. Linear in their size, but for the sorting of members.
    pub(crate) fn of(arguments: &JsonObject) -> Self {
        let mut digest = Sha256::new();
        hash_members(arguments, &mut digest);
        Self(digest.finalize().into())
    }
}

/// A member of an object that is not built, for [`digest_of_parts`].
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_enums, reason = "whoever digests names every kind")]
pub enum DigestPart<'v> {
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A text.
    Text(&'v str),
    /// An array of texts.
    Texts(&'v [String]),
    /// An object.
    Object(&'v JsonObject),
}

/// The digest of the object with these members, by which requests are compared: it is not built, and its members may be in any order.
pub fn digest_of_parts<const N: usize>(mut parts: [(&str, DigestPart<'_>); N]) -> [u8; 32] {
    let mut digest = Sha256::new();
    parts.sort_unstable_by_key(|(name, _)| *name);
    digest.update(b"{");
    for (name, part) in parts {
        hash_text(name, &mut digest);
        match part {
            DigestPart::Null => digest.update(b"n"),
            DigestPart::Bool(true) => digest.update(b"t"),
            DigestPart::Bool(false) => digest.update(b"f"),
            DigestPart::Text(text) => hash_text(text, &mut digest),
            DigestPart::Texts(texts) => {
                digest.update(b"[");
                texts.iter().for_each(|text| hash_text(text, &mut digest));
                digest.update(b"]");
            }
            DigestPart::Object(object) => hash_members(object, &mut digest),
        }
    }
    digest.update(b"}");
    digest.finalize().into()
}

fn hash_members(members: &JsonObject, digest: &mut Sha256) {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    digest.update(b"{");
    for (name, member) in members {
        hash_text(name, digest);
        hash(member, digest);
    }
    digest.update(b"}");
}

fn hash(value: &serde_json::Value, digest: &mut Sha256) {
    use serde_json::Value;
    match value {
        Value::Object(members) => hash_members(members, digest),
        Value::Array(items) => {
            digest.update(b"[");
            items.iter().for_each(|item| hash(item, digest));
            digest.update(b"]");
        }
        Value::String(text) => hash_text(text, digest),
        Value::Number(number) => {
            digest.update(b"#");
            hash_text(&number.to_string(), digest);
        }
        Value::Bool(true) => digest.update(b"t"),
        Value::Bool(false) => digest.update(b"f"),
        Value::Null => digest.update(b"n"),
    }
}

fn hash_text(text: &str, digest: &mut Sha256) {
    digest.update(b"\"");
    digest.update((text.len() as u64).to_be_bytes());
    digest.update(text);
}

/// An open call whose caller answers in other requests.
pub(super) struct OpenCall {
    key: CallKey,
    pub(super) asked: Arc<OpenQuestions>,
    pub(super) questions: Questions,
    /// Times that it has asked.
    rounds: usize,
    /// The state that its client was given with its questions.
    state: Option<Box<str>>,
    _room: Share,
    _task: AbortOnDropHandle<()>,
}

/// Why a held call is not resumed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotOpen {
    /// There is no such call, or not any more.
    Over,
    /// The arguments are others.
    Changed,
    /// The response of this key does not fit its question.
    BadResponse(String),
}

/// The calls that are held.
#[derive(Debug, Clone)]
pub(crate) struct OpenCalls(Arc<Shared>);

struct Shared {
    table: Mutex<HashMap<OpenCallId, OpenCall>>,
    room: Arc<Shares>,
    bytes: Arc<Shares>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenCalls").field("open", &self.lock().len()).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<OpenCallId, OpenCall>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for OpenCalls {
    fn default() -> Self {
        Self(Arc::new(Shared {
            table: Mutex::default(),
            room: Shares::new(MOST, Portion::Fixed(MOST_OF_ONE)),
            bytes: budget(),
        }))
    }
}

impl OpenCalls {
    /// Room for the questions of a call of `claimant`.
    pub(super) fn question_room(&self, claimant: Claimant) -> QuestionRoom {
        QuestionRoom::new(self.0.bytes.clone(), claimant)
    }

    /// Room for one more call; none if there is no room for it.
    pub(super) fn room(&self, asked: &OpenQuestions) -> Option<Share> {
        self.0.room.take(asked.claimant().clone(), 1).ok()
    }

    /// Keeps `work` going on a task of its own.
    pub(super) fn begin(
        &self,
        key: CallKey,
        asked: Arc<OpenQuestions>,
        questions: Questions,
        room: Share,
        work: AppFuture<'static, Outcome>,
    ) -> OpenCall {
        asked.go_away();
        let task = tokio::spawn(keep(work, asked.clone(), Arc::downgrade(&self.0)));
        let task = AbortOnDropHandle::new(task);
        OpenCall { key, asked, questions, rounds: 0, state: None, _room: room, _task: task }
    }

    /// Lets `call` wait up to `longest` for answers to its questions: the id under which it does, and the questions. Gives the call back
    /// if it asks nothing any more.
    pub(super) fn hold(
        &self,
        mut call: OpenCall,
        longest: Duration,
    ) -> Result<(OpenCallId, InputRequests), Box<OpenCall>> {
        let requests = call.asked.requests();
        if requests.is_empty() {
            return Err(Box::new(call));
        }
        call.rounds += 1;
        let (id, asked) = (OpenCallId::random(), call.asked.clone());
        self.0.lock().insert(id, call);
        asked.leave(id, Instant::now() + longest);
        Ok((id, requests))
    }

    /// Notes the state with which the client of the call `id` brings its answers.
    pub(crate) fn note_state(&self, id: OpenCallId, state: &str) {
        if let Some(call) = self.0.lock().get_mut(&id) {
            call.state = Some(state.into());
        }
    }

    /// Drops the call whose questions were given with `state`, which cancels it.
    pub(crate) fn withdraw(&self, state: &str) {
        let withdrawn = {
            let mut table = self.0.lock();
            let id = table.iter().find(|(_, call)| call.state.as_deref() == Some(state)).map(|(id, _)| *id);
            id.and_then(|id| table.remove(&id))
        };
        drop(withdrawn);
    }

    /// Takes the call `id` for a request with `key`, which answers its questions. A call is taken once for each time that it asks.
    pub(super) fn take(
        &self,
        id: OpenCallId,
        key: &CallKey,
        responses: &InputResponses,
    ) -> Result<OpenCall, NotOpen> {
        let asked = {
            let table = self.0.lock();
            match table.get(&id) {
                Some(call) if call.key == *key => call.asked.clone(),
                Some(call) if call.key.is_of_same_object(key) => return Err(NotOpen::Changed),
                _ => return Err(NotOpen::Over),
            }
        };
        let answers = asked.read(responses).map_err(NotOpen::BadResponse)?;
        // Of two requests that came this far, one gets the call.
        let call = self.0.lock().remove(&id).ok_or(NotOpen::Over)?;
        asked.answer(answers);
        Ok(call)
    }
}

impl OpenCall {
    /// Returns `true` if it may not ask again.
    pub(super) fn has_asked_enough(&self) -> bool {
        self.rounds >= super::MOST_ROUNDS
    }
}

/// Works on a call until it is over. One that nobody came back for in time is dropped, which cancels it.
async fn keep(work: AppFuture<'static, Outcome>, asked: Arc<OpenQuestions>, calls: Weak<Shared>) {
    let mut left = asked.left();
    let mut work = Some(work);
    loop {
        let until = *left.borrow_and_update();
        if work.is_none() && until.is_none() {
            // Whoever waits for it has its end.
            return;
        }
        let over = async {
            match until {
                Some((_, until)) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let ended = async {
            match &mut work {
                Some(work) => work.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            outcome = ended => {
                work = None;
                asked.end(outcome);
            }
            changed = left.changed() => if changed.is_err() {
                return;
            },
            () = over => {
                let table = calls.upgrade();
                let of_table = until.and_then(|(id, _)| table.as_ref()?.lock().remove(&id));
                if of_table.is_some() || table.is_none() {
                    return;
                }
                // Somebody came in this moment.
                let _ = left.changed().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_digest_of_parts_is_that_of_the_object_that_they_make() {
        let (names, object) = (["b".to_owned(), "a".to_owned()], json!({"z": [1, null], "a": {}}));
        let whole = json!({"names": names, "script": "return 1", "object": object, "is": true, "no": false, "none": null});
        let parts = [
            ("script", DigestPart::Text("return 1")),
            ("names", DigestPart::Texts(&names)),
            ("none", DigestPart::Null),
            ("object", DigestPart::Object(object.as_object().unwrap())),
            ("is", DigestPart::Bool(true)),
            ("no", DigestPart::Bool(false)),
        ];
        assert_eq!(digest_of_parts(parts), ArgumentsDigest::of(whole.as_object().unwrap()).0);
    }
}
