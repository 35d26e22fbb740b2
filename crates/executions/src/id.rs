//! Ids of executions.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::ExecutionError;

const PREFIX: &str = "exe_";
/// Length of an id as text.
const LENGTH: usize = PREFIX.len() + 22;

/// The id of an execution: `exe_` and 16 random bytes in base64url.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExecutionId([u8; 16]);

impl ExecutionId {
    /// A new id.
    ///
    /// # Panics
    /// The system has no random numbers.
    pub(crate) fn random() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the system's random numbers");
        Self(bytes)
    }

    pub(crate) fn of_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl FromStr for ExecutionId {
    type Err = ExecutionError;

    /// Reads the text of an id.
    ///
    /// # Errors
    /// [`ExecutionError::NotFound`] for any other text.
    fn from_str(text: &str) -> Result<Self, ExecutionError> {
        let encoded = text.strip_prefix(PREFIX).filter(|_| text.len() == LENGTH);
        let bytes = encoded.and_then(|encoded| URL_SAFE_NO_PAD.decode(encoded).ok());
        bytes.and_then(|bytes| bytes.try_into().ok()).map(Self).ok_or(ExecutionError::NotFound)
    }
}

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for ExecutionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ExecutionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(|_| D::Error::custom("not the id of an execution"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_back_and_other_texts_are_refused() {
        let id = ExecutionId::random();
        let text = id.to_string();
        assert_eq!((text.len(), text.parse::<ExecutionId>().unwrap()), (LENGTH, id));
        let upper = text.to_uppercase();
        // The last character holds two bits that are not part of the id.
        let loose = format!("exe_{}", "_".repeat(22));
        let long = format!("{text}A");
        for other in
            ["", "exe_", "exe_é", &text[4..], &text[..25], &upper, &loose, &long, &"exe_".repeat(9_000)]
        {
            assert_eq!(other.parse::<ExecutionId>(), Err(ExecutionError::NotFound), "{other}");
        }
    }
}
