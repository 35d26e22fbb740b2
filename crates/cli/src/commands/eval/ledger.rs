//! Counts of what enters a model's context.

use rmcp::model::{CallToolResult, ContentBlock, Tool};
use serde::Serialize;
use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;

/// Counts tokens with the encoding `o200k_base`.
pub struct Tokenizer(CoreBPE);

impl Tokenizer {
    /// # Errors
    /// The vocabulary that is built in is damaged.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self(tiktoken_rs::o200k_base()?))
    }

    fn count(&self, text: &str) -> usize {
        self.0.encode_ordinary(text).len()
    }
}

/// Sums of one way to solve a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ledger {
    /// Bytes of UTF-8.
    pub bytes: usize,
    pub tokens: usize,
    /// Requests of the model that it has to wait for.
    pub round_trips: usize,
}

impl Ledger {
    /// Adds the list of tools as a model reads it: name, description, input schema.
    pub fn list(&mut self, tools: &[&Tool], tokenizer: &Tokenizer) {
        for tool in tools {
            let listed = json!({
                "name": tool.name,
                "description": tool.description,
                "inputSchema": tool.input_schema,
            });
            self.text(&listed.to_string(), tokenizer);
        }
    }

    /// Adds a call as the model writes it.
    pub fn request(&mut self, tool: &str, input: &Value, tokenizer: &Tokenizer) {
        self.text(&json!({"name": tool, "arguments": input}).to_string(), tokenizer);
    }

    /// Adds an answer as the model reads it: its content; structured content only where there is no other. The data of images and
    /// audio is not counted, because no model reads it as text.
    pub fn answer(&mut self, answer: &CallToolResult, tokenizer: &Tokenizer) {
        for block in &answer.content {
            match block {
                ContentBlock::Text(text) => self.text(&text.text, tokenizer),
                other => self.text(&without_data(other), tokenizer),
            }
        }
        if let (true, Some(body)) = (answer.content.is_empty(), &answer.structured_content) {
            self.text(&body.to_string(), tokenizer);
        }
    }

    pub fn text(&mut self, text: &str, tokenizer: &Tokenizer) {
        self.bytes += text.len();
        self.tokens += tokenizer.count(text);
    }

    pub fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.tokens += other.tokens;
        self.round_trips += other.round_trips;
    }
}

fn without_data(block: &ContentBlock) -> String {
    let mut value = json!(block);
    for holder in ["", "/resource"] {
        if let Some(object) = value.pointer_mut(holder).and_then(Value::as_object_mut) {
            object.retain(|key, _| key != "data" && key != "blob");
        }
    }
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_counts_once_and_the_data_of_an_image_does_not_count() {
        let tokenizer = Tokenizer::new().unwrap();
        let answer: CallToolResult = serde_json::from_value(json!({
            "content": [
                {"type": "text", "text": "hello world"},
                {"type": "image", "mimeType": "image/png", "data": "A".repeat(10_000)},
            ],
            "structuredContent": {"text": "hello world"},
        }))
        .unwrap();
        let mut ledger = Ledger::default();
        ledger.answer(&answer, &tokenizer);
        let image = json!({"type": "image", "mimeType": "image/png"}).to_string().len();
        assert_eq!(ledger.bytes, "hello world".len() + image);
        let mut words = Ledger::default();
        words.text("hello world", &tokenizer);
        assert_eq!(words.tokens, 2);
    }
}
