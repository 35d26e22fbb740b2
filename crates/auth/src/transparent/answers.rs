//! A cache of introspection responses, and the introspections under way.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;
use tokio::sync::Mutex as AsyncMutex;

use crate::keys::{Claims, TokenError};

/// Lifetimes of cached responses: an active token, at most until it expires; an inactive one; and a failure.
const GOOD_S: u64 = 30;
const BAD_S: u64 = 10;
const NONE_S: u64 = 2;
/// Cached responses, of active tokens and of others each.
const MOST: usize = 10_000;

type Digest = [u8; 32];
type Answer = Result<Claims, Option<TokenError>>;

/// Responses by the digests of tokens. Inactive tokens have a cache of their own, so that no flood of them evicts active ones.
#[derive(Default)]
pub(super) struct Answers {
    good: Mutex<HashMap<Digest, (Claims, u64)>>,
    bad: Mutex<HashMap<Digest, (Option<TokenError>, u64)>>,
    asking: Mutex<HashMap<Digest, Arc<AsyncMutex<()>>>>,
}

/// An introspection that is under way or waited for. Forgotten with the last request that waits.
pub(super) struct Question<'a> {
    pub(super) gate: Arc<AsyncMutex<()>>,
    of: &'a Answers,
    digest: Digest,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let mut asking = lock(&self.of.asking);
        // That of the map, and this one.
        if Arc::strong_count(&self.gate) <= 2 {
            asking.remove(&self.digest);
        }
    }
}

fn lock<T>(map: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while the lock is map.
    map.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep<T>(map: &Mutex<HashMap<Digest, (T, u64)>>, digest: Digest, value: T, until_s: u64, now_s: u64) {
    let mut map = lock(map);
    if map.len() >= MOST {
        map.retain(|_, (_, until)| *until > now_s);
        if map.len() >= MOST {
            map.clear();
        }
    }
    map.insert(digest, (value, until_s));
}

impl Answers {
    /// Returns the cached response for a token.
    pub(super) fn get(&self, digest: &Digest, now_s: u64) -> Option<Answer> {
        if let Some((claims, until)) = lock(&self.good).get(digest)
            && now_s < *until
        {
            return Some(Ok(claims.clone()));
        }
        let bad = lock(&self.bad);
        bad.get(digest).filter(|(_, until)| now_s < *until).map(|(why, _)| Err(*why))
    }

    /// Joins the queue for the introspection of a token.
    pub(super) fn question(&self, digest: Digest) -> Question<'_> {
        let gate = lock(&self.asking).entry(digest).or_default().clone();
        Question { gate, of: self, digest }
    }

    /// Caches a response.
    pub(super) fn keep(&self, digest: Digest, answer: &Answer, now_s: u64) {
        match answer {
            Ok(claims) => {
                let expires = claims.get("exp").and_then(Value::as_u64).unwrap_or(u64::MAX);
                keep(&self.good, digest, claims.clone(), expires.min(now_s + GOOD_S), now_s);
            }
            Err(why) => {
                let life = if why.is_some() { BAD_S } else { NONE_S };
                keep(&self.bad, digest, *why, now_s + life, now_s);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_bad_tokens_is_bounded_and_drives_no_good_one_out() {
        let answers = Answers::default();
        let good = [7; 32];
        answers.keep(good, &Ok(Claims::new()), 0);
        for number in 0..3 * MOST as u64 {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_be_bytes());
            answers.keep(digest, &Err(Some(TokenError::Revoked)), 0);
        }
        assert!(lock(&answers.bad).len() <= MOST);
        assert!(matches!(answers.get(&good, 1), Some(Ok(_))));
    }

    #[test]
    fn refusals_count_for_a_shorter_time_than_good_answers_and_failures_for_the_shortest() {
        let answers = Answers::default();
        let until = |answer: Answer| {
            answers.keep([1; 32], &answer, 100);
            let end = (100..200).find(|now| answers.get(&[1; 32], *now).is_none()).unwrap();
            lock(&answers.good).clear();
            lock(&answers.bad).clear();
            end - 100
        };
        assert_eq!(until(Ok(Claims::new())), GOOD_S);
        assert_eq!(until(Err(Some(TokenError::Revoked))), BAD_S);
        assert_eq!(until(Err(None)), NONE_S);
    }

    #[test]
    fn a_question_is_forgotten_with_the_last_who_waits() {
        let answers = Answers::default();
        let (one, two) = (answers.question([1; 32]), answers.question([1; 32]));
        assert!(Arc::ptr_eq(&one.gate, &two.gate));
        drop(one);
        assert_eq!(lock(&answers.asking).len(), 1);
        drop(two);
        assert!(lock(&answers.asking).is_empty());
    }
}
