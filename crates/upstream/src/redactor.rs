//! Taking secrets out of text that others wrote.

use std::fmt;

use gatewright_core::Secret;

/// Takes known secrets and control characters out of text from a server before it is shown or logged.
#[derive(Clone, Default)]
pub(crate) struct Redactor(Vec<Secret>);

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({})", self.0.len())
    }
}

/// Longest text that is looked at, in bytes: what is shown of one is much shorter.
const LONGEST: usize = 16 * 1024;
/// Shorter values are not looked for: they would hide ordinary words.
const SHORTEST: usize = 6;

impl Redactor {
    pub(crate) fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let mut secrets: Vec<Secret> =
            secrets.into_iter().filter(|secret| secret.expose().len() >= SHORTEST).collect();
        // Longest first, so that a value inside another one leaves no rest behind.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        Self(secrets)
    }

    /// One short printable line of at most `longest` characters.
    pub(crate) fn line(&self, text: &str, longest: usize) -> String {
        let most = text.floor_char_boundary(LONGEST);
        let was_cut = most < text.len();
        let mut text = text[..most].to_owned();
        for secret in &self.0 {
            if text.contains(secret.expose()) {
                text = text.replace(secret.expose(), "[redacted]");
            }
        }
        // The cut may have gone through a secret, which was not known for one then.
        if was_cut && let Some(secret) = self.0.first() {
            text.truncate(text.floor_char_boundary(text.len().saturating_sub(secret.expose().len())));
        }
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
        assert!(!format!("{:?}", Redactor::new([Secret::new("hunter2-hunter2")])).contains("hunter2"));
    }

    #[test]
    fn text_of_a_server_loses_secrets_colours_and_length() {
        let redactor = Redactor::new([Secret::new("sk-123456"), Secret::new("a")]);
        assert_eq!(redactor.line("\u{1b}[31mbad\u{1b}[0m key sk-123456\u{7}\n", 80), "bad key [redacted]");
        assert_eq!(redactor.line(&"x".repeat(50), 4), "xxxx…");
    }

    #[test]
    fn a_secret_that_goes_over_the_end_of_what_is_looked_at_is_not_shown() {
        let redactor = Redactor::new([Secret::new("hunter2-hunter2")]);
        for at in 1..16 {
            let text = format!("{}hunter2-hunter2{}", "x".repeat(LONGEST - at), "y".repeat(100));
            assert!(!redactor.line(&text, 2 * LONGEST).contains("hu"), "{at}");
        }
    }
}
