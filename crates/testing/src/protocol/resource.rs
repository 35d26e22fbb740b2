//! Results of `resources/read`.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::record::{RecordError, serialize_as_raw};
use crate::base::text::shorten;

/// The result of `resources/read`. The methods return its first content; `raw` has all of them.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceContent {
    /// The URI.
    pub uri: String,
    /// The media type.
    pub mime_type: Option<String>,
    /// The wire form.
    pub raw: Value,
}

serialize_as_raw!(ResourceContent);

/// The wire form, as a mock of a resource returns it.
impl From<ResourceContent> for Value {
    fn from(content: ResourceContent) -> Self {
        content.raw
    }
}

impl ResourceContent {
    pub(crate) fn read(requested: &str, raw: Value) -> Result<Self, String> {
        let first = raw["contents"].as_array().and_then(|all| all.first()).ok_or("it has no `contents`")?;
        Ok(Self {
            uri: first["uri"].as_str().unwrap_or(requested).to_owned(),
            mime_type: first["mimeType"].as_str().map(str::to_owned),
            raw,
        })
    }

    /// All contents.
    pub fn contents(&self) -> &[Value] {
        self.raw["contents"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The text; empty for binary content.
    pub fn text(&self) -> String {
        self.contents().first().and_then(|first| first["text"].as_str()).unwrap_or_default().to_owned()
    }

    /// The text, parsed as JSON.
    ///
    /// # Errors
    /// The text is not a valid `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, RecordError> {
        let text = self.text();
        serde_json::from_str(&text).map_err(|error| {
            RecordError(format!("the text does not have this type: {error}: {}", shorten(&text, 400)))
        })
    }

    /// The decoded bytes of binary content.
    ///
    /// # Errors
    /// The content has no `blob`, or the blob is not valid Base64.
    pub fn blob(&self) -> Result<Vec<u8>, RecordError> {
        let blob = self.contents().first().and_then(|first| first["blob"].as_str());
        let blob = blob.ok_or_else(|| RecordError(format!("`{}` has no `blob`", self.uri)))?;
        STANDARD.decode(blob).map_err(|error| RecordError(format!("the blob is not valid Base64: {error}")))
    }
}
