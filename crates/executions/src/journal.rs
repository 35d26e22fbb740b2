//! Journals in memory: chunks one after the other, each behind its length.

use crate::ExecutionError;

/// Bytes that a chunk takes besides its contents, about.
const CHUNK_BYTES: u64 = 64;

/// Bytes that an execution takes besides its journal, about.
pub(crate) const HEAD_BYTES: u64 = 1_024;

/// Chunks in their order.
#[derive(Default)]
pub(crate) struct Journal {
    frames: Vec<u8>,
    chunks: u64,
}

impl Journal {
    /// The journal that is written as `frames`; none for anything else.
    pub(crate) fn read(frames: Vec<u8>) -> Option<Self> {
        let chunks = chunks(&frames)?.len() as u64;
        Some(Self { frames, chunks })
    }

    /// Bytes that `chunk` would take, if the journal then takes at most `most`.
    pub(crate) fn room_for(&self, chunk: &[u8], most: u64) -> Result<u64, ExecutionError> {
        let bytes = chunk.len() as u64 + CHUNK_BYTES;
        if self.bytes() + bytes > most { Err(ExecutionError::TooLarge) } else { Ok(bytes) }
    }

    /// Adds `chunk`, if the journal then takes at most `most` bytes.
    pub(crate) fn push(&mut self, chunk: &[u8], most: u64) -> Result<(), ExecutionError> {
        self.room_for(chunk, most)?;
        let length = u32::try_from(chunk.len()).map_err(|_| ExecutionError::TooLarge)?;
        self.frames.extend_from_slice(&length.to_le_bytes());
        self.frames.extend_from_slice(chunk);
        self.chunks += 1;
        Ok(())
    }

    /// Gives back memory that it does not use: nothing is added any more.
    pub(crate) fn shrink(&mut self) {
        self.frames.shrink_to_fit();
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.frames.len() as u64 + self.chunks * (CHUNK_BYTES - 4)
    }

    pub(crate) fn frames(&self) -> &[u8] {
        &self.frames
    }

    pub(crate) fn chunks(&self) -> Vec<Vec<u8>> {
        chunks(&self.frames).unwrap_or_default()
    }
}

fn chunks(mut frames: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut chunks = Vec::new();
    while let Some((length, rest)) = frames.split_first_chunk() {
        let (chunk, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        chunks.push(chunk.to_vec());
        frames = rest;
    }
    frames.is_empty().then_some(chunks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_read_back_and_broken_frames_are_not() {
        let mut journal = Journal::default();
        for chunk in [&b"one"[..], b"", b"three"] {
            journal.push(chunk, 1_000).unwrap();
        }
        let chunks = [b"one".to_vec(), Vec::new(), b"three".to_vec()];
        assert_eq!(journal.chunks(), chunks);
        let frames = journal.frames().to_vec();
        for length in 0..frames.len() {
            let read = Journal::read(frames[..length].to_vec()).map(|journal| journal.chunks());
            assert_eq!(read.is_some(), [0, 7, 11].contains(&length), "{length}");
        }
        let read = Journal::read(frames).unwrap();
        assert_eq!((read.chunks(), read.bytes()), (chunks.to_vec(), journal.bytes()));
    }

    #[test]
    fn a_journal_has_a_largest_size_even_with_empty_chunks() {
        let mut journal = Journal::default();
        let added = (0..).take_while(|_| journal.push(b"", 6_400).is_ok()).count();
        assert_eq!((added, journal.bytes()), (100, 6_400));
        assert_eq!(journal.push(b"x", 6_400), Err(ExecutionError::TooLarge));
    }
}
