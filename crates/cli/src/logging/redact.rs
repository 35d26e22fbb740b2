//! Masks secrets in log lines, whichever code wrote them.

use std::{
    borrow::Cow,
    io::{self, Write},
    sync::{OnceLock, PoisonError, RwLock},
};

use gatewright_core::CredentialPatterns;
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

use crate::output;

fn current() -> &'static RwLock<Option<CredentialPatterns>> {
    static CURRENT: OnceLock<RwLock<Option<CredentialPatterns>>> = OnceLock::new();
    CURRENT.get_or_init(|| RwLock::new(CredentialPatterns::new(&[])))
}

/// Sets the additional fields to mask (`logging.redact`).
pub fn set_fields(names: &[String]) {
    *current().write().unwrap_or_else(PoisonError::into_inner) = CredentialPatterns::new(names);
}

/// Longest line that is searched for secrets as a whole, in bytes; the texts of a longer one are cut first.
const SEARCHED: usize = 32 * 1024;
/// Longest text of such a line that is searched, in bytes; also the limit for a line that is not JSON.
const SEARCHED_TEXT: usize = 8 * 1024;
/// Longest line that is written, in bytes: clients choose some of the texts that errors repeat.
const LONGEST: usize = 16 * 1024;
/// Longest text in a line of JSON that has to be cut.
const LONGEST_TEXT: usize = 2 * 1024;

/// The line, cut to [`LONGEST`]. A line of JSON stays valid JSON.
fn short(line: &str) -> Cow<'_, str> {
    if line.len() <= LONGEST {
        return Cow::Borrowed(line);
    }
    if let Ok(Value::Object(mut fields)) = serde_json::from_str(line) {
        fields.values_mut().for_each(shorten);
        let line = Value::Object(fields).to_string();
        if line.len() <= LONGEST {
            return Cow::Owned(line + "\n");
        }
        return Cow::Owned(
            json!({"level": "WARN", "fields": {"message": cut(&line, LONGEST / 2)}}).to_string() + "\n",
        );
    }
    Cow::Owned(cut(line, LONGEST) + "\n")
}

fn cut(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    format!("{}… ({} bytes more)", &text[..end], text.len() - end)
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > LONGEST_TEXT => *text = cut(text, LONGEST_TEXT),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        Value::Array(items) => items.iter_mut().for_each(shorten),
        _ => {}
    }
}

/// The line; of one that is too long to search, the beginnings of its texts with their secrets masked. JSON stays valid JSON.
fn searchable<'a>(line: &'a str, patterns: &CredentialPatterns) -> Cow<'a, str> {
    if line.len() <= SEARCHED {
        return Cow::Borrowed(line);
    }
    if let Ok(Value::Object(mut fields)) = serde_json::from_str(line) {
        let mut left = SEARCHED;
        fields.values_mut().for_each(|value| reduce(value, &mut left, patterns));
        let line = Value::Object(fields).to_string();
        if line.len() <= 2 * SEARCHED {
            return Cow::Owned(line + "\n");
        }
    }
    Cow::Owned(reduced(line, SEARCHED_TEXT, patterns) + "\n")
}

/// The beginning of a text with its secrets masked, including one that the cut goes through.
fn reduced(text: &str, most: usize, patterns: &CredentialPatterns) -> String {
    let start = &text[..text.floor_char_boundary(most)];
    let masked = patterns.mask_beginning(start);
    match text.len() - start.len() {
        0 => masked.into_owned(),
        more => format!("{masked}… ({more} bytes more)"),
    }
}

fn reduce(value: &mut Value, left: &mut usize, patterns: &CredentialPatterns) {
    match value {
        Value::String(text) => {
            let most = (*left).min(SEARCHED_TEXT);
            *left -= most.min(text.len());
            if text.len() > most {
                *text = reduced(text, most, patterns);
            }
        }
        Value::Object(fields) => fields.values_mut().for_each(|value| reduce(value, left, patterns)),
        Value::Array(items) => items.iter_mut().for_each(|item| reduce(item, left, patterns)),
        _ => {}
    }
}

/// The line as it is written. It is cut last, because a secret without its end would not be recognised.
fn redacted(line: &str, patterns: &CredentialPatterns) -> String {
    short(&patterns.mask(&searchable(line, patterns))).into_owned()
}

/// Standard error with secrets masked.
#[derive(Debug, Clone, Copy)]
pub enum RedactedStderr {
    /// For lines of text, whose control characters are escaped already.
    Text,
    /// For lines of JSON.
    Json,
}

impl Write for RedactedStderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let patterns = current().read().unwrap_or_else(PoisonError::into_inner);
        let line = String::from_utf8_lossy(bytes);
        match &*patterns {
            // A line comes in one piece: the subscriber formats it before it writes.
            Some(patterns) => output::progress(&match self {
                Self::Text => redacted(&line, patterns),
                Self::Json => output::ascii_controls(&redacted(&line, patterns)),
            }),
            None => output::note("[a log line is not shown: redaction cannot be set up]"),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl<'a> MakeWriter<'a> for RedactedStderr {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        *self
    }
}

#[cfg(test)]
#[path = "../../../../tests/growth/mod.rs"]
pub(crate) mod growth;

#[cfg(test)]
mod tests {
    use gatewright_core::MASK;

    use super::*;

    #[test]
    fn values_of_named_fields_are_masked_however_they_are_written() {
        let patterns = CredentialPatterns::new(&["x-key".to_owned()]).unwrap();
        for (line, expected) in [
            ("a access_token=abc b", "a access_token=[redacted] b"),
            (r#"{"client_secret":"s3","n":1}"#, r#"{"client_secret":"[redacted]","n":1}"#),
            (r#"{"password":"a\"b\\","n":1}"#, r#"{"password":"[redacted]","n":1}"#),
            ("secret: 'a b', n: 1", "secret: '[redacted]', n: 1"),
            (r"secret: 'a\b', n: 1", "secret: '[redacted]', n: 1"),
            (r"password=ab\cd n=1", "password=[redacted] n=1"),
            (
                r#"{"message":"password=ab\\cd\nn=1, password=e\""}"#,
                r#"{"message":"password=[redacted], password=[redacted]\""}"#,
            ),
            (
                r#"body="{\"refresh_token\":\"r.1\",\"n\":1}""#,
                r#"body="{\"refresh_token\":\"[redacted]\",\"n\":1}""#,
            ),
            ("grant_type=x&code_verifier=v1&n=2", "grant_type=x&code_verifier=[redacted]&n=2"),
            ("X-Key: abc, n: 1", "X-Key: [redacted], n: 1"),
            ("Authorization: Bearer abcdefgh12345", "Authorization: Bearer [redacted]"),
            ("got eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl here", "got [redacted] here"),
            (
                "open https://a.example/oauth/connect?id=abcdefgh12345 now",
                "open https://a.example/oauth/connect?id=[redacted] now",
            ),
        ] {
            assert_eq!(patterns.mask(line), expected);
        }
    }

    #[test]
    fn a_line_of_json_is_one_after_its_secrets_are_masked() {
        let patterns = CredentialPatterns::new(&[]).unwrap();
        let message = r#"got {"client_secret":"s3\\","api_key": 'x'} and secret="a b" password=c"#;
        let line = json!({"fields": {"message": message, "password": "a\"b\\", "n": 1}}).to_string();
        let cleaned = patterns.mask(&line);
        let read: Value = serde_json::from_str(&cleaned).unwrap_or_else(|error| panic!("{error}: {cleaned}"));
        assert_eq!((&read["fields"]["password"], &read["fields"]["n"]), (&json!(MASK), &json!(1)));
        for secret in ["s3", "a b", "=c"] {
            assert!(!cleaned.contains(secret), "{secret} in {cleaned}");
        }
    }

    #[test]
    fn a_secret_that_a_cut_would_go_through_is_masked() {
        let patterns = CredentialPatterns::new(&[]).unwrap();
        for most in [LONGEST_TEXT, LONGEST] {
            let text = format!("{} client_secret=\"{}\"", "x".repeat(most - 30), "s3".repeat(10_000));
            for line in [text.clone(), json!({"fields": {"message": text}}).to_string()] {
                let written = redacted(&line, &patterns);
                assert!(written.len() <= LONGEST + 40 && !written.contains("s3"), "{written}");
            }
        }
    }

    #[test]
    fn a_secret_longer_than_what_is_searched_is_masked() {
        let patterns = CredentialPatterns::new(&[]).unwrap();
        for quote in ["\"", "'", "\\\"", ""] {
            for before in [0, SEARCHED_TEXT - 30, SEARCHED - 30] {
                let text =
                    format!("{} client_secret={quote}{}", "x ".repeat(before / 2), "s3".repeat(200_000));
                for line in [text.clone(), json!({"fields": {"message": text, "n": 1}}).to_string()] {
                    let written = redacted(&line, &patterns);
                    assert!(
                        !written.contains("s3") && written.len() <= LONGEST + 200,
                        "{quote} {before}: {written}"
                    );
                }
            }
        }
    }

    #[test]
    fn masking_a_line_grows_no_faster_than_the_line() {
        let patterns = CredentialPatterns::new(&[]).unwrap();
        let own = [
            "password=",
            "secret='",
            "secret=\"",
            "secret=\\\"",
            "eyJaaaaaa.",
            "eyJaaaaaa-",
            "bearer ",
            "secret=\\",
            "a_b-",
            "http://a:",
            "&token=",
            "-----BEGIN PRIVATE KEY-----",
            "id_token: \"\\",
        ];
        for piece in growth::SHAPES.into_iter().chain(own) {
            let text = |len| growth::repeated(piece, len);
            growth::assert_linear(piece, text, |line| drop(std::hint::black_box(redacted(line, &patterns))));
            let line = |len| json!({"fields": {"message": text(len)}}).to_string();
            growth::assert_linear(piece, line, |line| drop(std::hint::black_box(redacted(line, &patterns))));
            growth::assert_linear_up_to(LONGEST_TEXT, piece, line, |line| {
                drop(std::hint::black_box(redacted(line, &patterns)));
            });
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_and_one_of_json_stays_one() {
        assert!(matches!(short("short\n"), Cow::Borrowed("short\n")));
        let text = short(&"é".repeat(LONGEST)).into_owned();
        assert!(text.len() < LONGEST + 40 && text.ends_with("… (16384 bytes more)\n"), "{}", text.len());
        let one = json!({"level": "WARN", "fields": {"message": "x".repeat(1_000_000), "n": 1}}).to_string();
        let many = json!({"fields": vec!["x".repeat(1_000); 1_000]}).to_string();
        for line in [one, many] {
            let text = short(&line).into_owned();
            let read: Value = serde_json::from_str(&text).unwrap();
            assert!(text.len() <= LONGEST + 200 && read["fields"].is_object(), "{}", text.len());
        }
    }

    #[test]
    fn lines_without_secrets_stay_as_they_are() {
        let patterns = CredentialPatterns::new(&[]).unwrap();
        for line in [
            "a tool call was refused or failed error.code=RATE_LIMIT",
            "a bearer token was refused why=expired",
            "the access_token endpoint is /oauth/token",
        ] {
            assert!(matches!(patterns.mask(line), Cow::Borrowed(_)), "{line}");
        }
    }
}
