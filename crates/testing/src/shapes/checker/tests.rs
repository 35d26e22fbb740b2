use serde_json::json;

use super::*;

/// A checker of a connection with all capabilities.
fn checker(version: &str) -> Checker {
    let checker = Checker::new(Strict::default(), json!({"elicitation": {}}), false);
    let declared = json!({"tools": {}, "prompts": {}, "resources": {}, "logging": {}, "completions": {}});
    checker.begin(version, &declared);
    checker
}

/// Rules that the results of these requests break.
fn broken(version: &str, answers: &[(&str, Value, Value)]) -> Vec<&'static str> {
    let checker = checker(version);
    for (method, params, result) in answers {
        let _ =
            checker.answer(&RpcRequest::new(*method, params.clone()), &RpcResponse::success(result.clone()));
    }
    let mut rules: Vec<_> = checker.all().iter().map(|one| one.rule.name()).collect();
    rules.dedup();
    rules
}

fn tool(input: &Value) -> Value {
    json!({"tools": [{"name": "t", "inputSchema": input}]})
}

#[test]
fn every_definition_of_every_revision_compiles() {
    for revision in Revision::ALL {
        assert_eq!(RevisionSchema::of(revision).defects(), Vec::<String>::new(), "{revision:?}");
    }
}

#[test]
fn accepts_what_the_specification_shows() {
    let list =
        tool(&json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}));
    let called = json!({"content": [
        {"type": "text", "text": "21"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "note://1", "text": "a"}},
    ]});
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let answers =
            [("tools/list", json!({}), list.clone()), ("tools/call", json!({"name": "t"}), called.clone())];
        assert_eq!(broken(version, &answers), Vec::<&str>::new(), "{version}");
    }
}

#[test]
fn finds_the_rule_that_a_result_breaks() {
    let listed = |result| ("tools/list", json!({}), result);
    let called = |result| ("tools/call", json!({"name": "t"}), result);
    let content = |block| called(json!({"content": [block]}));
    for (answer, rules) in [
        (listed(tool(&json!({"type": "string"}))), &["input-schema"][..]),
        (listed(tool(&json!({}))), &["input-schema"]),
        (listed(json!({"tools": [{"name": "t"}]})), &["input-schema"]),
        (listed(tool(&json!({"type": "object", "properties": {"a": {"type": "strin"}}}))), &["input-schema"]),
        (
            listed(
                json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}}]}),
            ),
            &["output-schema"],
        ),
        (listed(json!({"tools": [{"inputSchema": {"type": "object"}}]})), &["schema"]),
        (listed(json!({"tools": [], "nextCursor": 2})), &["schema"]),
        (listed(json!({})), &["schema"]),
        (called(json!({})), &["content"]),
        (called(json!({"content": "hi"})), &["content"]),
        (content(json!({"type": "video", "data": "aGk="})), &["content"]),
        (content(json!({"type": "text", "text": 7})), &["content"]),
        (content(json!({"text": "a"})), &["content"]),
        (content(json!({"type": "image", "data": "%%", "mimeType": "image/png"})), &["base64"]),
        (content(json!({"type": "image", "data": "aGk", "mimeType": "image/png"})), &["base64"]),
        (content(json!({"type": "resource", "resource": {"uri": "note", "text": "a"}})), &["uris"]),
        (called(json!({"content": [], "structuredContent": [1]})), &["structured-content"]),
        (("resources/read", json!({}), json!({"contents": [{"uri": "a:b", "blob": "%"}]})), &["base64"]),
        (("resources/list", json!({}), json!({"resources": [{"uri": "note", "name": "n"}]})), &["uris"]),
        (("prompts/get", json!({}), json!({"messages": [{"role": "user", "content": "hi"}]})), &["content"]),
        (
            (
                "prompts/get",
                json!({}),
                json!({"messages": [{"role": "system", "content": {"type": "text", "text": ""}}]}),
            ),
            &["schema"],
        ),
    ] {
        assert_eq!(broken("2025-11-25", std::slice::from_ref(&answer)), rules, "{answer:?}");
    }
}

#[test]
fn names_the_tool_its_place_and_the_effect_on_clients() {
    let result = RpcResponse::success(tool(&json!({"type": "string"})));
    let error = checker("2025-11-25").answer(&RpcRequest::new("tools/list", json!({})), &result).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("[input-schema] /tools/0/inputSchema/type (`t`): "), "{text}");
    assert!(text.contains("`listTools` of the TypeScript SDK fails"), "{text}");
    assert!(text.contains("strict: { except: [input-schema] }"), "{text}");
}

#[test]
fn structured_content_has_to_be_there_and_fit_the_schema_of_its_tool() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let list = json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}]});
    for (result, rules) in [
        (json!({"content": [], "structuredContent": {"n": 1}}), &[][..]),
        (json!({"content": [], "structuredContent": {"n": "1"}}), &["structured-content"]),
        (json!({"content": []}), &["structured-content"]),
        (json!({"content": [], "isError": true}), &[]),
    ] {
        let answers =
            [("tools/list", json!({}), list.clone()), ("tools/call", json!({"name": "t"}), result.clone())];
        assert_eq!(broken("2025-11-25", &answers), rules, "{result}");
    }
}

#[test]
fn names_are_unique_across_pages_and_cursors_do_not_come_again() {
    let page = |name: &str, next: &str| json!({"prompts": [{"name": name}], "nextCursor": next});
    let list = |cursor: &str, result| ("prompts/list", json!({"cursor": cursor}), result);
    let first = || ("prompts/list", json!({}), page("a", "2"));
    assert_eq!(broken("2025-11-25", &[first(), list("2", page("b", "3")), first()]), Vec::<&str>::new());
    assert_eq!(broken("2025-11-25", &[first(), list("2", page("a", "3"))]), ["duplicates"]);
    assert_eq!(broken("2025-11-25", &[first(), list("2", page("b", "2"))]), ["cursors"]);
    assert_eq!(
        broken("2025-11-25", &[first(), list("2", page("b", "3")), list("3", page("c", "2"))]),
        ["cursors"]
    );
}

#[test]
fn capabilities_are_declared_before_they_are_used() {
    let undeclared = Checker::default();
    undeclared.begin("2025-11-25", &json!({}));
    let list =
        |result| undeclared.answer(&RpcRequest::new("tools/list", json!({})), &RpcResponse::success(result));
    list(json!({"tools": []})).unwrap();
    let error = list(tool(&json!({"type": "object"}))).unwrap_err().to_string();
    assert!(
        error.contains("[capabilities] the server answers this, but its `capabilities` have no `tools`"),
        "{error}"
    );
    let checker = checker("2025-11-25");
    for message in [
        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create",
            "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}}),
    ] {
        checker.message(&message);
        assert_eq!(checker.all(), [], "{message}");
    }
    for method in ["notifications/tools/list_changed", "notifications/resources/updated"] {
        checker.message(&json!({"jsonrpc": "2.0", "method": method, "params": {"uri": "a:b"}}));
    }
    checker.message(&json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}));
    assert_eq!(checker.all().iter().map(|one| one.rule).collect::<Vec<_>>(), [Rule::Capabilities; 3]);
    assert!(checker.untold().unwrap().to_string().contains("`roots`"));
    assert!(checker.untold().is_none(), "an error is told once");
}

#[test]
fn an_answer_is_a_whole_json_rpc_response() {
    for (raw, problem) in [
        (json!({"id": 1, "result": {}}), "no `\"jsonrpc\": \"2.0\"`"),
        (json!({"jsonrpc": "2.0", "id": 1}), "neither `result` nor `error`"),
        (
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": "E", "message": ""}}),
            "`error.code` is no integer",
        ),
        (
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1.5, "message": ""}}),
            "`error.code` is no integer",
        ),
        (json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -1}}), "`error.message` is no text"),
    ] {
        let error = checker("2025-11-25")
            .answer(&RpcRequest::new("ping", json!({})), &RpcResponse { raw })
            .unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
}

#[test]
fn exceptions_and_off_accept_what_they_name() {
    let (list, result) = (RpcRequest::new("tools/list", json!({})), RpcResponse::success(tool(&json!({}))));
    for (strict, accepts) in [
        (Strict::off(), true),
        (Strict::except([Rule::InputSchema]), true),
        (Strict::except([Rule::OutputSchema]), false),
    ] {
        let checker = Checker::new(strict, json!({}), false);
        checker.begin("2025-11-25", &json!({"tools": {}}));
        assert_eq!(checker.answer(&list, &result).is_ok(), accepts);
    }
}

#[test]
fn a_long_list_is_checked_to_its_end() {
    let mut tools: Vec<Value> =
        (0..5_000).map(|n| json!({"name": format!("t{n}"), "inputSchema": {"type": "object"}})).collect();
    tools.push(json!({"name": "last", "inputSchema": {"type": "string"}}));
    assert_eq!(broken("2025-11-25", &[("tools/list", json!({}), json!({"tools": tools}))]), ["input-schema"]);
}
