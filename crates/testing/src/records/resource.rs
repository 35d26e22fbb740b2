//! What a resource holds.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Missing, stable::serialize_as_raw};

/// The outcome of `resources/read`. The methods speak of its first content; `raw` holds all.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceContent {
    /// Its address.
    pub uri: String,
    /// Its media type.
    pub mime_type: Option<String>,
    /// The result as it came.
    pub raw: Value,
}

serialize_as_raw!(ResourceContent);

/// The result as it came: what a mock of a resource answers.
impl From<ResourceContent> for Value {
    fn from(content: ResourceContent) -> Self {
        content.raw
    }
}

impl ResourceContent {
    pub(crate) fn read(asked: &str, raw: Value) -> Result<Self, String> {
        let first = raw["contents"].as_array().and_then(|all| all.first()).ok_or("it has no `contents`")?;
        Ok(Self {
            uri: first["uri"].as_str().unwrap_or(asked).to_owned(),
            mime_type: first["mimeType"].as_str().map(str::to_owned),
            raw,
        })
    }

    /// All contents.
    pub fn contents(&self) -> &[Value] {
        self.raw["contents"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The text; empty for a binary content.
    pub fn text(&self) -> String {
        self.contents().first().and_then(|first| first["text"].as_str()).unwrap_or_default().to_owned()
    }

    /// The text read as JSON.
    ///
    /// # Errors
    /// It is not a `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Missing> {
        let text = self.text();
        serde_json::from_str(&text).map_err(|error| {
            Missing(format!("the text is no such value: {error}: {}", crate::shorten(&text, 400)))
        })
    }

    /// The bytes of a binary content.
    ///
    /// # Errors
    /// It has no `blob`, or one that is not Base64.
    pub fn blob(&self) -> Result<Vec<u8>, Missing> {
        let blob = self.contents().first().and_then(|first| first["blob"].as_str());
        let blob = blob.ok_or_else(|| Missing(format!("`{}` has no `blob`", self.uri)))?;
        STANDARD.decode(blob).map_err(|error| Missing(format!("the blob is no Base64: {error}")))
    }
}
