//! What a provider's introspection said a moment ago, and who asks it about a token now.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;
use tokio::sync::Mutex as AsyncMutex;

use crate::keys::{Claims, Refused};

/// How long an answer is kept: that a token is good, at most until it expires; that it is not; and that there was no answer.
const GOOD_S: u64 = 30;
const BAD_S: u64 = 10;
const NONE_S: u64 = 2;
/// Answers kept, of good tokens and of others each.
const MOST: usize = 10_000;

type Digest = [u8; 32];
type Answer = Result<Claims, Option<Refused>>;

/// Answers by the digests of tokens. Refusals have room of their own: no flood of bad tokens drives the good ones out.
#[derive(Default)]
pub(super) struct Answers {
    good: Mutex<HashMap<Digest, (Claims, u64)>>,
    bad: Mutex<HashMap<Digest, (Option<Refused>, u64)>>,
    asking: Mutex<HashMap<Digest, Arc<AsyncMutex<()>>>>,
}

/// A question about a token that is asked, or waited for. Forgotten with the last one who waits.
pub(super) struct Question<'a> {
    pub(super) gate: Arc<AsyncMutex<()>>,
    of: &'a Answers,
    digest: Digest,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let mut asking = lock(&self.of.asking);
        // The map's, and this one.
        if Arc::strong_count(&self.gate) <= 2 {
            asking.remove(&self.digest);
        }
    }
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds the lock.
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep<T>(held: &Mutex<HashMap<Digest, (T, u64)>>, digest: Digest, value: T, until_s: u64, now_s: u64) {
    let mut held = lock(held);
    if held.len() >= MOST {
        held.retain(|_, (_, until)| *until > now_s);
        if held.len() >= MOST {
            held.clear();
        }
    }
    held.insert(digest, (value, until_s));
}

impl Answers {
    /// The answer about a token, while it counts.
    pub(super) fn get(&self, digest: &Digest, now_s: u64) -> Option<Answer> {
        if let Some((claims, until)) = lock(&self.good).get(digest)
            && now_s < *until
        {
            return Some(Ok(claims.clone()));
        }
        let bad = lock(&self.bad);
        bad.get(digest).filter(|(_, until)| now_s < *until).map(|(why, _)| Err(*why))
    }

    /// Stands in line to ask about a token.
    pub(super) fn question(&self, digest: Digest) -> Question<'_> {
        let gate = lock(&self.asking).entry(digest).or_default().clone();
        Question { gate, of: self, digest }
    }

    /// Keeps an answer.
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
            answers.keep(digest, &Err(Some(Refused::Revoked)), 0);
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
        assert_eq!(until(Err(Some(Refused::Revoked))), BAD_S);
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
