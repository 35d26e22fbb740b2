//! Keeps secrets out of log lines, whoever wrote them there.

use std::{
    borrow::Cow,
    io::{self, Write},
    sync::{OnceLock, PoisonError, RwLock},
};

use regex::{NoExpand, Regex};
use tracing_subscriber::fmt::MakeWriter;

/// Fields whose values are never shown, besides those of `logging.redact`.
const NEVER: [&str; 12] = [
    "access_token",
    "refresh_token",
    "id_token",
    "client_secret",
    "client_assertion",
    "code_verifier",
    "registration_access_token",
    "password",
    "secret",
    "api_key",
    "set-cookie",
    "cookie",
];
const MASK: &str = "[redacted]";

/// What is looked for in a line.
struct Patterns {
    /// `name=value`, `name: "value"`, `"name":"value"`, also inside JSON text that was escaped.
    fields: Regex,
    /// Credentials of an `Authorization` header.
    schemes: Regex,
    /// A signed JWT.
    jwt: Regex,
    /// Addresses of this server whose last part works like a ticket.
    tickets: Regex,
}

fn patterns(more: &[String]) -> Option<Patterns> {
    let names: Vec<String> = NEVER
        .iter()
        .map(|name| (*name).to_owned())
        .chain(more.iter().cloned())
        .map(|n| regex::escape(&n))
        .collect();
    let fields = format!(
        r#"(?i)(?P<name>\b(?:{})\\*["']?\s*[:=]\s*)(?:\\*"[^"\\]*\\*"|\\*'[^'\\]*\\*'|[^\s,;&}}\])"']+)"#,
        names.join("|")
    );
    Some(Patterns {
        fields: Regex::new(&fields).ok()?,
        schemes: Regex::new(r"(?i)\b(?P<name>bearer|dpop|basic) [a-z0-9._~+/=-]{8,}").ok()?,
        jwt: Regex::new(r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+").ok()?,
        tickets: Regex::new(
            r"(?P<name>/oauth/connect\?id=|urn:ietf:params:oauth:request_uri:)[A-Za-z0-9_-]{8,}",
        )
        .ok()?,
    })
}

fn held() -> &'static RwLock<Option<Patterns>> {
    static HELD: OnceLock<RwLock<Option<Patterns>>> = OnceLock::new();
    HELD.get_or_init(|| RwLock::new(patterns(&[])))
}

/// Masks these fields too (`logging.redact`).
pub fn also(names: &[String]) {
    *held().write().unwrap_or_else(PoisonError::into_inner) = patterns(names);
}

fn clean<'a>(line: &'a str, patterns: &Patterns) -> Cow<'a, str> {
    // Most lines hold nothing of the kind and are not copied.
    let line = match patterns.fields.replace_all(line, format!("${{name}}{MASK}")) {
        Cow::Borrowed(_) => Cow::Borrowed(line),
        Cow::Owned(line) => Cow::Owned(line),
    };
    let line = match patterns.schemes.replace_all(&line, format!("${{name}} {MASK}")) {
        Cow::Borrowed(_) => line,
        Cow::Owned(line) => Cow::Owned(line),
    };
    let line = match patterns.jwt.replace_all(&line, NoExpand(MASK)) {
        Cow::Borrowed(_) => line,
        Cow::Owned(line) => Cow::Owned(line),
    };
    match patterns.tickets.replace_all(&line, format!("${{name}}{MASK}")) {
        Cow::Borrowed(_) => line,
        Cow::Owned(line) => Cow::Owned(line),
    }
}

/// Standard error, without secrets.
#[derive(Debug, Clone, Copy)]
pub struct CleanStderr;

impl Write for CleanStderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let patterns = held().read().unwrap_or_else(PoisonError::into_inner);
        let line = String::from_utf8_lossy(bytes);
        match &*patterns {
            // A line comes in one piece: the subscriber formats it before it writes.
            Some(patterns) => io::stderr().write_all(clean(&line, patterns).as_bytes())?,
            None => io::stderr().write_all(b"[a log line is not shown: redaction cannot be set up]\n")?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl<'a> MakeWriter<'a> for CleanStderr {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        *self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_named_fields_are_masked_however_they_are_written() {
        let patterns = patterns(&["x-key".to_owned()]).unwrap();
        for (line, expected) in [
            ("a access_token=abc b", "a access_token=[redacted] b"),
            (r#"{"client_secret":"s3","n":1}"#, r#"{"client_secret":[redacted],"n":1}"#),
            (
                r#"body="{\"refresh_token\":\"r.1\",\"n\":1}""#,
                r#"body="{\"refresh_token\":[redacted],\"n\":1}""#,
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
            assert_eq!(clean(line, &patterns), expected);
        }
    }

    #[test]
    fn lines_without_secrets_stay_as_they_are() {
        let patterns = patterns(&[]).unwrap();
        for line in [
            "a tool call was refused or failed error.code=RATE_LIMIT",
            "a bearer token was refused why=expired",
            "the access_token endpoint is /oauth/token",
        ] {
            assert!(matches!(clean(line, &patterns), Cow::Borrowed(_)), "{line}");
        }
    }
}
