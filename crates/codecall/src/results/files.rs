//! Blocks in the inputs of calls: where a tool takes text, the handle that a script has to a block becomes its bytes.

use std::sync::{Arc, PoisonError};

use gatewright_core::{
    codes,
    rmcp::model::{ContentBlock, JsonObject, ResourceContents},
};
use serde_json::Value;

use super::{
    blocks::Handles,
    room::{Room, Taken},
};
use crate::unwrap::Failure;

/// Levels of an input in which handles are looked for.
const MOST_LEVELS: usize = 16;

impl Handles {
    /// Puts the bytes of blocks in the places of their handles in `input`, where `schema` asks for text: as a `data:` URI if the description of the parameter
    /// speaks of one, else in base64. They take of `room` while the result lives.
    ///
    /// # Errors
    /// There is no room for them.
    pub(crate) fn fill(
        &self,
        input: &mut JsonObject,
        schema: &JsonObject,
        room: &Arc<Room>,
    ) -> Result<Taken, Failure> {
        let mut taken = room.take(0)?;
        self.fill_members(input, schema, &mut taken, MOST_LEVELS)?;
        Ok(taken)
    }

    fn fill_members(
        &self,
        members: &mut JsonObject,
        schema: &JsonObject,
        taken: &mut Taken,
        levels: usize,
    ) -> Result<(), Failure> {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Ok(()) };
        for (name, value) in members {
            if let Some(schema) = properties.get(name).and_then(Value::as_object) {
                self.fill_value(value, schema, taken, levels)?;
            }
        }
        Ok(())
    }

    fn fill_value(
        &self,
        value: &mut Value,
        schema: &JsonObject,
        taken: &mut Taken,
        levels: usize,
    ) -> Result<(), Failure> {
        let Some(levels) = levels.checked_sub(1) else { return Ok(()) };
        match value {
            // The blocks of an answer, of which there is one.
            Value::Array(values) if values.len() == 1 && values[0].is_object() && takes_text(schema) => {
                self.fill_value(&mut values[0], schema, taken, levels)?;
                if values[0].is_string() {
                    *value = values.swap_remove(0);
                }
                Ok(())
            }
            Value::Array(values) => {
                let Some(items) = schema.get("items").and_then(Value::as_object) else { return Ok(()) };
                values.iter_mut().try_for_each(|value| self.fill_value(value, items, taken, levels))
            }
            Value::Object(members) => {
                let number = members.get("handle").and_then(|handle| self.number(handle));
                match number.filter(|_| takes_text(schema)) {
                    Some(number) => {
                        if let Some(text) = self.text_of(number, schema, taken)? {
                            *value = text.into();
                        }
                        Ok(())
                    }
                    None => self.fill_members(members, schema, taken, levels),
                }
            }
            _ => Ok(()),
        }
    }

    fn too_long(&self) -> Failure {
        Failure::new(
            codes::VALIDATION_ERROR,
            format!(
                "the tool was not called: with the bytes of images, audio and resources in place of their handles, its input would take this script beyond                  {} bytes (codecall.vm.hostMemoryMib); pass fewer at once",
                self.room.most()
            ),
        )
    }

    /// The block of this number as the parameter of `schema` takes it; none if there is no such block.
    fn text_of(
        &self,
        number: usize,
        schema: &JsonObject,
        taken: &mut Taken,
    ) -> Result<Option<String>, Failure> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((block, _)) = kept.get(number) else { return Ok(None) };
        // Base64 of a text is a third longer, and the type stands in front.
        taken.grow(block.bytes().saturating_mul(2)).map_err(|_| self.too_long())?;
        let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let (data, media_type) = match block.block() {
            ContentBlock::Image(image) => (image.data.clone(), Some(image.mime_type.as_str())),
            ContentBlock::Audio(audio) => (audio.data.clone(), Some(audio.mime_type.as_str())),
            ContentBlock::Resource(embedded) => match &embedded.resource {
                ResourceContents::BlobResourceContents { blob, mime_type, .. } => {
                    (blob.clone(), mime_type.as_deref())
                }
                ResourceContents::TextResourceContents { text, mime_type, .. } => {
                    if !speaks_of(description, "base64") && !schema.contains_key("contentEncoding") {
                        return Ok(Some(text.clone()));
                    }
                    let data = data_encoding::BASE64.encode(text.as_bytes());
                    (data, Some(mime_type.as_deref().unwrap_or("text/plain")))
                }
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        let is_plain = |kind: &&str| !kind.contains([',', ';', ' ']) && kind.is_ascii();
        Ok(Some(match media_type.filter(is_plain).filter(|_| speaks_of(description, "data:")) {
            Some(kind) => format!("data:{kind};base64,{data}"),
            None => data,
        }))
    }
}

/// Bytes of a description that are looked at.
const MOST_DESCRIPTION_BYTES: usize = 4_096;

fn speaks_of(description: &str, word: &str) -> bool {
    description[..description.floor_char_boundary(MOST_DESCRIPTION_BYTES)].contains(word)
}

/// Tests for a schema that allows a text.
fn takes_text(schema: &JsonObject) -> bool {
    let is_string = |kind: &Value| kind == "string";
    let of_type = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(is_string),
        Some(kind) => is_string(kind),
        None => schema.contains_key("contentEncoding"),
    };
    let one_of = ["anyOf", "oneOf"].iter().filter_map(|key| schema.get(*key)?.as_array()).flatten();
    of_type || one_of.take(10).any(|one| one.get("type").is_some_and(is_string))
}

#[cfg(test)]
mod tests {
    use gatewright_core::Claimant;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_handle_becomes_the_bytes_where_a_parameter_takes_text() {
        let room = Room::new(1 << 20, Claimant::default());
        let handles = Handles::new("run", room.clone());
        let keep = |block| {
            let mut taken = room.take(1_000).unwrap();
            handles.keep(block, &mut taken).unwrap()
        };
        let image = keep(ContentBlock::image("aW1n", "image/png"));
        let text = keep(ContentBlock::embedded_text("file:///a.md", "héllo"));
        let schema = json!({"properties": {
            "plain": {"type": "string"}, "uri": {"type": ["string", "null"], "description": "A file: base64, or a data: URI"},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "number": {"type": "integer"},
            "files": {"type": "array", "items": {"type": "string", "description": "A file: base64, or a data: URI"}},
            "inner": {"type": "object", "properties": {"file": {"type": "string", "contentEncoding": "base64"}}}}});
        let mut input = json!({"plain": image, "uri": image, "maybe": image, "number": image, "other": image, "files": [image, "x"],
            "inner": {"file": text}});
        let before = room.taken();
        let taken = handles.fill(input.as_object_mut().unwrap(), schema.as_object().unwrap(), &room).unwrap();
        assert!(room.taken() > before);
        drop(taken);
        assert_eq!(room.taken(), before);
        let uri = "data:image/png;base64,aW1n";
        assert_eq!(
            input,
            json!({"plain": "aW1n", "uri": uri, "maybe": "aW1n", "number": image, "other": image, "files": [uri, "x"],
                "inner": {"file": "aMOpbGxv"}})
        );
        let mut input = json!({"plain": [text], "uri": {"handle": "run:9"}, "maybe": ["x"], "number": [1]});
        handles.fill(input.as_object_mut().unwrap(), schema.as_object().unwrap(), &room).unwrap();
        assert_eq!(
            input,
            json!({"plain": "héllo", "uri": {"handle": "run:9"}, "maybe": ["x"], "number": [1]}),
            "what is no handle of this run stays"
        );
    }

    #[test]
    fn files_for_which_there_is_no_room_are_refused() {
        let room = Room::new(2_500, Claimant::default());
        let handles = Handles::new("run", room.clone());
        let mut taken = room.take(1_500).unwrap();
        let image = handles.keep(ContentBlock::image("a".repeat(1_000), "image/png"), &mut taken).unwrap();
        let schema = json!({"properties": {"file": {"type": "string"}}});
        let mut input = json!({"file": image});
        let refused = handles.fill(input.as_object_mut().unwrap(), schema.as_object().unwrap(), &room);
        assert!(refused.unwrap_err().message.starts_with("the tool was not called"));
    }
}
