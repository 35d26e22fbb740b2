use gatewright_testing::{ClientError, Match, Mismatch, RpcResponse, Subject, expect, json_diff, matchers};
use serde_json::json;

use crate::support::memory;

fn panic_of(check: impl FnOnce() + std::panic::UnwindSafe) -> String {
    *std::panic::catch_unwind(check).unwrap_err().downcast::<String>().unwrap()
}

#[tokio::test]
async fn names_a_missing_tool_and_suggests_the_nearest() {
    let tools = memory().await.tools().list().await.unwrap();
    let mismatch: Mismatch = matchers::contains_tool(&tools, "ecko").unwrap_err();
    assert_eq!(mismatch.expected, "a tool `ecko`");
    assert!(mismatch.actual.contains("6 tools: echo, fail, picture"), "{mismatch}");
    assert_eq!(mismatch.hint.as_deref(), Some("did you mean `echo`?"));
    let report = panic_of(|| expect(&tools).to_contain_tool("ecko"));
    assert!(report.starts_with("expect(…).to_contain_tool(\"ecko\")\nexpected: a tool `ecko`"), "{report}");
}

#[tokio::test]
async fn an_unsupported_value_fails_under_not_as_well() {
    let prompts = memory().await.prompts().list().await.unwrap();
    for report in [
        panic_of(|| expect(&prompts).to_contain_tool("x")),
        panic_of(|| expect(&prompts).not().to_contain_tool("x")),
        panic_of(|| expect(&json!([])).not().to_be_successful()),
        panic_of(|| expect(&prompts).not().to_have_any_text_content()),
    ] {
        assert!(report.contains("does not know this kind of value"), "{report}");
    }
}

#[tokio::test]
async fn not_inverts_a_match() {
    let result = memory().await.tools().call("echo", json!({"text": "hello"})).await.unwrap();
    expect(&result).not().to_have_text_content("bye");
    expect(&result).not().to_be_error();
    expect(&result).not().to_have_image_content();
    let report = panic_of(|| expect(&result).not().to_have_text_content("hell"));
    assert!(report.contains("not().to_have_text_content") && report.contains("the opposite"), "{report}");
}

#[test]
fn checks_every_member_of_a_json_rpc_response() {
    let ok = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    expect(&ok).to_be_valid_json_rpc();
    expect(&ok).to_have_result();
    expect(&ok).not().to_have_error();
    for (broken, why) in [
        (json!({"id": 1, "result": {}}), "`jsonrpc` is null"),
        (json!({"jsonrpc": "2.0", "result": {}}), "no `id`"),
        (json!({"jsonrpc": "2.0", "id": null, "result": {}}), "`id` is null"),
        (json!({"jsonrpc": "2.0", "id": 1}), "neither"),
        (json!({"jsonrpc": "2.0", "id": 1, "result": 1, "error": {"code": 1, "message": ""}}), "both"),
        (json!({"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": 1}}), "`error.code` is \"x\""),
    ] {
        let hint = matchers::is_valid_json_rpc(&broken).unwrap_err().hint.unwrap();
        assert!(hint.contains(why), "{hint}");
        assert!(matchers::is_valid_json_rpc(&RpcResponse { raw: broken }).is_err());
    }
}

#[test]
fn lists_json_differences_by_path() {
    let mut lines = json_diff(
        &json!({"user": {"name": "Ada", "age": 36}, "tags": ["a", "b"]}),
        &json!({"user": {"nmae": "Ada", "age": 37}, "tags": ["a"], "more": 1}),
    );
    lines.sort();
    assert_eq!(
        lines,
        [
            "$.tags: expected 2 items, there are 1",
            "$.user.age: expected 36, is 37",
            "$.user.name: expected \"Ada\", is missing (there is `nmae`)",
        ]
    );
}

/// A matcher of our own.
struct HoldsNothing;

impl Match for HoldsNothing {
    fn check(&self, subject: &Subject<'_>) -> Result<(), Mismatch> {
        match subject {
            Subject::Tools([]) => Ok(()),
            Subject::Tools(_) => Err(Mismatch::new("no tools", subject.to_string())),
            other => Err(other.unsupported("a list of tools")),
        }
    }
}

#[tokio::test]
async fn own_matchers_and_closures_work_like_the_registered_ones() {
    let tools = memory().await.tools().list().await.unwrap();
    expect(&tools).not().to(HoldsNothing);
    expect(&tools).to(|subject: &Subject<'_>| matchers::contains_tool(subject, "echo"));
    let report = panic_of(|| expect(&tools).to(HoldsNothing));
    assert!(report.starts_with("expect(…).to(…)\nexpected: no tools"), "{report}");
    let report = panic_of(|| expect(&json!({})).not().to(HoldsNothing));
    assert!(report.contains("does not know this kind of value"), "{report}");
}

#[test]
fn function_method_and_suite_name_follow_from_the_registration() {
    let schema = gatewright_testing::suite::schema().to_string();
    let answer = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no"}});
    let answer = RpcResponse { raw: answer };
    matchers::is_error(&answer, Some(-32602)).unwrap();
    expect(&answer).to_be_error_code(-32602);
    let report = panic_of(|| expect(&answer).to_be_error_code(-32700));
    assert!(report.starts_with("expect(…).to_be_error_code(-32700)\n"), "{report}");
    for name in ["toBeError", "toHaveTextContent", "toContainResourceTemplate", "toBeRefused"] {
        assert!(schema.contains(&format!("\"{name}\"")), "{name}");
    }
}

#[test]
fn a_refusal_is_matched_by_its_status() {
    let error = ClientError::Refused { status: 403, challenge: None, body: String::new() };
    expect(&error).to_be_refused();
    expect(&error).to_be_refused_with(403);
    expect(&error).not().to_be_refused_with(401);
}
