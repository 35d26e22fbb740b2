//! The configured signing key.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::keys::{Jwk, JwkSet, KeyError};

/// A signing key as it is written: a JWK, a set of them, or either as JSON text.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SignKey(Value);

impl std::fmt::Debug for SignKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SignKey(..)")
    }
}

impl SignKey {
    /// A key from JSON text.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(Value::String(text.into()))
    }

    /// Returns the keys.
    ///
    /// # Errors
    /// It is neither a JWK nor a set.
    pub fn keys(&self) -> Result<Vec<Jwk>, KeyError> {
        match &self.0 {
            Value::String(text) => JwkSet::parse(text),
            value => JwkSet::parse(&value.to_string()),
        }
        .map(|set| set.keys)
    }
}
