//! Results of `prompts/get`.

use serde_json::Value;

use super::record::serialize_as_raw;

/// The result of `prompts/get`.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptResult {
    /// The messages.
    pub messages: Vec<PromptMessage>,
    /// The description of the prompt.
    pub description: Option<String>,
    /// The wire form.
    pub raw: Value,
}

/// A message of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptMessage {
    /// `user` or `assistant`.
    pub role: String,
    /// The content block: text, image or embedded resource.
    pub content: Value,
    /// The wire form.
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

    /// The text of the content block or of the embedded resource.
    pub fn text(&self) -> Option<&str> {
        self.content["text"].as_str().or_else(|| self.content["resource"]["text"].as_str())
    }
}
