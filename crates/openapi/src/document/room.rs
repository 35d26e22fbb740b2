//! Memory for documents while they are read: what the values of a text will take is taken before they are built.

use std::{
    sync::{Arc, Condvar, LazyLock, Mutex, PoisonError},
    time::{Duration, Instant},
};

use gatewright_core::{Claimant, FreeMemory, Portion, Share, Shares, Unreadable, measure};

use super::DocumentError;

/// Times that the values of a document are in memory: themselves, and the tools and schemas that are made of them.
const COPIES: u64 = 2;
/// Bytes of a value, its key and its part of an array or an object, by the characters that divide values in YAML.
const BYTES_PER_DIVIDER: u64 = 60;
/// Documents that need less are read whatever is left.
const SHORT: u64 = 1 << 20;
/// Longest wait until other documents are read.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Half of what the machine or the container has.
static ALL: LazyLock<Arc<Shares>> = LazyLock::new(|| {
    Shares::of_places(FreeMemory::of_system().part(2, usize::MAX), 1, Portion::AsMuchAsFree)
});

/// Told when a document has given its room back. It has changed nothing of what is free for whoever holds this.
static GIVEN_BACK: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

/// Choice for a document where others that are being read have the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfTaken {
    /// Wait for a while.
    Wait,
    /// Do without: the document has room itself, which others may wait for.
    Refuse,
}

/// Room for the values of a text, which is given back when this is dropped.
#[derive(Debug, Default)]
pub(super) struct DocumentRoom {
    share: Option<Share>,
}

impl Drop for DocumentRoom {
    fn drop(&mut self) {
        if let Some(share) = self.share.take() {
            let _waiting = GIVEN_BACK.0.lock().unwrap_or_else(PoisonError::into_inner);
            drop(share);
            GIVEN_BACK.1.notify_all();
        }
    }
}

impl DocumentRoom {
    /// Room for the values of a JSON text with `most` keys and values.
    ///
    /// # Errors
    /// There are more, or there is no room.
    pub(super) fn of_json(text: &str, most: usize, if_taken: IfTaken) -> Result<Self, DocumentError> {
        let measured = measure(text.as_bytes(), most).map_err(|problem| match problem {
            Unreadable::TooMany => DocumentError::TooLarge(problem.to_string()),
            Unreadable::TooDeep | Unreadable::ReservedKey => DocumentError::Syntax(problem.to_string()),
        })?;
        Self::take(&ALL, measured.bytes, if_taken)
    }

    /// Room for the values of a YAML text, whose aliases may stand for `most` values.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn of_yaml(text: &str, most: usize, if_taken: IfTaken) -> Result<Self, DocumentError> {
        Self::take(&ALL, bytes_of_yaml(text, most), if_taken)
    }

    fn take(all: &Arc<Shares>, bytes: u64, if_taken: IfTaken) -> Result<Self, DocumentError> {
        let bytes = bytes.saturating_mul(COPIES);
        if bytes <= SHORT {
            return Ok(Self::default());
        }
        let whole = usize::try_from(bytes).unwrap_or(usize::MAX);
        let until = Instant::now() + LONGEST_WAIT;
        let mut waiting = GIVEN_BACK.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Ok(share) = all.take(Claimant::default(), whole) {
                return Ok(Self { share: Some(share) });
            }
            let left = until.saturating_duration_since(Instant::now());
            if if_taken == IfTaken::Refuse || all.taken() == 0 || left.is_zero() {
                return Err(DocumentError::NoMemory(format!(
                    "it needs some {} MiB of memory while it is read, which the machine or the container does not have left now",
                    bytes >> 20
                )));
            }
            let woken = GIVEN_BACK.1.wait_timeout(waiting, left);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn bytes_of_yaml(text: &str, most: usize) -> u64 {
    let bytes = text.as_bytes();
    let dividers = bytes.iter().filter(|byte| b":,-[{\n".contains(byte)).count();
    let begins = |mark: u8| {
        bytes.windows(3).any(|three| {
            three[1] == mark && !three[2].is_ascii_whitespace() && b" \t\r\n[,{:".contains(&three[0])
        })
    };
    let values = if begins(b'&') && begins(b'*') { most.max(dividers) } else { dividers };
    (values as u64).saturating_mul(BYTES_PER_DIVIDER).saturating_add(2 * text.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_take_room_for_their_values_and_those_without_are_refused() {
        let all = Shares::new(10 << 20, Portion::AsMuchAsFree);
        let take = |bytes, if_taken| DocumentRoom::take(&all, bytes, if_taken);
        let room = take(3 << 20, IfTaken::Wait).unwrap();
        let refused = take(3 << 20, IfTaken::Refuse).unwrap_err().to_string();
        assert!(refused.contains("it needs some 6 MiB of memory while it is read"), "{refused}");
        assert!(take(SHORT / COPIES, IfTaken::Refuse).is_ok(), "little is read in any case");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| take(3 << 20, IfTaken::Wait).is_ok());
            drop(room);
            assert!(waits.join().unwrap());
        });
        assert!(take(6 << 20, IfTaken::Wait).is_err(), "nobody else has room");
    }

    #[test]
    fn values_of_yaml_are_counted_by_what_divides_them_and_aliases_as_many_as_they_may_be() {
        let objects = "- {a: 1}\n".repeat(1_000);
        assert!(bytes_of_yaml(&objects, 1 << 20) >= 1_000 * 240);
        assert!(bytes_of_yaml("a: &b [1]\nc: *b", 1_000_000) >= 60_000_000);
        assert!(bytes_of_yaml("a:\t&_b [1]\nc:\t*_b", 1_000_000) >= 60_000_000);
        assert!(bytes_of_yaml("a: R & D, *bold* and 2*b&c", 1_000_000) < 1_000);
    }
}
