//! Taking secrets out of text that others wrote.

use std::{fmt, sync::Arc};

use gatewright_core::{CredentialPatterns, MASK, Secret};

/// Takes known secrets, what looks like a credential, and control characters out of text from a server before it is shown or logged.
#[derive(Clone, Default)]
pub(crate) struct Redactor {
    /// Every secret of the configuration.
    all: Arc<[Secret]>,
    /// Those that are certainly credentials, and not words that also occur in errors, such as a log level in the environment.
    credentials: Arc<[Secret]>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({})", self.all.len())
    }
}

/// Longest text that is looked at, in bytes: what is shown of one is much shorter.
const LONGEST: usize = 16 * 1024;
/// Shorter values are not looked for: they would hide ordinary words.
const SHORTEST: usize = 6;

/// Longest first, so that a value inside another one leaves no rest behind.
fn by_length(secrets: impl IntoIterator<Item = Secret>) -> Vec<Secret> {
    let mut secrets: Vec<Secret> = secrets
        .into_iter()
        .filter(|secret| secret.expose().len() >= SHORTEST)
        .flat_map(|secret| secret.spellings())
        .map(Secret::new)
        .collect();
    secrets.sort_by(|one, other| {
        let (one, other) = (one.expose(), other.expose());
        other.len().cmp(&one.len()).then_with(|| one.cmp(other))
    });
    secrets.dedup();
    secrets
}

fn without(secrets: &[Secret], text: &str) -> String {
    let mut text = text.to_owned();
    for secret in secrets {
        if text.contains(secret.expose()) {
            text = text.replace(secret.expose(), MASK);
        }
    }
    text
}

impl Redactor {
    pub(crate) fn new(
        credentials: impl IntoIterator<Item = Secret>,
        others: impl IntoIterator<Item = Secret>,
    ) -> Self {
        let credentials: Vec<Secret> = credentials.into_iter().collect();
        let all = by_length(credentials.iter().cloned().chain(others));
        let credentials = by_length(credentials);
        Self { all: all.into(), credentials: credentials.into() }
    }

    /// Text of an error for callers, of at most `most` bytes: without credentials, and otherwise as the server wrote it.
    pub(crate) fn text(&self, text: &str, most: usize) -> String {
        // Looked at are some bytes more, for a credential that goes over the end.
        let patterns = CredentialPatterns::usual();
        let longest = self.credentials.first().map_or(0, |secret| secret.expose().len());
        let start = &text[..text.floor_char_boundary(most.saturating_add(longest))];
        let known = without(&self.credentials, start);
        let masked = match start.len() == text.len() {
            true => patterns.mask(&known),
            false => patterns.mask_beginning(&known),
        };
        let end = masked.floor_char_boundary(most);
        match start.len() == text.len() && end == masked.len() {
            true => masked.into_owned(),
            false => format!("{}… ({} bytes in all)", &masked[..end], text.len()),
        }
    }

    /// Text without the credentials of the gateway.
    pub(crate) fn without_credentials(&self, text: &str) -> String {
        without(&self.credentials, text)
    }

    /// One short printable line of at most `longest` characters.
    pub(crate) fn line(&self, text: &str, longest: usize) -> String {
        let most = text.floor_char_boundary(LONGEST);
        let was_cut = most < text.len();
        let mut text = without(&self.all, &text[..most]);
        // The cut may have gone through a secret, which was not known for one then.
        if was_cut && let Some(secret) = self.all.first() {
            text.truncate(text.floor_char_boundary(text.len().saturating_sub(secret.expose().len())));
        }
        let text = match was_cut {
            true => CredentialPatterns::usual().mask_beginning(&text),
            false => CredentialPatterns::usual().mask(&text),
        };
        let mut line = String::with_capacity(text.len().min(longest * 4));
        let mut chars = text.chars().peekable();
        let mut kept = 0;
        while let Some(c) = chars.next() {
            if c == '\u{1b}' && chars.peek() == Some(&'[') {
                // A terminal colour: ESC [ … letter.
                let _ = chars.by_ref().find(|c| c.is_ascii_alphabetic());
                continue;
            }
            if kept == longest {
                line.push('…');
                break;
            }
            line.push(if c.is_control() { ' ' } else { c });
            kept += 1;
        }
        line.trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_out_is_not_shown_by_debug() {
        assert!(!format!("{:?}", Redactor::new([Secret::new("hunter2-hunter2")], [])).contains("hunter2"));
    }

    #[test]
    fn text_of_a_server_loses_secrets_colours_and_length() {
        let redactor = Redactor::new([Secret::new("sk-123456")], [Secret::new("a")]);
        assert_eq!(redactor.line("\u{1b}[31mbad\u{1b}[0m key sk-123456\u{7}\n", 80), "bad key [redacted]");
        assert_eq!(redactor.line(&"x".repeat(50), 4), "xxxx…");
    }

    #[test]
    fn an_error_keeps_its_words_and_lines_and_loses_credentials_and_length() {
        let redactor = Redactor::new([Secret::new("hunter2-hunter2")], [Secret::new("warning")]);
        let text = "warning: hunter2-hunter2\n  at postgres://me:pw@db, api_key=12345";
        let expected = "warning: [redacted]\n  at postgres://[redacted]@db, api_key=[redacted]";
        assert_eq!(redactor.text(text, 1_000), expected);
        assert_eq!(redactor.text(&"é".repeat(50), 9), "éééé… (100 bytes in all)");
        for at in 1..16 {
            let text = format!("{}hunter2-hunter2{}", "x".repeat(100 - at), "y".repeat(100));
            assert!(!redactor.text(&text, 100).contains("hu"), "{at}");
        }
    }

    #[test]
    fn a_secret_that_goes_over_the_end_of_what_is_looked_at_is_not_shown() {
        let redactor = Redactor::new([Secret::new("hunter2-hunter2")], []);
        for at in 1..16 {
            let text = format!("{}hunter2-hunter2{}", "x".repeat(LONGEST - at), "y".repeat(100));
            assert!(!redactor.line(&text, 2 * LONGEST).contains("hu"), "{at}");
        }
    }
}
