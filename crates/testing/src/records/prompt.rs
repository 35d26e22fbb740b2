//! What a prompt gave.

use serde_json::Value;

use super::stable::serialize_as_raw;

/// The outcome of `prompts/get`.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptResult {
    /// The messages.
    pub messages: Vec<PromptMessage>,
    /// What the prompt is for.
    pub description: Option<String>,
    /// The result as it came.
    pub raw: Value,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptMessage {
    /// `user` or `assistant`.
    pub role: String,
    /// A text, image or embedded-resource block.
    pub content: Value,
    /// The message as it came.
    pub raw: Value,
}

serialize_as_raw!(PromptResult, PromptMessage);

impl PromptResult {
    pub(crate) fn read(raw: Value) -> Result<Self, String> {
        let messages = raw["messages"].as_array().ok_or("it has no `messages`")?;
        let messages = messages.iter().cloned().map(PromptMessage::read).collect::<Result<_, _>>()?;
        Ok(Self { messages, description: raw["description"].as_str().map(str::to_owned), raw })
    }
}

impl PromptMessage {
    fn read(raw: Value) -> Result<Self, String> {
        let role = raw["role"].as_str().ok_or_else(|| format!("a message has no `role`: {raw}"))?.to_owned();
        Ok(Self { role, content: raw["content"].clone(), raw })
    }

    /// The text of the content: the text block's, or the embedded resource's.
    pub fn text(&self) -> Option<&str> {
        self.content["text"].as_str().or_else(|| self.content["resource"]["text"].as_str())
    }
}
