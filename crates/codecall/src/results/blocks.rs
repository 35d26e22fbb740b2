//! Images, audio and embedded resources: scripts get handles, replies get content blocks.

use std::sync::{Mutex, MutexGuard, PoisonError};

use gatewright_core::{
    codes,
    rmcp::model::{ContentBlock, ResourceContents},
};
use serde_json::{Value, json};

use crate::unwrap::Failure;

/// The blocks that one run was given. A script has handles to them, which mean nothing in any other run.
#[derive(Debug)]
pub(crate) struct Handles {
    run: String,
    most_bytes: u64,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    blocks: Vec<ContentBlock>,
    bytes: u64,
}

impl Handles {
    /// No blocks yet, and at most `most_bytes` in all.
    pub(crate) fn new(most_bytes: u64) -> Self {
        Self { run: super::kept::random_name(), most_bytes, kept: Mutex::default() }
    }

    /// Keeps `block`.
    ///
    /// # Errors
    /// There is no room for it.
    pub(crate) fn keep(&self, block: ContentBlock) -> Result<Value, Failure> {
        let mut kept = self.lock();
        let bytes = kept.bytes.saturating_add(weight(&block));
        if bytes > self.most_bytes {
            let message = format!(
                "the images, audio and resources of this script would exceed {} bytes (codecall.vm.hostMemoryMib); call the tool \
                 with codecall:invoke, or in a script of its own",
                self.most_bytes
            );
            return Err(Failure::new(codes::TOOL_EXECUTION_ERROR, message));
        }
        let mut about = describe(&block);
        about["handle"] = format!("{}:{}", self.run, kept.blocks.len()).into();
        if let ContentBlock::Resource(embedded) = &block
            && let ResourceContents::TextResourceContents { text, .. } = &embedded.resource
        {
            about["text"] = text.as_str().into();
        }
        kept.bytes = bytes;
        kept.blocks.push(block);
        Ok(about)
    }

    /// Puts the blocks whose handles `value` has into `reply`, each once, and their descriptions in the place of the handles.
    pub(crate) fn release(&self, value: &mut Value, reply: &mut Blocks) {
        let kept = self.lock();
        let mut placed = vec![None; kept.blocks.len()];
        if !kept.blocks.is_empty() {
            self.place(value, &kept.blocks, &mut placed, reply);
        }
    }

    fn place(
        &self,
        value: &mut Value,
        kept: &[ContentBlock],
        placed: &mut [Option<Value>],
        reply: &mut Blocks,
    ) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.place(item, kept, placed, reply)),
            Value::Object(members) => match members.get("handle").and_then(|handle| self.number(handle)) {
                Some(number) if number < kept.len() => {
                    let about = placed[number].get_or_insert_with(|| reply.add(kept[number].clone()));
                    *value = about.clone();
                }
                _ => members.values_mut().for_each(|member| self.place(member, kept, placed, reply)),
            },
            _ => {}
        }
    }

    fn number(&self, handle: &Value) -> Option<usize> {
        handle.as_str()?.strip_prefix(&*self.run)?.strip_prefix(':')?.parse().ok()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Bytes of memory that a block takes, about.
fn weight(block: &ContentBlock) -> u64 {
    let bytes = match block {
        ContentBlock::Image(image) => image.data.len(),
        ContentBlock::Audio(audio) => audio.data.len(),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { text, .. } => text.len(),
            ResourceContents::BlobResourceContents { blob, .. } => blob.len(),
            _ => 0,
        },
        _ => 0,
    };
    bytes as u64 + 256
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_returned_handle_becomes_a_block_of_the_reply_once() {
        let handles = Handles::new(10_000);
        let image = handles.keep(ContentBlock::image("aGVsbG8=", "image/png")).unwrap();
        assert_eq!(
            (&image["type"], &image["mimeType"], &image["size"]),
            (&json!("image"), &json!("image/png"), &json!(5))
        );
        assert!(image.get("data").is_none());
        let _unused = handles.keep(ContentBlock::audio("AAAA", "audio/wav")).unwrap();
        let mut result = json!({"shots": [image, image], "text": "x"});
        let mut reply = Blocks::default();
        handles.release(&mut result, &mut reply);
        assert_eq!(reply.into_content(), [ContentBlock::image("aGVsbG8=", "image/png")]);
        let placed = json!({"type": "image", "mimeType": "image/png", "size": 5, "block": 1});
        assert_eq!(result, json!({"shots": [placed, placed], "text": "x"}));
    }

    #[test]
    fn a_handle_of_another_run_or_a_made_up_one_stays_what_it_is() {
        let (ours, theirs) = (Handles::new(10_000), Handles::new(10_000));
        ours.keep(ContentBlock::image("AAAA", "image/png")).unwrap();
        let foreign = theirs.keep(ContentBlock::image("BBBB", "image/png")).unwrap();
        let made_up =
            json!([foreign, {"handle": ":0"}, {"handle": format!("{}:7", ours.run)}, {"handle": 0}]);
        let (mut result, mut reply) = (made_up.clone(), Blocks::default());
        ours.release(&mut result, &mut reply);
        assert_eq!(result, made_up);
        assert!(reply.into_content().is_empty());
    }

    #[test]
    fn a_run_keeps_only_so_many_bytes() {
        let handles = Handles::new(1_000);
        let image = || ContentBlock::image("A".repeat(400), "image/png");
        handles.keep(image()).unwrap();
        let refused = handles.keep(image()).unwrap_err();
        assert!(refused.message.contains("hostMemoryMib"), "{}", refused.message);
    }

    #[test]
    fn an_embedded_text_can_be_read_by_the_script() {
        let handles = Handles::new(10_000);
        let about = handles.keep(ContentBlock::embedded_text("file:///a", "hello")).unwrap();
        assert_eq!(
            (&about["type"], &about["uri"], &about["text"]),
            (&json!("resource"), &json!("file:///a"), &json!("hello"))
        );
    }
}
