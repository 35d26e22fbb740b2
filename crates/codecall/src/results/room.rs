//! The memory that answers to the calls of one run take in this process, of `codecall.vm.hostMemoryMib`.

use std::sync::{
    Arc, LazyLock, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use gatewright_core::{
    AnswerRoom, Claimant, InvokeError, NoShare, Portion, Reserved, Share, Shares, codes,
    rmcp::model::{
        Annotations, CallToolResponse, ContentBlock, JsonObject, MetaObject, Resource, ResourceContents,
    },
    value_bytes,
};
use tokio::sync::{Mutex, MutexGuard};

use super::shorten::json_len;
use crate::unwrap::Failure;

/// The reason that a script gets in place of an answer.
const NO_MEMORY: &str = "the tool answered, and its answer was dropped: the gateway is short of memory, and other scripts of this caller, or of all, have what \
    there is for inputs and answers. What was asked may have been done. Ask for less at once, or try again later";

/// Bytes of an answer from which on it is read alone: reading it may take many times its length.
const BIG: u64 = 64 * 1024;
/// Memory of a block beside its texts, in bytes.
const BLOCK_BYTES: u64 = 80;
/// Copies of a text that there are while it is read as JSON.
const COPIES: u64 = 2;

/// Bytes of a script that are not counted among those of all scripts.
const UNCOUNTED: u64 = 64 << 10;
/// Beyond them, its memory is counted in steps of so many bytes.
const STEP: u64 = 256 << 10;
/// Times that inputs and answers of a script take what is counted, while they are passed on.
const PASSED_ON: u64 = 3;

/// Memory for what scripts hold beyond [`UNCOUNTED`]: a quarter of all, and a share of it for each caller.
static ALL: LazyLock<Arc<Shares>> = LazyLock::new(|| Shares::of_memory(usize::MAX, Portion::AsMuchAsFree));

/// The room for answers of one run.
#[derive(Debug)]
pub(crate) struct Room {
    most: u64,
    taken: AtomicU64,
    /// Memory of the runs beside their answers.
    pub(crate) beside: AtomicU64,
    claimant: Claimant,
    /// Its part of the memory for all scripts.
    share: std::sync::Mutex<Option<Share>>,
    turn: Mutex<()>,
}

/// Bytes that are taken until it is dropped.
#[derive(Debug)]
pub(crate) struct Taken {
    room: Arc<Room>,
    bytes: u64,
}

impl Room {
    /// Room of `most` bytes for a script of `claimant`.
    pub(crate) fn new(most: u64, claimant: Claimant) -> Arc<Self> {
        let (taken, beside) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { most, taken, beside, claimant, share: Default::default(), turn: Mutex::new(()) })
    }

    /// Takes part of the memory for all scripts, as much as this one holds now, or gives part of it back.
    ///
    /// # Errors
    /// The caller's other scripts have its share, or there is no memory left.
    pub(crate) fn count(&self) -> Result<(), NoShare> {
        let held = self.taken().saturating_add(self.beside.load(Ordering::Relaxed));
        let counted = held.saturating_sub(UNCOUNTED).next_multiple_of(STEP).saturating_mul(PASSED_ON);
        let counted = usize::try_from(counted).unwrap_or(usize::MAX).min(ALL.most());
        let mut share = self.share.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *share {
            _ if counted == 0 => *share = None,
            Some(share) if counted > share.amount() => share.grow_whole(counted - share.amount())?,
            Some(share) => share.shrink_to(counted),
            none => *none = Some(ALL.take(self.claimant.clone(), counted)?),
        }
        Ok(())
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
            room.count().map_err(|_| NO_MEMORY)?;
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

    /// Bytes that are taken by it.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
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

/// Memory of a content block with everything in it, in bytes.
pub(crate) fn block_weight(block: &ContentBlock) -> u64 {
    let (texts, meta, annotations) = match block {
        ContentBlock::Text(text) => (text.text.len() as u64, &text.meta, &text.annotations),
        ContentBlock::Image(image) => {
            ((image.data.len() + image.mime_type.len()) as u64, &image.meta, &image.annotations)
        }
        ContentBlock::Audio(audio) => {
            ((audio.data.len() + audio.mime_type.len()) as u64, &audio.meta, &audio.annotations)
        }
        ContentBlock::Resource(embedded) => {
            (contents_weight(&embedded.resource), &embedded.meta, &embedded.annotations)
        }
        ContentBlock::ResourceLink(link) => (link_weight(link), &link.meta, &link.annotations),
        _ => (0, &None, &None),
    };
    texts + meta_weight(meta) + annotations_weight(annotations) + BLOCK_BYTES
}

/// Memory of the contents of a resource, in bytes.
pub(crate) fn contents_weight(contents: &ResourceContents) -> u64 {
    let (uri, mime_type, data, meta) = match contents {
        ResourceContents::TextResourceContents { uri, mime_type, text, meta } => (uri, mime_type, text, meta),
        ResourceContents::BlobResourceContents { uri, mime_type, blob, meta } => (uri, mime_type, blob, meta),
        _ => return 0,
    };
    let texts = uri.len() + mime_type.as_ref().map_or(0, String::len) + data.len();
    texts as u64 + meta_weight(meta)
}

fn link_weight(link: &Resource) -> u64 {
    let optional = [&link.title, &link.description, &link.mime_type].into_iter().flatten();
    let texts = link.uri.len() + link.name.len() + optional.map(String::len).sum::<usize>();
    let icons = link.icons.as_ref().map_or(0, |icons| json_len(icons, usize::MAX));
    (texts + icons) as u64
}

fn meta_weight(meta: &Option<MetaObject>) -> u64 {
    let member =
        |(name, value): (&String, &serde_json::Value)| name.len() as u64 + BLOCK_BYTES + value_bytes(value);
    let members = |meta: &JsonObject| meta.iter().map(member).sum();
    meta.as_ref().map_or(0, |meta| members(&meta.0))
}

fn annotations_weight(annotations: &Option<Annotations>) -> u64 {
    let Some(annotations) = annotations else { return 0 };
    let audience = annotations.audience.as_ref().map_or(0, Vec::len);
    (audience + annotations.last_modified.as_ref().map_or(0, String::len)) as u64
}

/// Longest media type of a block that is kept, in bytes.
const LONGEST_TYPE: usize = 256;
/// Longest URI of a block that is kept, in bytes: that of a resource that can be read.
const LONGEST_URI: usize = 8 * 1024;

/// A content block that is kept, and the memory that it takes: without `_meta`, and with its media type and its URI cut, which go into every
/// description of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Weighed {
    block: ContentBlock,
    bytes: u64,
}

impl Weighed {
    pub(super) fn of(mut block: ContentBlock) -> Self {
        match &mut block {
            ContentBlock::Image(image) => {
                image.meta = None;
                cut(&mut image.mime_type, LONGEST_TYPE);
            }
            ContentBlock::Audio(audio) => {
                audio.meta = None;
                cut(&mut audio.mime_type, LONGEST_TYPE);
            }
            ContentBlock::Resource(embedded) => {
                embedded.meta = None;
                if let ResourceContents::TextResourceContents { uri, mime_type, meta, .. }
                | ResourceContents::BlobResourceContents { uri, mime_type, meta, .. } =
                    &mut embedded.resource
                {
                    *meta = None;
                    cut(uri, LONGEST_URI);
                    mime_type.iter_mut().for_each(|mime_type| cut(mime_type, LONGEST_TYPE));
                }
            }
            _ => {}
        }
        let bytes = block_weight(&block);
        Self { block, bytes }
    }

    /// The block.
    pub(super) fn block(&self) -> &ContentBlock {
        &self.block
    }

    /// Its memory, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The block alone.
    pub(super) fn into_block(self) -> ContentBlock {
        self.block
    }
}

fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_taken_is_free_again_when_it_is_dropped_and_parts_are_moved_not_copied() {
        let room = Room::new(1_000, Claimant::default());
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
    fn a_block_weighs_everything_in_it_and_is_kept_without_what_nobody_needs() {
        let long = "x".repeat(100_000);
        let meta = json!({"a": long});
        let annotations = json!({"audience": vec!["user"; 50_000], "lastModified": long});
        for (block, least, most) in [
            (
                json!({"type": "text", "text": "", "_meta": meta, "annotations": annotations}),
                250_000,
                260_000,
            ),
            (json!({"type": "image", "data": "", "mimeType": long, "_meta": meta}), 200_000, 1_000),
            (
                json!({"type": "audio", "data": "", "mimeType": long, "annotations": annotations}),
                250_000,
                160_000,
            ),
            (
                json!({"type": "resource_link", "uri": long, "name": long, "icons": [{"src": long}], "_meta": meta}),
                400_000,
                410_000,
            ),
            (
                json!({"type": "resource", "_meta": meta, "resource": {"uri": long, "mimeType": long, "blob": "", "_meta": meta}}),
                400_000,
                10_000,
            ),
        ] {
            let block: ContentBlock = serde_json::from_value(block).unwrap();
            let (whole, kept) = (block_weight(&block), Weighed::of(block));
            assert!(whole >= least && kept.bytes() <= most, "{whole} {}", kept.bytes());
            assert_eq!(kept.bytes(), block_weight(kept.block()));
        }
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

    #[test]
    fn scripts_of_one_caller_that_hold_much_leave_others_a_part_of_the_memory() {
        let of = |name: &str| Room::new(u64::MAX, Claimant::new(Some(name.into()), None, &[]));
        let holds = |room: &Room, bytes: u64| {
            room.beside.store(bytes, Ordering::Relaxed);
            room.count()
        };
        let most = ALL.most() as u64 / PASSED_ON;
        let (first, second, other) = (of("ada"), of("ada"), of("bob"));
        assert_eq!((holds(&first, most / 2), holds(&second, UNCOUNTED)), (Ok(()), Ok(())));
        assert_eq!(holds(&second, most / 4), Err(NoShare::Share), "her other script has her share");
        assert_eq!(holds(&other, most / 8), Ok(()));
        assert_eq!((holds(&first, 0), holds(&second, most / 4)), (Ok(()), Ok(())));
        holds(&second, 0).unwrap();
        let _answer = first.for_answers().reserve(most / 2).unwrap();
        assert_eq!(second.for_answers().reserve(most / 4).err().as_deref(), Some(NO_MEMORY));
        drop((first, second, other));
    }
}
