//! Values that the server must not show: the key `secrets` of a suite, and with it the tokens of clients.

use std::{collections::HashSet, sync::Mutex};

use serde_json::Value;

use crate::{
    base::{lock, text::shorten},
    suite::{failure::Failure, variables::Variables},
};

/// Fewest characters of a secret: shorter ones appear by chance.
const FEWEST: usize = 4;

/// Secrets of a suite, and where they were found.
#[derive(Debug, Default)]
pub(in crate::suite) struct Secrets {
    /// Names and values, the longest value first, so that a secret within another one is not named in its place.
    all: Mutex<Vec<(String, String)>>,
    /// Lines of output that a failure has named.
    told: Mutex<HashSet<String>>,
}

impl Secrets {
    pub(super) fn new(written: &[String], variables: &Variables) -> Result<Self, String> {
        let secrets = Self::default();
        for (at, written) in written.iter().enumerate() {
            let value = variables.text(written)?;
            if value.chars().count() < FEWEST {
                return Err(format!(
                    "`secrets.{at}` has fewer than {FEWEST} characters, which appear by chance"
                ));
            }
            secrets.add(format!("`secrets.{at}`"), value);
        }
        Ok(secrets)
    }

    /// Adds the token of a client, if the suite has secrets.
    pub(super) fn add_token(&self, token: &str) {
        if !self.is_empty() && token.chars().count() >= FEWEST {
            self.add("the token of a client".to_owned(), token.to_owned());
        }
    }

    fn add(&self, name: String, value: String) {
        let mut all = lock(&self.all);
        if !all.iter().any(|(_, known)| *known == value) {
            all.push((name, value));
            all.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        }
    }

    pub(in crate::suite) fn is_empty(&self) -> bool {
        lock(&self.all).is_empty()
    }

    /// The problem of a text that the server sent, if it contains a secret. `place` names the text.
    pub(in crate::suite) fn problem(&self, place: &str, text: &str) -> Option<String> {
        let all = lock(&self.all);
        let (name, value) = all.iter().find(|(_, value)| text.contains(value.as_str()))?;
        let from = text.find(value.as_str()).unwrap_or_default().saturating_sub(60);
        let from = (0..=from).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        let around = shorten(&hide(&text[from..], &all), 160);
        Some(format!("{place} contains {name}, which is secret: {around}"))
    }

    /// The same for JSON, in whose texts a secret is escaped.
    pub(in crate::suite) fn problem_in_json(&self, place: &str, value: &Value) -> Option<String> {
        let mut texts = Vec::new();
        collect_texts(value, &mut texts);
        texts.into_iter().find_map(|text| self.problem(place, text))
    }

    /// The same for lines of the server's output; each line is named once.
    pub(in crate::suite) fn problem_in_output(&self, lines: &[String]) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let mut told = lock(&self.told);
        lines.iter().filter(|line| !told.contains(*line)).cloned().collect::<Vec<_>>().into_iter().find_map(
            |line| {
                let problem = self.problem("the output of the server", &line)?;
                told.insert(line);
                Some(problem)
            },
        )
    }

    /// Replaces secrets in a report.
    pub(in crate::suite) fn redact(&self, failure: &mut Failure) {
        let all = lock(&self.all);
        let details = &mut failure.details;
        let texts = [&mut failure.text, &mut details.message];
        for text in texts.into_iter().chain(&mut details.expected).chain(&mut details.actual) {
            *text = hide(text, &all);
        }
    }
}

fn hide(text: &str, secrets: &[(String, String)]) -> String {
    let mut text = text.to_owned();
    for (_, value) in secrets {
        // In the report of a request a secret may be escaped.
        let escaped = Value::from(value.as_str()).to_string();
        text = text.replace(value.as_str(), "[secret]").replace(&escaped[1..escaped.len() - 1], "[secret]");
    }
    text
}

/// All texts of a value, keys included.
fn collect_texts<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(fields) => {
            for (key, value) in fields {
                texts.push(key);
                collect_texts(value, texts);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finds_a_secret_in_texts_and_hides_it() {
        let secrets = Secrets::new(&["s\"1234".into()], &Variables::default()).unwrap();
        secrets.add_token("ey.token");
        let problem =
            secrets.problem_in_json("the answer", &json!({"a": [{"b": "key is s\"1234!"}]})).unwrap();
        assert_eq!(problem, "the answer contains `secrets.0`, which is secret: key is [secret]!");
        let lines = ["fine".to_owned(), "Bearer ey.token".to_owned()];
        assert!(secrets.problem_in_output(&lines).unwrap().contains("the token of a client"));
        assert_eq!(secrets.problem_in_output(&lines), None, "a line is named once");
        assert_eq!(secrets.problem("x", "nothing"), None);
    }

    #[test]
    fn a_short_secret_is_refused_and_without_secrets_nothing_is_one() {
        let error = Secrets::new(&["abc".into()], &Variables::default()).unwrap_err();
        assert!(error.contains("`secrets.0`"), "{error}");
        let none = Secrets::default();
        none.add_token("ey.token");
        assert_eq!(none.problem("x", "ey.token"), None);
    }
}
