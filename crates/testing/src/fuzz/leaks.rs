//! Stack traces and secrets in answers.

use std::sync::LazyLock;

use regex::Regex;

/// Bytes of an answer that are searched.
const MOST_BYTES: usize = 1 << 20;

/// Signs of a stack trace, by language.
static TRACES: LazyLock<Vec<(&'static str, Regex)>> = LazyLock::new(|| {
    compiled(&[
        ("Python", r"Traceback \(most recent call last\)"),
        (
            "JavaScript",
            r"\n\s+at (?:async )?[^\n(]{0,200}\(?(?:file://|node:|/|[A-Z]:\\)[^\n)]{1,300}:\d+:\d+\)?",
        ),
        ("Java", r"\n\s+at [\w$.]+\([\w$]+\.(?:java|kt|scala):\d+\)"),
        ("Go", r"goroutine \d+ \[running\]"),
        ("Rust", r"thread '[^']{0,100}' (?:\(\d+\) )?panicked at "),
        (".NET", r"\n\s+at [\w.<>`]+\([^\n)]{0,200}\) in [^\n]{1,300}:line \d+"),
        ("Ruby", r"\.rb:\d+:in [`']"),
        ("PHP", r"PHP (?:Fatal error|Warning): |#\d+ /[^\n]{1,300}\.php\(\d+\): "),
    ])
});

/// Signs of a secret.
static SECRETS: LazyLock<Vec<(&'static str, Regex)>> = LazyLock::new(|| {
    compiled(&[
        ("a private key", r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----"),
        ("a key of AWS", r"\bAKIA[0-9A-Z]{16}\b"),
        ("a token of GitHub", r"\bgh[pousr]_[A-Za-z0-9]{36,}\b"),
        ("a token of Slack", r"\bxox[abprs]-[A-Za-z0-9-]{20,}\b"),
        ("a secret key", r"\bsk-[A-Za-z0-9_-]{32,}\b"),
        ("a URL with a password", r"\b[a-z][a-z0-9+]{1,20}://[^\s/:@]{1,100}:[^\s/@]{3,100}@[\w.-]+"),
    ])
});

fn compiled(all: &[(&'static str, &str)]) -> Vec<(&'static str, Regex)> {
    all.iter().filter_map(|(name, pattern)| Some((*name, Regex::new(pattern).ok()?))).collect()
}

/// Language and text of a stack trace in an answer, unless the input has the same text.
pub(super) fn trace<'a>(answer: &'a str, input: &str) -> Option<(&'static str, &'a str)> {
    find(&TRACES, answer, input)
}

/// Kind and text of a secret in an answer, unless the input has it.
pub(super) fn secret<'a>(answer: &'a str, input: &str) -> Option<(&'static str, &'a str)> {
    find(&SECRETS, answer, input)
}

fn find<'a>(
    patterns: &[(&'static str, Regex)],
    answer: &'a str,
    input: &str,
) -> Option<(&'static str, &'a str)> {
    let mut end = answer.len().min(MOST_BYTES);
    while !answer.is_char_boundary(end) {
        end -= 1;
    }
    patterns.iter().find_map(|(name, pattern)| {
        let text = pattern.find(&answer[..end])?.as_str().trim_start();
        (!input.contains(text)).then_some((*name, text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_stack_traces_of_common_languages() {
        for (language, text) in [
            ("Python", "Error\nTraceback (most recent call last):\n  File"),
            ("JavaScript", "TypeError: x\n    at Object.call (file:///app/server.mjs:10:3)"),
            ("JavaScript", "Error: x\n    at async /app/node_modules/a/index.js:1:22"),
            ("Java", "boom\n\tat com.acme.Tool.run(Tool.java:42)"),
            ("Go", "panic: x\n\ngoroutine 1 [running]:"),
            ("Rust", "thread 'main' panicked at src/main.rs:1:1"),
        ] {
            assert_eq!(trace(text, "").map(|found| found.0), Some(language), "{text}");
        }
        assert!(trace("we met at noon (10:30:15)\n at the station", "").is_none());
        assert!(
            trace("Traceback (most recent call last)", "Traceback (most recent call last)").is_none(),
            "an echo"
        );
    }

    #[test]
    fn finds_secrets_that_the_input_did_not_have() {
        let key = "-----BEGIN PRIVATE KEY-----";
        assert!(secret(&format!("config: {key}"), "").is_some() && secret(key, key).is_none());
        assert_eq!(
            secret("postgres://admin:hunter2@db.internal/app", "").unwrap().0,
            "a URL with a password"
        );
        assert!(secret("sk-learn is a library", "").is_none());
    }
}
