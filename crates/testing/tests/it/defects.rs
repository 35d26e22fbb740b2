//! Broken servers are caught: suites written as the documentation says pass with a server that is intact, and fail with each defect in
//! the test that is meant for it.

use std::path::Path;

use futures::{StreamExt as _, stream};
use gatewright_testing::suite::{RunOptions, Suite, SuiteReport, TestOutcome, readable};

use crate::support::script;

async fn run(suite: &Suite, key: &Path, bug: &str) -> SuiteReport {
    let mut options = RunOptions::default();
    options.environment.insert("KEY".into(), key.display().to_string());
    options.environment.insert("BUG".into(), bug.into());
    suite.run(&options).await
}

/// Runs a suite with each defect, a few at a time. `defects`: their names, each with a part of the failures that are expected.
async fn catches(suite: &str, defects: &[(&str, &str)]) {
    let suite = Suite::from_file(script(suite)).unwrap_or_else(|error| panic!("{error}"));
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key.pem");
    run(&suite, &key, "").await.assert_passed();
    let reports = stream::iter(defects)
        .map(async |(bug, expected)| (*bug, *expected, run(&suite, &key, bug).await))
        .buffer_unordered(3)
        .collect::<Vec<_>>()
        .await;
    for (bug, expected, report) in reports {
        let failed = report.tests.iter().filter(|test| matches!(test.outcome, TestOutcome::Failed(_)));
        let failed: Vec<String> = failed
            .map(|test| {
                let why = test.failure.as_ref().map_or("", |failure| failure.message.as_str());
                format!("{}: {why}", test.name)
            })
            .collect();
        let text = readable(&[report], false);
        assert!(
            failed.iter().any(|one| one.contains(expected)),
            "{bug} is not caught by `{expected}`: {text}"
        );
    }
}

#[tokio::test]
async fn a_suite_catches_swallowed_errors_bad_schemas_leaks_and_races_of_a_stdio_server() {
    catches(
        "defects-stdio.suite.yaml",
        &[
            ("schema-without-type", "[input-schema]"),
            ("schema-true", "[input-schema]"),
            ("schema-unknown-type", "[input-schema]"),
            ("schema-required-no-list", "[input-schema]"),
            ("schema-that-nothing-fits", "no value fits it: `town`"),
            ("schema-lost-reference", "[input-schema]"),
            ("description-null", "[schema]"),
            ("output-schema-unknown-type", "[output-schema]"),
            ("output-schema-of-a-list", "[output-schema]"),
            ("duplicate-tool", "[duplicates]"),
            ("swallowed-argument", "refuses missing arguments: "),
            ("swallowed-status", "reports a service that fails: "),
            ("swallowed-failure", "reports a service that breaks off: "),
            ("failure-as-text", "reports a service that fails: "),
            ("swallowed-unknown-tool", "refuses unknown tools: "),
            ("swallowed-method", "refuses unknown methods: "),
            ("secret-in-log", "the output of the server contains `secrets.0`"),
            ("secret-in-error", "the outcome contains `secrets.0`"),
            ("environment-in-meta", "the outcome contains `secrets.0`"),
            ("stack-in-error", "reports a service that fails: "),
            ("output-of-another-type", "[structured-content]"),
            ("output-missing", "its result no `structuredContent`"),
            ("unknown-block", "[content]"),
            ("race", "pays once: "),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_suite_catches_missing_auth_wrong_tokens_content_types_and_leaks_of_an_http_server() {
    catches(
        "defects-http.suite.yaml",
        &[
            ("no-auth", "refuses clients without a token: "),
            ("list-without-auth", "refuses requests without a token"),
            ("call-without-auth", "refuses requests without a token"),
            ("path-without-auth", "serves no other spelling of its path: "),
            ("header-names-user", "not x-user: "),
            ("header-of-proxy", "not x-forwarded-for: "),
            ("header-debug", "not x-debug: "),
            ("any-token", "refuses the token malformed: "),
            ("session-instead-of-token", "keeps a session for its user: "),
            ("session-of-others", "keeps a session for its user: "),
            ("token-in-query", "takes no token from the address: "),
            ("any-signature", "refuses the token tampered: "),
            ("any-key-id", "refuses the token kid: "),
            ("embedded-key", "refuses the token embedded-key: "),
            ("no-algorithm", "refuses the token alg-none: "),
            ("any-time", "refuses the token expired: "),
            ("no-expiry", "refuses the token no-expiry: "),
            ("too-early", "refuses the token not-yet-valid: "),
            ("any-issuer", "refuses the token issuer: "),
            ("any-audience", "refuses the token audience: "),
            ("no-audience", "refuses the token no-audience: "),
            ("any-scope", "refuses a missing scope: "),
            ("no-challenge", "refuses requests without a token"),
            ("refusal-with-200", "refuses clients without a token: "),
            ("refusal-with-403", "refuses clients without a token: "),
            ("any-origin", "refuses pages of other sites: "),
            ("notes-of-others", "keeps what belongs to a user: "),
            ("owner-in-error", "keeps what belongs to a user: "),
            ("note-of-last-caller", "keeps what belongs to a user: "),
            ("token-in-log", "the output of the server contains the token of a client"),
            ("json-as-text", "[content-type] the content type of the answer is `text/plain`"),
            ("json-as-html", "[content-type]"),
            ("json-without-type", "[content-type] the answer has no content type"),
            ("json-as-stream", "came as `text/event-stream`"),
            ("stream-as-json", "an event stream under another content type"),
            ("race", "sells the last one once: "),
        ],
    )
    .await;
}
