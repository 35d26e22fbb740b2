//! Words to terms: drops words that say nothing and reduces the rest to their stem.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};

use crate::tokenize::TokenKind;

/// Words too common in requests and descriptions to tell tools apart.
#[rustfmt::skip]
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by",
    "can", "could", "d", "did", "do", "does", "for", "from", "had", "has", "have", "help", "how", "i", "if", "in",
    "into", "is", "it", "its", "ll", "m", "may", "me", "my", "need", "of", "on", "or", "our", "please", "re", "s",
    "should", "so", "some", "t", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this",
    "those", "to", "us", "use", "used", "using", "ve", "want", "was", "we", "were", "what", "when", "where", "which",
    "who", "will", "with", "would", "you", "your",
];

/// Returns true if a lower-case word is too common to search for.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Makes terms of words. Costs nothing to create.
pub(crate) struct Terms {
    stemmer: Stemmer,
}

impl Default for Terms {
    fn default() -> Self {
        Self { stemmer: Stemmer::create(Algorithm::English) }
    }
}

impl Terms {
    /// The term a word counts as, or `None` for a stop word. Stems follow Porter2; words that are not plain
    /// Latin letters stay as they are.
    pub(crate) fn of<'w>(&self, word: &'w str, kind: TokenKind) -> Option<Cow<'w, str>> {
        if kind == TokenKind::Gram {
            return Some(Cow::Borrowed(word));
        }
        if is_stop_word(word) {
            return None;
        }
        Some(self.stem(word))
    }

    /// The stem of a lower-case word.
    pub(crate) fn stem<'w>(&self, word: &'w str) -> Cow<'w, str> {
        if word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            self.stemmer.stem(word)
        } else {
            Cow::Borrowed(word)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stop_words_are_sorted_as_their_lookup_needs() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn forms_of_one_word_become_one_term() {
        let terms = Terms::default();
        for word in ["issue", "issues", "issuing"] {
            assert_eq!(terms.of(word, TokenKind::Word).as_deref(), Some("issu"));
        }
        assert_eq!(terms.of("the", TokenKind::Word), None);
        assert_eq!(terms.of("привет", TokenKind::Word).as_deref(), Some("привет"));
    }
}
