//! The options of a call as the prelude lists them, and the errors about them.

/// The error that a call throws.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    /// Thrown as a `RangeError`.
    Range(String),
    /// Thrown as a `TypeError`.
    Type(String),
}

/// The options of one call. Position 0 is the language.
pub(super) struct Options<'a>(pub(super) &'a [String]);

impl Options<'_> {
    pub(super) fn get(&self, at: usize) -> Option<&str> {
        self.0.get(at).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// The text at `at`, which must be one of `known`; the first of them when it is not given.
    pub(super) fn one_of<'k>(&self, at: usize, name: &str, known: &[&'k str]) -> Result<&'k str, Mistake> {
        let Some(text) = self.get(at) else { return Ok(known.first().copied().unwrap_or_default()) };
        known.iter().copied().find(|one| *one == text).ok_or_else(|| {
            Mistake::Range(format!(
                "{name}: '{}' is not supported; use one of {}",
                shortened(text),
                known.join(", ")
            ))
        })
    }

    /// A whole number from `least` to `most`.
    pub(super) fn count(
        &self,
        at: usize,
        name: &str,
        least: usize,
        most: usize,
    ) -> Result<Option<usize>, Mistake> {
        let Some(text) = self.get(at) else { return Ok(None) };
        match text.parse::<f64>() {
            Ok(number) if number >= least as f64 && number <= most as f64 => Ok(Some(number as usize)),
            _ => Err(Mistake::Range(format!("{name} value is out of range."))),
        }
    }

    /// Accepts no value, or `only`, for the option `name` or the key `key` of the language tag.
    pub(super) fn only(&self, at: usize, name: &str, key: &str, only: &str) -> Result<(), Mistake> {
        match self.get(at).or(self.extension(key)?) {
            Some(text) if !text.eq_ignore_ascii_case(only) => Err(Mistake::Range(format!(
                "{name}: '{}' is not available in scripts; there is {only} only",
                shortened(text)
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the value of a two-letter Unicode extension key of the language tag, as `h23` for `hc` in `en-u-hc-h23`; empty for a key without a value.
    pub(super) fn extension(&self, key: &str) -> Result<Option<&str>, Mistake> {
        let Some((_, keys)) = self.language()?.split_once("-u-") else { return Ok(None) };
        let mut parts = keys.split('-').skip_while(|part| *part != key);
        if parts.next().is_none() {
            return Ok(None);
        }
        Ok(Some(parts.next().filter(|part| part.len() > 2).unwrap_or_default()))
    }

    /// The language, checked for its form: `en`, `en-US`, `zh-Hant-TW`, with extensions.
    pub(super) fn language(&self) -> Result<&str, Mistake> {
        let text = self.get(0).unwrap_or("en-US");
        let mut parts = text.split('-');
        let first = parts.next().unwrap_or_default();
        let letters = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphabetic());
        let fine = (2..=8).contains(&first.len())
            && letters(first)
            && parts
                .all(|part| (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric()));
        if fine { Ok(text) } else { Err(Mistake::Range("Incorrect locale information provided".to_owned())) }
    }
}

/// The beginning of a text, for an error.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}
