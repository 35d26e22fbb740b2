//! A budget for requests in memory: the text of each message and the values that are read from it, in all and a share for each caller.
//!
//! A [`Message`] has room for both. Its text is handed over together with that room, on the request that the context of the call
//! keeps until the call ends.

use std::sync::Arc;

use bytes::Bytes;
use gatewright_core::{Claimant, NoShare, Portion, Share, Shares};
use http::request::Parts;

use crate::body::BodyError;

/// Memory of a request that is not counted, in bytes: the number of requests is bounded elsewhere.
const UNCOUNTED: usize = 16 * 1024;
/// Times that the text of a list of followed resources takes in memory, while apps are asked to follow them.
const COPIES_FOLLOWED: usize = 48;

/// Memory that a stream takes whose request has a text of `bytes`, as long as it is open. Unlike requests, streams stay: short ones count, too.
pub(crate) fn of_listening(bytes: usize) -> u64 {
    (UNCOUNTED + COPIES_FOLLOWED * bytes) as u64
}

/// MiB for all requests, unless the configuration says otherwise.
pub(crate) const DEFAULT_MIB: usize = 512;

/// Memory that requests take.
#[derive(Debug)]
pub(crate) struct RequestMemory {
    shares: Arc<Shares>,
}

impl RequestMemory {
    /// A budget of `mib` MiB.
    pub(crate) fn new(mib: usize) -> Self {
        Self { shares: Shares::of_memory(mib << 20, Portion::QuarterOfFree) }
    }

    /// Bytes that are counted now.
    pub(crate) fn taken(&self) -> usize {
        self.shares.taken()
    }

    /// Room for a request of `claimant`, of which nothing is there yet.
    pub(crate) fn begin(&self, claimant: Claimant) -> Room {
        Room { shares: self.shares.clone(), claimant, bytes: 0, share: None }
    }
}

/// Room that one request takes until this is dropped.
#[derive(Debug)]
pub(crate) struct Room {
    shares: Arc<Shares>,
    claimant: Claimant,
    bytes: usize,
    share: Option<Share>,
}

impl Room {
    /// Takes `more` bytes. A request that is longer than the whole budget takes all of it.
    ///
    /// # Errors
    /// There is no room, or the caller has its share and other requests.
    pub(crate) fn grow(&mut self, more: usize) -> Result<(), NoShare> {
        let counted = |bytes: usize| if bytes > UNCOUNTED { bytes.min(self.shares.most()) } else { 0 };
        let bytes = self.bytes.saturating_add(more);
        match (&mut self.share, counted(bytes), counted(self.bytes)) {
            (_, after, before) if after == before => {}
            (Some(share), after, before) => share.grow_whole(after - before)?,
            (share, after, _) => *share = Some(self.shares.take(self.claimant.clone(), after)?),
        }
        self.bytes = bytes;
        Ok(())
    }
}

/// A body as its pieces arrive, up to a length and the room that there is.
pub(crate) struct Pieces<'r> {
    most: usize,
    room: &'r mut Room,
    length: usize,
    /// Bytes for which room is taken.
    counted: usize,
    first: Bytes,
    /// All pieces, once there are two.
    all: Vec<u8>,
    refused: Option<BodyError>,
}

impl<'r> Pieces<'r> {
    /// A body of at most `most` bytes, for which `room` is taken.
    pub(crate) fn new(most: usize, room: &'r mut Room) -> Self {
        Self { most, room, length: 0, counted: 0, first: Bytes::new(), all: Vec::new(), refused: None }
    }

    /// Bytes that arrived, those that were dropped included.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Adds a piece.
    ///
    /// # Errors
    /// The body is not kept; further pieces are dropped.
    pub(crate) fn add(&mut self, piece: Bytes) -> Result<(), BodyError> {
        self.length = self.length.saturating_add(piece.len());
        let kept = match self.refused {
            None if self.length > self.most => Err(BodyError::TooLong),
            None => self.keep(piece).map_err(BodyError::NoRoom),
            Some(why) => Err(why),
        };
        kept.inspect_err(|why| {
            (self.first, self.all) = (Bytes::new(), Vec::new());
            self.refused = Some(*why);
        })
    }

    fn keep(&mut self, piece: Bytes) -> Result<(), NoShare> {
        if self.length == piece.len() {
            self.room.grow(self.length)?;
            (self.counted, self.first) = (self.length, piece);
            return Ok(());
        }
        if self.length > self.counted {
            // As a vector grows by itself, but counted first, and not beyond the longest body.
            let capacity = self.counted.saturating_mul(2).min(self.most).max(self.length);
            self.room.grow(capacity - self.counted)?;
            self.counted = capacity;
            self.all.reserve_exact(capacity - self.all.len());
        }
        self.all.extend_from_slice(&std::mem::take(&mut self.first));
        self.all.extend_from_slice(&piece);
        Ok(())
    }

    /// The whole body.
    ///
    /// # Errors
    /// It was not kept.
    pub(crate) fn whole(self) -> Result<Bytes, BodyError> {
        match self.refused {
            Some(why) => Err(why),
            None if self.all.is_empty() => Ok(self.first),
            None => Ok(self.all.into()),
        }
    }
}

/// A message that was read whole, with the room that it takes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Message {
    text: Bytes,
    room: Option<Arc<Room>>,
}

impl Message {
    /// The message `text`, whose values take `values` bytes; `room` is that of the text.
    ///
    /// # Errors
    /// There is no room for the values.
    pub(crate) fn new(text: Bytes, values: u64, mut room: Room) -> Result<Self, NoShare> {
        room.grow(usize::try_from(values).unwrap_or(usize::MAX))?;
        Ok(Self { text, room: Some(Arc::new(room)) })
    }

    /// Its text, to look at.
    pub(crate) fn text(&self) -> &Bytes {
        &self.text
    }

    /// One message of a batch. The room of the whole is kept until the last of them ends.
    pub(crate) fn part(&self, text: &[u8]) -> Self {
        Self { text: self.text.slice_ref(text), room: self.room.clone() }
    }

    /// The text, for the call of `request`, which keeps the room from now on: its extensions are in the context of the call.
    pub(crate) fn into_call(self, request: &mut Parts) -> Bytes {
        if let Some(room) = self.room {
            request.extensions.insert(room);
        }
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ada() -> Claimant {
        Claimant::new(Some("ada".into()), None, &[])
    }

    #[test]
    fn the_pieces_of_a_body_are_counted_as_they_arrive_with_the_room_that_they_are_kept_in() {
        let memory = RequestMemory::new(1);
        let mut room = memory.begin(ada());
        let mut pieces = Pieces::new(100_000, &mut room);
        for (length, held) in [(10_000, 0), (20_000, 30_000), (10_000, 60_000), (30_000, 100_000)] {
            pieces.add(vec![b'x'; length].into()).unwrap();
            assert_eq!(memory.taken(), held, "after {}", pieces.length());
        }
        assert_eq!(pieces.whole().unwrap().len(), 70_000);
        assert_eq!(memory.taken(), 100_000);
        drop(room);
        assert_eq!(memory.taken(), 0);
    }

    #[test]
    fn a_caller_with_other_requests_has_a_share_and_one_alone_has_all_of_it() {
        let memory = RequestMemory::new(1);
        let mut alone = memory.begin(ada());
        alone.grow(600_000).unwrap();
        alone.grow(usize::MAX).unwrap();
        assert_eq!(memory.taken(), 1 << 20, "what is longer than the budget takes all of it");
        assert_eq!(memory.begin(Claimant::default()).grow(20_000), Err(NoShare::Room));
        memory.begin(ada()).grow(10_000).unwrap();
        drop(alone);

        let mut first = memory.begin(ada());
        first.grow(100_000).unwrap();
        let mut second = memory.begin(ada());
        let grown = (0..100).take_while(|_| second.grow(20_000).is_ok()).count();
        assert!((3..6).contains(&grown), "{grown}");
        let mut pieces = Pieces::new(1 << 20, &mut second);
        let refused = BodyError::NoRoom(NoShare::Share);
        assert_eq!(pieces.add(vec![b'x'; 100_000].into()), Err(refused));
        assert_eq!(pieces.add(vec![b'x'; 1].into()), Err(refused));
        assert_eq!(pieces.whole(), Err(refused));
        assert!(memory.begin(Claimant::new(Some("bob".into()), None, &[])).grow(300_000).is_ok());
    }

    #[test]
    fn the_call_of_a_message_keeps_its_room() {
        let memory = RequestMemory::new(1);
        let text = Bytes::from_static(br#"[{"a":1},{"b":2}]"#);
        let message = Message::new(text.clone(), 50_000, memory.begin(ada())).unwrap();
        let part = message.part(&text[1..8]);
        drop(message);
        let mut parts = http::Request::new(()).into_parts().0;
        assert_eq!(part.into_call(&mut parts), r#"{"a":1}"#);
        let context = parts.extensions.clone();
        drop(parts);
        assert_eq!(memory.taken(), 50_000);
        drop(context);
        assert_eq!(memory.taken(), 0);
        assert!(Message::new(text, 2 << 20, memory.begin(ada())).is_ok());
    }
}
