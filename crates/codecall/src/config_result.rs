//! `codecall.shapes` and `codecall.result`: what is learned from results, and how much of one a reply has.

use std::fmt;

use gatewright_core::InvalidField;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Learning of shapes from the answers of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", from = "OnOff")]
pub enum ShapeLearning {
    /// Field names and types of results are learned for tools without an output schema, never values. The default.
    #[default]
    On,
    /// Nothing is learned.
    Off,
}

/// `on` and `off`, which YAML may read as booleans.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum OnOff {
    Word(OnOffWord),
    Flag(bool),
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnOffWord {
    On,
    Off,
}

impl From<OnOff> for ShapeLearning {
    fn from(value: OnOff) -> Self {
        match value {
            OnOff::Word(OnOffWord::On) | OnOff::Flag(true) => Self::On,
            OnOff::Word(OnOffWord::Off) | OnOff::Flag(false) => Self::Off,
        }
    }
}

/// Ranking of `codecall:search` by meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", from = "OnOff")]
pub enum Meaning {
    /// Tools are found by the meaning of their words too. The default.
    #[default]
    On,
    /// Tools are found by their words alone.
    Off,
}

impl From<OnOff> for Meaning {
    fn from(value: OnOff) -> Self {
        match value {
            OnOff::Word(OnOffWord::On) | OnOff::Flag(true) => Self::On,
            OnOff::Word(OnOffWord::Off) | OnOff::Flag(false) => Self::Off,
        }
    }
}

/// Ranking of `codecall:search` by the calls that followed searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", from = "OnOff")]
pub enum UsageRanking {
    /// Tools that callers called after searches for the same words rank higher.
    On,
    /// Nothing is counted. The default.
    #[default]
    Off,
}

impl From<OnOff> for UsageRanking {
    fn from(value: OnOff) -> Self {
        match value {
            OnOff::Word(OnOffWord::On) | OnOff::Flag(true) => Self::On,
            OnOff::Word(OnOffWord::Off) | OnOff::Flag(false) => Self::Off,
        }
    }
}

/// Index of `codecall:search`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SearchConfig {
    /// `on` (default) finds tools by the meaning of their words too, with a table that is part of the program; `off` by their words alone.
    #[schemars(with = "OnOff")]
    pub meaning: Meaning,
    /// `on` counts the calls that follow searches, without their texts, and ranks tools higher that were called after searches for the same
    /// words; `off` (default) counts nothing.
    #[schemars(with = "OnOff")]
    pub usage: UsageRanking,
}

/// Results of `codecall:execute` and `codecall:invoke`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ResultConfig {
    /// Bytes of JSON that a result may have in a reply: 1,024 to 67,108,864, or `off`. Default 65,536. Longer results are shortened by their
    /// structure, and their caller can read the whole for ten minutes as a resource. Images, audio and embedded resources are content
    /// blocks and do not count.
    #[schemars(with = "MaxBytesForm")]
    pub max_bytes: MaxBytes,
}

impl ResultConfig {
    pub(crate) fn problems(&self) -> Vec<InvalidField> {
        let fits = match self.max_bytes {
            MaxBytes::Bytes(bytes) => (1_024..=64 << 20).contains(&bytes),
            MaxBytes::Off => true,
        };
        let problem = InvalidField::new("result.maxBytes", "must be 1024 to 67108864, or `off`");
        if fits { Vec::new() } else { vec![problem] }
    }
}

/// A limit in bytes that can be turned off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxBytes {
    /// A limit of this many bytes.
    Bytes(u64),
    /// No limit.
    Off,
}

impl Default for MaxBytes {
    fn default() -> Self {
        Self::Bytes(64 * 1024)
    }
}

impl MaxBytes {
    /// The limit; `None` if there is none.
    pub(crate) fn limit(self) -> Option<usize> {
        match self {
            Self::Bytes(bytes) => Some(usize::try_from(bytes).unwrap_or(usize::MAX)),
            Self::Off => None,
        }
    }
}

/// A number of bytes or `off`, for the schema.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum MaxBytesForm {
    Bytes(u64),
    Off(OffWord),
    /// `false`, as YAML may read `off`.
    Flag(bool),
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum OffWord {
    Off,
}

impl Serialize for MaxBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bytes(bytes) => serializer.serialize_u64(*bytes),
            Self::Off => serializer.serialize_str("off"),
        }
    }
}

impl<'de> Deserialize<'de> for MaxBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Form;

        impl de::Visitor<'_> for Form {
            type Value = MaxBytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of bytes or `off`")
            }

            fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<MaxBytes, E> {
                Ok(MaxBytes::Bytes(bytes))
            }

            fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<MaxBytes, E> {
                u64::try_from(bytes)
                    .map(MaxBytes::Bytes)
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(bytes), &self))
            }

            fn visit_bool<E: de::Error>(self, flag: bool) -> Result<MaxBytes, E> {
                // As YAML may read `off`.
                if flag {
                    Err(E::invalid_value(de::Unexpected::Bool(flag), &self))
                } else {
                    Ok(MaxBytes::Off)
                }
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<MaxBytes, E> {
                if text == "off" {
                    Ok(MaxBytes::Off)
                } else {
                    Err(E::invalid_value(de::Unexpected::Str(text), &self))
                }
            }
        }

        deserializer.deserialize_any(Form)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_a_number_or_off_and_within_its_range() {
        let read = |text: &str| serde_json::from_str::<ResultConfig>(text);
        assert_eq!(read("{}").unwrap().max_bytes.limit(), Some(65_536));
        assert_eq!(read(r#"{"maxBytes": false}"#).unwrap().max_bytes, MaxBytes::Off);
        assert_eq!(read(r#"{"maxBytes": "off"}"#).unwrap().max_bytes.limit(), None);
        assert!(
            read(r#"{"maxBytes": "on"}"#).unwrap_err().to_string().contains("a number of bytes or `off`")
        );
        assert!(read(r#"{"maxBytes": 10}"#).unwrap().problems()[0].path.contains("result.maxBytes"));
        assert!(read(r#"{"maxBytes": 4096}"#).unwrap().problems().is_empty());
    }

    #[test]
    fn learning_is_on_or_off_in_words_and_in_booleans() {
        let read = |text: &str| serde_json::from_str::<ShapeLearning>(text);
        assert_eq!((read(r#""on""#).unwrap(), read("true").unwrap()), (ShapeLearning::On, ShapeLearning::On));
        assert_eq!(
            (read(r#""off""#).unwrap(), read("false").unwrap()),
            (ShapeLearning::Off, ShapeLearning::Off)
        );
        assert!(read(r#""maybe""#).is_err());
    }
}
