//! `localeCompare` and the `toLocaleString` family without `Intl`, as Node does them in English.
//!
//! Pure functions over texts: the realm's prelude reads the options of a call into a list, in the order of the enums below, an
//! empty text for each that is not given. Every language is treated as English in UTC; `date` says for which the order of a date differs.

mod collate;
mod currency;
mod date;
mod number;

use date::Parts;

/// Returns the text for a call of the prelude, or `!` and the message of a `RangeError`, or `?` and that of a `TypeError`.
///
/// `kind` 0 compares `a` and `b` (`-1`, `0`, `1`); 1 writes the number `a`; 2, 3 and 4 the date and time, the date, the time of
/// `a` in milliseconds. Long work asks `stop` from time to time; when it returns true, the text has no meaning.
pub(super) fn answer(kind: i32, a: &str, b: &str, options: &[String], stop: &dyn Fn() -> bool) -> String {
    let options = Options(options);
    let moment = |parts| date::date_text(a.parse().unwrap_or(f64::NAN), parts, &options);
    let answer = match kind {
        0 => collate::compare(a, b, &options, stop).map(|order| (order as i8).to_string()),
        1 => number::number_text(a, &options),
        2 => moment(Parts::Both),
        3 => moment(Parts::Date),
        _ => moment(Parts::Time),
    };
    answer.unwrap_or_else(|mistake| match mistake {
        Mistake::Range(message) => format!("!{message}"),
        Mistake::Type(message) => format!("?{message}"),
    })
}

/// The error that a call throws.
#[derive(Debug, PartialEq, Eq)]
enum Mistake {
    /// Thrown as a `RangeError`.
    Range(String),
    /// Thrown as a `TypeError`.
    Type(String),
}

/// The options of one call. Position 0 is the language.
struct Options<'a>(&'a [String]);

impl Options<'_> {
    fn get(&self, at: usize) -> Option<&str> {
        self.0.get(at).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// The text at `at`, which must be one of `known`; the first of them when it is not given.
    fn one_of<'k>(&self, at: usize, name: &str, known: &[&'k str]) -> Result<&'k str, Mistake> {
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
    fn count(&self, at: usize, name: &str, least: usize, most: usize) -> Result<Option<usize>, Mistake> {
        let Some(text) = self.get(at) else { return Ok(None) };
        match text.parse::<f64>() {
            Ok(number) if number >= least as f64 && number <= most as f64 => Ok(Some(number as usize)),
            _ => Err(Mistake::Range(format!("{name} value is out of range."))),
        }
    }

    /// Accepts no value, or `only`, for the option `name` or the key `key` of the language tag.
    fn only(&self, at: usize, name: &str, key: &str, only: &str) -> Result<(), Mistake> {
        match self.get(at).or(self.extension(key)?) {
            Some(text) if !text.eq_ignore_ascii_case(only) => Err(Mistake::Range(format!(
                "{name}: '{}' is not available in scripts; there is {only} only",
                shortened(text)
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the value of a two-letter Unicode extension key of the language tag, as `h23` for `hc` in `en-u-hc-h23`; empty for a key without a value.
    fn extension(&self, key: &str) -> Result<Option<&str>, Mistake> {
        let Some((_, keys)) = self.language()?.split_once("-u-") else { return Ok(None) };
        let mut parts = keys.split('-').skip_while(|part| *part != key);
        if parts.next().is_none() {
            return Ok(None);
        }
        Ok(Some(parts.next().filter(|part| part.len() > 2).unwrap_or_default()))
    }

    /// The language, checked for its form: `en`, `en-US`, `zh-Hant-TW`, with extensions.
    fn language(&self) -> Result<&str, Mistake> {
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
fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}
