//! The memory that answers to the calls of one run take in this process, of `codecall.vm.hostMemoryMib`.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use gatewright_core::{
    AnswerRoom, InvokeError, Reserved, codes,
    rmcp::model::{CallToolResponse, ContentBlock, ResourceContents},
    value_bytes,
};
use tokio::sync::{Mutex, MutexGuard};

use crate::unwrap::Failure;

/// Bytes of an answer from which on it is read alone: reading it may take many times its length.
const BIG: u64 = 64 * 1024;
/// Memory of a block beside its texts, in bytes.
const BLOCK_BYTES: u64 = 80;
/// Copies of a text that there are while it is read as JSON.
const COPIES: u64 = 2;

/// The room for answers of one run.
#[derive(Debug)]
pub(crate) struct Room {
    most: u64,
    taken: AtomicU64,
    turn: Mutex<()>,
}

/// Bytes that are taken until it is dropped.
#[derive(Debug)]
pub(crate) struct Taken {
    room: Arc<Room>,
    bytes: u64,
}

impl Room {
    pub(crate) fn new(most: u64) -> Arc<Self> {
        Arc::new(Self { most, taken: AtomicU64::new(0), turn: Mutex::new(()) })
    }

    /// Bytes that may be taken at most.
    pub(crate) fn most(&self) -> u64 {
        self.most
    }

    /// Bytes that are taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Takes `bytes`.
    ///
    /// # Errors
    /// There is no room for them.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64) -> Result<Taken, Failure> {
        let mut taken = Taken { room: self.clone(), bytes: 0 };
        taken.grow(bytes).map(|()| taken)
    }

    /// The room as servers of apps know it: answers take their part of it before they are parsed.
    pub(crate) fn for_answers(self: &Arc<Self>) -> AnswerRoom {
        let room = self.clone();
        AnswerRoom::new(move |bytes| {
            let taken = room.take(bytes).map_err(|failure| failure.message)?;
            Ok(Box::new(taken) as Reserved)
        })
    }

    /// Waits until no other big answer of the run is read, if this one of `bytes` is big.
    pub(crate) async fn turn(&self, bytes: u64) -> Option<MutexGuard<'_, ()>> {
        if bytes < BIG { None } else { Some(self.turn.lock().await) }
    }
}

impl Taken {
    /// Takes `more` bytes.
    ///
    /// # Errors
    /// There is no room for them.
    pub(crate) fn grow(&mut self, more: u64) -> Result<(), Failure> {
        let most = self.room.most;
        let add = |taken: u64| taken.checked_add(more).filter(|taken| *taken <= most);
        match self.room.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(_) => {
                self.bytes += more;
                Ok(())
            }
            Err(_) => Err(Failure::new(
                codes::TOOL_EXECUTION_ERROR,
                format!(
                    "the tool answered, and its answer would take this script beyond {most} bytes (codecall.vm.hostMemoryMib) \
                     together with its images, audio, resources and answers on their way; ask for less at once, or call the tool with \
                     codecall:invoke or in a script of its own"
                ),
            )),
        }
    }

    /// Moves `bytes` of it into another, and takes what is missing.
    ///
    /// # Errors
    /// There is no room for what is missing.
    pub(crate) fn split(&mut self, bytes: u64) -> Result<Self, Failure> {
        self.grow(bytes.saturating_sub(self.bytes))?;
        self.bytes -= bytes;
        Ok(Self { room: self.room.clone(), bytes })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Memory of a tool's answer, in bytes.
pub(crate) fn answer_weight(answer: &Result<CallToolResponse, InvokeError>) -> u64 {
    let Ok(CallToolResponse::Complete(result)) = answer else { return 0 };
    let blocks: u64 = result.content.iter().map(block_weight).sum();
    blocks + result.structured_content.as_ref().map_or(0, value_bytes)
}

/// Memory that reading an answer takes beside its own: its only text is read as JSON without building values.
pub(crate) fn reading_weight(answer: &Result<CallToolResponse, InvokeError>) -> u64 {
    let Ok(CallToolResponse::Complete(result)) = answer else { return 0 };
    match result.content.as_slice() {
        [ContentBlock::Text(text)] if text.text.trim_ascii_start().starts_with(['[', '{']) => {
            COPIES * text.text.len() as u64
        }
        _ => 0,
    }
}

/// Memory of a content block, in bytes.
pub(crate) fn block_weight(block: &ContentBlock) -> u64 {
    let bytes = match block {
        ContentBlock::Text(text) => text.text.len(),
        ContentBlock::Image(image) => image.data.len(),
        ContentBlock::Audio(audio) => audio.data.len(),
        ContentBlock::Resource(embedded) => contents_len(&embedded.resource),
        _ => 0,
    };
    bytes as u64 + BLOCK_BYTES
}

/// Bytes of the text or blob of a resource.
pub(crate) fn contents_len(contents: &ResourceContents) -> usize {
    match contents {
        ResourceContents::TextResourceContents { text, .. } => text.len(),
        ResourceContents::BlobResourceContents { blob, .. } => blob.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_free_again_when_it_is_dropped_and_parts_are_moved_not_copied() {
        let room = Room::new(1_000);
        let mut answer = room.take(900).unwrap();
        assert!(room.take(200).unwrap_err().message.contains("hostMemoryMib"));
        let image = answer.split(600).unwrap();
        assert_eq!(room.taken(), 900);
        assert!(answer.split(500).is_err());
        drop(answer);
        assert_eq!(room.taken(), 600);
        drop(image);
        assert_eq!((room.taken(), room.take(u64::MAX).is_err()), (0, true));
    }

    #[test]
    fn a_text_that_is_read_as_json_weighs_its_copies() {
        let answer = |text: String| {
            let result =
                gatewright_core::rmcp::model::CallToolResult::success(vec![ContentBlock::text(text)]);
            Ok(CallToolResponse::Complete(result))
        };
        let list = answer(format!("[{}0]", "0,".repeat(1_000)));
        assert_eq!((answer_weight(&list), reading_weight(&list)), (2_003 + BLOCK_BYTES, 2 * 2_003));
        assert_eq!(reading_weight(&answer("a, b, c".to_owned())), 0);
    }
}
