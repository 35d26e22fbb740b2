//! Text to the token numbers of a BERT vocabulary (WordPiece), read from a `tokenizer.json` or a `vocab.txt`.
//!
//! Follows the reference tokenizer: clean, lower-case and strip accents if the model does, split at spaces,
//! punctuation and Han characters, then the longest known pieces first.

use std::{collections::HashMap, path::Path};

use gatewright_search::pieces;
use serde_json::Value;
use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

use crate::EmbeddingError;

/// Longest word that is cut into pieces, in characters; a longer one is unknown.
const MAX_WORD: usize = 100;

/// See the module.
#[derive(Debug)]
pub(crate) struct WordPiece {
    vocabulary: HashMap<String, u32>,
    lowercase: bool,
    unknown: u32,
    start: u32,
    end: u32,
}

impl WordPiece {
    /// Reads the tokenizer of a model folder.
    pub(crate) fn load(folder: &Path) -> Result<Self, EmbeddingError> {
        let json = folder.join("tokenizer.json");
        if json.exists() {
            let bytes = crate::safetensors::read(&json)?;
            let value: Value = serde_json::from_slice(&bytes)
                .map_err(|error| EmbeddingError::Model(format!("tokenizer.json is not JSON: {error}")))?;
            return Self::from_json(&value);
        }
        let bytes = crate::safetensors::read(&folder.join("vocab.txt"))?;
        let text = String::from_utf8_lossy(&bytes);
        Self::new(text.lines().zip(0..).map(|(piece, number)| (piece.to_owned(), number)).collect(), true)
    }

    fn from_json(value: &Value) -> Result<Self, EmbeddingError> {
        let kind = value["model"]["type"].as_str().unwrap_or("WordPiece");
        if kind != "WordPiece" {
            return Err(EmbeddingError::Model(format!(
                "tokenizers of kind {kind} are not supported, only WordPiece"
            )));
        }
        let vocabulary = value["model"]["vocab"]
            .as_object()
            .ok_or_else(|| EmbeddingError::Model("tokenizer.json has no vocabulary".to_owned()))?
            .iter()
            .filter_map(|(piece, number)| Some((piece.clone(), u32::try_from(number.as_u64()?).ok()?)))
            .collect();
        Self::new(vocabulary, value["normalizer"]["lowercase"].as_bool().unwrap_or(true))
    }

    fn new(vocabulary: HashMap<String, u32>, lowercase: bool) -> Result<Self, EmbeddingError> {
        let special = |one: &str, other: &str| {
            vocabulary
                .get(one)
                .or_else(|| vocabulary.get(other))
                .copied()
                .ok_or_else(|| EmbeddingError::Model(format!("the vocabulary has no {one}")))
        };
        let (unknown, start, end) =
            (special("[UNK]", "<unk>")?, special("[CLS]", "<s>")?, special("[SEP]", "</s>")?);
        Ok(Self { vocabulary, lowercase, unknown, start, end })
    }

    /// One more than the highest token number.
    pub(crate) fn size(&self) -> usize {
        self.vocabulary.values().max().map_or(0, |highest| *highest as usize + 1)
    }

    /// Token numbers of a text with the marks around it, at most `limit`.
    pub(crate) fn encode(&self, text: &str, limit: usize) -> Vec<u32> {
        let mut out = vec![self.start];
        let mut word = String::new();
        for c in text.chars() {
            if out.len() >= limit {
                break;
            }
            if c == '\0' || c == '\u{fffd}' || (c.is_control() && !c.is_whitespace()) {
                continue;
            }
            if c.is_whitespace() {
                self.word(&mut word, &mut out);
            } else if is_punctuation(c) || is_han(c) {
                self.word(&mut word, &mut out);
                word.push(c);
                self.word(&mut word, &mut out);
            } else {
                word.push(c);
            }
        }
        self.word(&mut word, &mut out);
        out.truncate(limit.saturating_sub(1).max(1));
        out.push(self.end);
        out
    }

    fn word(&self, word: &mut String, out: &mut Vec<u32>) {
        if word.is_empty() {
            return;
        }
        let clean: String = if self.lowercase {
            word.nfd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase).collect()
        } else {
            std::mem::take(word)
        };
        word.clear();
        let before = out.len();
        let mut marked = String::new();
        let mut find = |piece: &str, continues: bool| {
            if !continues {
                return self.vocabulary.get(piece).copied();
            }
            marked.clear();
            marked.push_str("##");
            marked.push_str(piece);
            self.vocabulary.get(&marked).copied()
        };
        if clean.chars().count() > MAX_WORD || !pieces(&clean, &mut find, |number| out.push(number)) {
            out.truncate(before);
            out.push(self.unknown);
        }
    }
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation()
        || matches!(u32::from(c), 0xA1 | 0xA7 | 0xAB | 0xB6..=0xB7 | 0xBB | 0xBF | 0x2010..=0x2027 | 0x2030..=0x205E
            | 0x3001..=0x3003 | 0x3008..=0x3011 | 0x3014..=0x301F | 0xFF01..=0xFF0F | 0xFF1A..=0xFF20 | 0xFF3B..=0xFF3F)
}

fn is_han(c: char) -> bool {
    matches!(u32::from(c), 0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2CEAF | 0xF900..=0xFAFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> WordPiece {
        let pieces = ["[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "cafe", ",", "中", "文"];
        WordPiece::new(pieces.iter().zip(0..).map(|(piece, at)| ((*piece).to_owned(), at)).collect(), true)
            .unwrap()
    }

    #[test]
    fn words_are_cut_into_the_longest_known_pieces() {
        assert_eq!(small().encode("Unaffable, Café 中文 xyz", 20), [1, 3, 4, 5, 7, 6, 8, 9, 0, 2]);
    }

    #[test]
    fn a_long_text_is_cut_off_but_still_ends_properly() {
        assert_eq!(small().encode(&"cafe ".repeat(100), 4), [1, 6, 6, 2]);
        assert_eq!(small().encode("", 4), [1, 2]);
    }

    #[test]
    fn other_kinds_of_tokenizer_are_refused_by_name() {
        let error = WordPiece::from_json(&serde_json::json!({"model": {"type": "Unigram"}})).unwrap_err();
        assert!(error.to_string().contains("Unigram"), "{error}");
    }
}
