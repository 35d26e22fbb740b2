//! Images, audio and embedded resources: scripts get handles, replies get content blocks.

use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use data_encoding::HEXLOWER;
use gatewright_core::{
    rmcp::model::{ContentBlock, ResourceContents},
    value_bytes,
};
use serde_json::{Value, json};

use super::room::{Room, Taken, Weighed};
use crate::unwrap::Failure;

/// Digits of a block's number, at most.
const MOST_DIGITS: usize = 20;
/// Bytes of a handle that nobody can guess.
const SECRET_BYTES: usize = 16;

/// The blocks that one run was given. A script has handles to them, which mean nothing in any other run, and of which none tells another: apps see those
/// that are passed to them.
#[derive(Debug)]
pub(crate) struct Handles {
    run: hmac::Key,
    pub(super) room: Arc<Room>,
    pub(super) kept: Mutex<Vec<(Weighed, Taken)>>,
}

impl Handles {
    /// No blocks yet, which take of `room`. Handles follow from `run`, the secret of the run.
    pub(crate) fn new(run: &str, room: Arc<Room>) -> Self {
        Self { run: hmac::Key::new(HMAC_SHA256, run.as_bytes()), room, kept: Mutex::default() }
    }

    /// The handle of the block of this number.
    fn handle(&self, number: usize) -> String {
        let tag = hmac::sign(&self.run, &(number as u64).to_be_bytes());
        format!("{}:{number}", HEXLOWER.encode(&tag.as_ref()[..SECRET_BYTES]))
    }

    /// Keeps a block of an earlier part of the run under its number again. One for which there is no room is left out.
    pub(crate) fn restore(&self, number: usize, block: ContentBlock) {
        let block = Weighed::of(block);
        let Ok(taken) = self.room.take(block.bytes()) else { return };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Numbers were given out one after the other, and are restored in the order of answers.
        while kept.len() <= number {
            let Ok(nothing) = self.room.take(0) else { return };
            kept.push((Weighed::of(ContentBlock::text("")), nothing));
        }
        kept[number] = (block, taken);
    }

    /// Keeps `block` of an answer that has `taken` its room.
    ///
    /// # Errors
    /// There is no room for it.
    pub(crate) fn keep(&self, block: ContentBlock, taken: &mut Taken) -> Result<Value, Failure> {
        let block = Weighed::of(block);
        let mut about = describe(block.block());
        let own = taken.split(block.bytes())?;
        // The script gets a copy of it.
        taken.grow(value_bytes(&about))?;
        if let ContentBlock::Resource(embedded) = block.block()
            && let ResourceContents::TextResourceContents { text, .. } = &embedded.resource
        {
            // And of the text.
            taken.grow(text.len() as u64)?;
            about["text"] = text.as_str().into();
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        about["handle"] = self.handle(kept.len()).into();
        kept.push((block, own));
        Ok(about)
    }

    /// Moves the blocks whose handles `value` has into `reply`, each once, and puts its description in the place of the first handle, and its number
    /// in the place of others: a script may return a handle any number of times. No handle is valid any more.
    pub(crate) fn release(&self, value: &mut Value, reply: &mut Blocks) {
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        if !kept.is_empty() {
            let slots = kept.into_iter().map(|(block, _)| Slot::Kept(Box::new(block))).collect();
            // A block is there twice while the reply is written.
            Placing { handles: self, slots, left: self.room.most() / 2, reply }.place(value);
        }
    }

    pub(super) fn number(&self, handle: &Value) -> Option<usize> {
        let handle = handle.as_str().filter(|handle| handle.len() <= 2 * SECRET_BYTES + 1 + MOST_DIGITS)?;
        let number = handle.rsplit_once(':')?.1.parse().ok()?;
        (self.handle(number) == handle).then_some(number)
    }
}

/// The blocks of one answer, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Kept(Vec<usize>);

impl Kept {
    /// Keeps `block` as one of this answer.
    ///
    /// # Errors
    /// As for [`Handles::keep`].
    pub(crate) fn keep(
        &mut self,
        handles: &Handles,
        block: ContentBlock,
        taken: &mut Taken,
    ) -> Result<Value, Failure> {
        let about = handles.keep(block, taken)?;
        self.0.extend(handles.number(&about["handle"]));
        Ok(about)
    }

    /// Memory that they take.
    pub(crate) fn weight(&self, handles: &Handles) -> u64 {
        let kept = handles.kept.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.iter().filter_map(|&number| kept.get(number)).map(|(block, _)| block.bytes()).sum()
    }

    /// Copies of them, with their numbers.
    pub(crate) fn blocks(&self, handles: &Handles) -> Vec<(usize, ContentBlock)> {
        let kept = handles.kept.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.iter().filter_map(|&number| Some((number, kept.get(number)?.0.block().clone()))).collect()
    }
}

/// The place of a block that was kept.
enum Slot {
    Kept(Box<Weighed>),
    /// The place of the block in the reply.
    Placed(usize),
    /// There was no room for it.
    LeftOut,
}

/// The move of blocks into a reply.
struct Placing<'a> {
    handles: &'a Handles,
    slots: Vec<Slot>,
    /// Bytes left for blocks.
    left: u64,
    reply: &'a mut Blocks,
}

impl Placing<'_> {
    fn place(&mut self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.place(item)),
            Value::Object(members) => {
                let number = members.get("handle").and_then(|handle| self.handles.number(handle));
                if let Some(number) = number.filter(|number| *number < self.slots.len()) {
                    members.shift_remove("handle");
                    let text = self.handle_text(number);
                    if text.is_some() && members.get("text").and_then(Value::as_str) == text {
                        members.shift_remove("text");
                    }
                    let Value::Object(about) = self.about(number) else { return };
                    for (name, part) in about {
                        match &*name {
                            "block" | "omitted" => _ = members.insert(name, part),
                            // What the script put there stays.
                            _ => _ = members.entry(name).or_insert(part),
                        }
                    }
                }
                members.values_mut().for_each(|member| self.place(member));
            }
            _ => {}
        }
    }

    /// The text that a handle has beside its description.
    fn handle_text(&self, number: usize) -> Option<&str> {
        let block = match &self.slots[number] {
            Slot::Kept(block) => block.block(),
            Slot::Placed(place) => self.reply.0.get(place.checked_sub(1)?)?,
            Slot::LeftOut => return None,
        };
        let ContentBlock::Resource(embedded) = block else { return None };
        let ResourceContents::TextResourceContents { text, .. } = &embedded.resource else { return None };
        Some(text)
    }

    /// The description of a block, which is in the reply if there is room for it. One that was described before has its place alone.
    fn about(&mut self, number: usize) -> Value {
        let (about, slot) = match std::mem::replace(&mut self.slots[number], Slot::LeftOut) {
            Slot::Placed(place) => (json!({"block": place}), Slot::Placed(place)),
            Slot::LeftOut => (json!({"omitted": true}), Slot::LeftOut),
            Slot::Kept(block) => match self.left.checked_sub(block.bytes()) {
                Some(left) => {
                    self.left = left;
                    let about = self.reply.add(block.into_block());
                    (about, Slot::Placed(self.reply.0.len()))
                }
                None => (self.left_out(block.block()), Slot::LeftOut),
            },
        };
        self.slots[number] = slot;
        about
    }

    fn left_out(&self, block: &ContentBlock) -> Value {
        let mut about = describe(block);
        about["omitted"] = format!(
            "the blocks of this reply would exceed {} bytes, half of codecall.vm.hostMemoryMib: return fewer, or call the tool with \
             codecall:invoke",
            self.handles.room.most() / 2
        )
        .into();
        about
    }
}

/// Content blocks of a reply, behind its text.
#[derive(Debug, Default)]
pub(crate) struct Blocks(Vec<ContentBlock>);

impl Blocks {
    /// Adds a block. Returns its description, with its place among the reply's content.
    pub(crate) fn add(&mut self, block: ContentBlock) -> Value {
        let mut about = describe(&block);
        self.0.push(block);
        // The text of the reply is at 0.
        about["block"] = self.0.len().into();
        about
    }

    /// The blocks, in the order of their places.
    pub(crate) fn into_content(self) -> Vec<ContentBlock> {
        self.0
    }
}

/// Type, MIME type and size of a block.
fn describe(block: &ContentBlock) -> Value {
    match block {
        ContentBlock::Image(image) => {
            json!({"type": "image", "mimeType": image.mime_type, "size": decoded(&image.data)})
        }
        ContentBlock::Audio(audio) => {
            json!({"type": "audio", "mimeType": audio.mime_type, "size": decoded(&audio.data)})
        }
        ContentBlock::Resource(embedded) => {
            let (uri, mime_type, size) = match &embedded.resource {
                ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                    (uri, mime_type, text.len())
                }
                ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                    (uri, mime_type, decoded(blob))
                }
                _ => return json!({"type": "resource"}),
            };
            json!({"type": "resource", "uri": uri, "mimeType": mime_type, "size": size})
        }
        _ => json!({"type": "unknown"}),
    }
}

/// Bytes that a text in Base64 stands for.
fn decoded(base64: &str) -> usize {
    let padding = base64.bytes().rev().take(2).filter(|byte| *byte == b'=').count();
    (base64.len() / 4 * 3).saturating_sub(padding)
}

#[cfg(test)]
mod tests {
    use gatewright_core::Claimant;

    use super::*;

    fn handles(most_bytes: u64) -> Handles {
        Handles::new(&super::super::random_name(), Room::new(most_bytes, Claimant::default()))
    }

    fn keep(handles: &Handles, block: ContentBlock) -> Result<Value, Failure> {
        handles.keep(block, &mut handles.room.take(0).unwrap())
    }

    #[test]
    fn a_returned_handle_becomes_a_block_of_the_reply_once() {
        let handles = handles(10_000);
        let image = keep(&handles, ContentBlock::image("aGVsbG8=", "image/png")).unwrap();
        assert_eq!(
            (&image["type"], &image["mimeType"], &image["size"]),
            (&json!("image"), &json!("image/png"), &json!(5))
        );
        assert!(image.get("data").is_none());
        let _unused = keep(&handles, ContentBlock::audio("AAAA", "audio/wav")).unwrap();
        let mut result = json!({"shots": [image, image], "text": "x"});
        let mut reply = Blocks::default();
        handles.release(&mut result, &mut reply);
        assert_eq!(reply.into_content(), [ContentBlock::image("aGVsbG8=", "image/png")]);
        let placed = json!({"type": "image", "mimeType": "image/png", "size": 5, "block": 1});
        assert_eq!(result, json!({"shots": [placed, placed], "text": "x"}));
    }

    #[test]
    fn a_block_is_described_once_however_often_and_however_long_it_is() {
        let handles = handles(1_000_000);
        let image = keep(&handles, ContentBlock::image("AAAA", "image/".repeat(20_000))).unwrap();
        let embedded = ContentBlock::embedded_text("file:///".repeat(20_000), "hello");
        let resource = keep(&handles, embedded).unwrap();
        for kept in [image, resource] {
            assert!(kept.to_string().len() < 10_000, "{}", kept.to_string().len());
        }
        let many = |number: usize| vec![json!({"handle": handles.handle(number)}); 5_000];
        let mut result = json!([many(0), many(1)]);
        let before = result.to_string().len();
        handles.release(&mut result, &mut Blocks::default());
        assert_eq!((&result[0][0]["size"], &result[0][4_999]), (&json!(3), &json!({"block": 1})));
        let after = result.to_string().len();
        assert!(after < before + 10_000, "{before} became {after}");
    }

    #[test]
    fn blocks_that_are_left_out_are_explained_once() {
        let handles = handles(2_000);
        let image = keep(&handles, ContentBlock::image("A".repeat(1_100), "image/png")).unwrap();
        let mut result = json!(vec![json!({"handle": image["handle"]}); 3]);
        handles.release(&mut result, &mut Blocks::default());
        assert!(result[0]["omitted"].as_str().unwrap().contains("hostMemoryMib"), "{result}");
        assert_eq!((&result[1], &result[2]), (&json!({"omitted": true}), &json!({"omitted": true})));
    }

    #[test]
    fn a_handle_of_another_run_or_a_made_up_one_stays_what_it_is() {
        let (ours, theirs) = (handles(10_000), handles(10_000));
        keep(&ours, ContentBlock::image("AAAA", "image/png")).unwrap();
        let foreign = keep(&theirs, ContentBlock::image("BBBB", "image/png")).unwrap();
        let other = keep(&ours, ContentBlock::image("CCCC", "image/png")).unwrap();
        let other = other["handle"].as_str().unwrap().replace(":1", ":0");
        let plus = ours.handle(0).replace(":0", ":+0");
        let made_up = json!([foreign, {"handle": ":0"}, {"handle": ours.handle(7)}, {"handle": 0},
            {"handle": other}, {"handle": plus}]);
        let (mut result, mut reply) = (made_up.clone(), Blocks::default());
        ours.release(&mut result, &mut reply);
        assert_eq!(result, made_up);
        assert!(reply.into_content().is_empty());
    }

    #[test]
    fn a_run_keeps_only_so_many_bytes() {
        let handles = handles(10_000);
        let image = || ContentBlock::image("A".repeat(4_000), "image/png");
        keep(&handles, image()).unwrap();
        keep(&handles, image()).unwrap();
        let refused = keep(&handles, image()).unwrap_err();
        assert!(refused.message.contains("hostMemoryMib"), "{}", refused.message);
    }

    #[test]
    fn a_reply_has_half_of_the_room_and_says_which_blocks_are_not_in_it() {
        let handles = handles(10_000);
        let image = || ContentBlock::image("A".repeat(4_000), "image/png");
        let mut result = json!([keep(&handles, image()).unwrap(), keep(&handles, image()).unwrap()]);
        let mut reply = Blocks::default();
        handles.release(&mut result, &mut reply);
        assert_eq!(reply.into_content(), [image()]);
        assert_eq!((&result[0]["block"], &result[1]["size"]), (&json!(1), &json!(3_000)));
        assert!(result[1]["omitted"].as_str().unwrap().contains("hostMemoryMib"), "{result}");
        assert_eq!(handles.room.taken(), 0);
    }

    #[test]
    fn an_embedded_text_can_be_read_by_the_script() {
        let handles = handles(10_000);
        let about = keep(&handles, ContentBlock::embedded_text("file:///a", "hello")).unwrap();
        assert_eq!(
            (&about["type"], &about["uri"], &about["text"]),
            (&json!("resource"), &json!("file:///a"), &json!("hello"))
        );
    }
}
