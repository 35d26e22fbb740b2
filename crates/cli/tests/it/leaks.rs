//! Every secret that passed between a test and the servers it started, so that each server's output can be searched for all of them when
//! the server ends.
//!
//! Recorded are passwords, codes, tokens, client secrets, verifiers, assertions, proofs, pushed requests, cookies and hidden fields, as they
//! were sent or answered. The full flow with traces, metrics and pages is in `secrets`.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use reqwest::Url;
use serde_json::Value;

use crate::gate::Answer;

/// Shorter values are words.
const SHORTEST: usize = 16;
/// Fields of forms, queries and JSON that are secrets.
const FIELDS: &[&str] = &[
    "access_token",
    "client_assertion",
    "client_secret",
    "code",
    "code_verifier",
    "id_token",
    "id_token_hint",
    "password",
    "refresh_token",
    "registration_access_token",
    "request_uri",
    "token",
];
/// Fields of forms on pages.
const HIDDEN: &[&str] = &["pending", "csrf", "ceremony"];

/// Values, with a name to tell each by.
static SEEN: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

fn add(what: &str, value: &str) {
    // The signature of a token is enough to know it by, and the random part of a pushed request.
    let value = value.rsplit(['.', ':']).next().unwrap_or(value);
    if value.len() >= SHORTEST {
        SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(value.to_owned(), what.to_owned());
    }
}

fn add_pairs(text: &str) {
    let Ok(url) = Url::parse(&format!("http://x/?{text}")) else { return };
    for (name, value) in url.query_pairs().filter(|(name, _)| FIELDS.contains(&&**name)) {
        add(&name, &value);
    }
}

/// Records the secrets in a request.
pub fn request(target: &str, headers: &[(&str, &str)], body: &str) {
    add_pairs(target.split_once('?').map_or("", |(_, query)| query));
    if !body.starts_with(['{', '[']) {
        add_pairs(body);
    }
    for (name, value) in headers {
        match *name {
            "authorization" => add(name, value.split_once(' ').map_or("", |(_, token)| token)),
            "dpop" => add(name, value),
            "cookie" => {
                value
                    .split("; ")
                    .filter_map(|pair| pair.split_once('='))
                    .for_each(|(name, value)| add(name, value));
            }
            _ => {}
        }
    }
}

/// Records the secrets in a response.
pub fn answer(answer: &Answer) {
    if let Ok(location) = Url::parse(answer.header("location")) {
        add_pairs(location.query().unwrap_or_default());
    }
    if let Ok(Value::Object(fields)) = serde_json::from_str(&answer.body) {
        // The `code` of an answer is that of an error.
        let secret = |name: &str| name != "code" && FIELDS.contains(&name);
        for (name, value) in fields.iter().filter(|(name, _)| secret(name)) {
            add(name, value.as_str().unwrap_or_default());
        }
    }
    for name in HIDDEN {
        for part in answer.body.split(&format!("name=\"{name}\" value=\"")).skip(1) {
            add(name, part.split('"').next().unwrap_or_default());
        }
    }
}

/// Fails when `text` holds one of all those secrets.
pub fn assert_absent(place: &str, text: &str) {
    let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let found: Vec<_> =
        seen.iter().filter(|(value, _)| text.contains(*value)).map(|(_, what)| what).collect();
    assert!(found.is_empty(), "the {place} of a server holds secrets: {found:?}");
}

#[test]
fn a_secret_that_a_server_wrote_down_fails_the_test_that_started_it() {
    request(
        "/oauth/token",
        &[("authorization", "Bearer head.body.a-signature-0123456789")],
        "code=a-code-0123456789",
    );
    assert_absent("output", "nothing of it");
    for leak in ["token=head.body.a-signature-0123456789", "GET /?code=a-code-0123456789"] {
        let failed = std::panic::catch_unwind(|| assert_absent("output", leak));
        let said = *failed.unwrap_err().downcast::<String>().unwrap();
        assert!(said.contains("holds secrets") && !said.contains("0123456789"), "{said}");
    }
}
