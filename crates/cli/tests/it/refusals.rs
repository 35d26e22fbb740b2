//! Refusals of tools: those of meta-tools fit the output schema of the tool, those of other tools have no structured content.

use std::collections::HashMap;

use futures::future::join_all;
use gatewright::rmcp::{
    RoleClient, ServiceExt as _,
    model::{CallToolRequestParams, CallToolResult},
    service::RunningService,
    transport::StreamableHttpClientTransport,
};
use gatewright_testing::{expect, test_use};
use serde_json::{Value, json};

use crate::{served::Served, support::Demo};

#[path = "../../../../tests/person/mod.rs"]
#[expect(dead_code, reason = "refusals need no approval that is given")]
mod person;

use person::{Person, no};

test_use! {}

/// A client that checks what it gets, as the SDK of TypeScript does: structured content fits the listed output schema.
struct Strict {
    client: RunningService<RoleClient, Person>,
    schemas: HashMap<String, jsonschema::Validator>,
}

impl Strict {
    /// A client that cannot ask its person.
    async fn of(server: &Served) -> Self {
        Self::of_person(server, Person::mute()).await
    }

    async fn of_person(server: &Served, person: Person) -> Self {
        let transport = StreamableHttpClientTransport::from_uri(format!("http://{}/mcp", server.address));
        let client = person.serve(transport).await.unwrap();
        let tools = client.peer().list_all_tools().await.unwrap();
        let schemas = tools.into_iter().filter_map(|tool| {
            let schema = Value::Object((*tool.output_schema?).clone());
            assert_eq!(schema["type"], "object", "{}", tool.name);
            Some((tool.name.into_owned(), jsonschema::validator_for(&schema).unwrap()))
        });
        Self { schemas: schemas.collect(), client }
    }

    async fn call(&self, tool: &str, input: Value) -> CallToolResult {
        let Value::Object(input) = input else { panic!("the input is an object") };
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(input);
        let result = self.client.peer().call_tool(params).await.unwrap();
        if let (Some(schema), Some(content)) = (self.schemas.get(tool), &result.structured_content) {
            let problems: Vec<String> = schema.iter_errors(content).map(|error| error.to_string()).collect();
            assert_eq!(problems, Vec::<String>::new(), "{tool}: {content}");
        }
        result
    }

    /// The body of a refused meta-tool.
    async fn refused(&self, tool: &str, input: Value) -> Value {
        let result = self.call(tool, input).await;
        let body = result.structured_content.unwrap_or_else(|| panic!("{tool} has no body"));
        assert_eq!(result.is_error, Some(true), "{tool}: {body}");
        assert!(body["status"].is_string() && body["status"] != "ok", "{tool}: {body}");
        assert!(body["error"]["code"].is_string() && body["error"]["message"].is_string(), "{tool}: {body}");
        assert_eq!(result.content[0].as_text().unwrap().text, body.to_string());
        body
    }
}

const META: [(&str, &str); 4] = [
    ("codecall:search", "error"),
    ("codecall:describe", "error"),
    ("codecall:execute", "runtime_error"),
    ("codecall:invoke", "error"),
];

fn good(tool: &str) -> Value {
    match tool {
        "codecall:search" => json!({"query": "users"}),
        "codecall:describe" => json!({"toolNames": ["crm:users_list"]}),
        "codecall:execute" => json!({"script": "return 1"}),
        _ => json!({"tool": "crm:users_list", "input": {}}),
    }
}

#[tokio::test]
async fn a_meta_tool_over_its_rate_limit_answers_with_status_and_error_that_fit_its_output_schema() {
    let rules = META.map(|(tool, _)| format!("  - {{ tool: \"{tool}\", limit: 1, window: 1h }}\n")).concat();
    let server = Served::start(&format!("apps:\n  crm: {{ builtin: crm }}\nrateLimits:\n{rules}"), &[]);
    let client = Strict::of(&server).await;
    for (tool, status) in META {
        assert_ne!(client.call(tool, good(tool)).await.is_error, Some(true), "{tool}");
        let body = client.refused(tool, good(tool)).await;
        assert_eq!(
            (&body["status"], &body["error"]["code"]),
            (&json!(status), &json!("RATE_LIMIT")),
            "{body}"
        );
        assert!((1..=3600).contains(&body["error"]["retryAfterSeconds"].as_u64().unwrap()), "{body}");
    }
}

#[tokio::test]
async fn a_list_longer_than_its_bound_is_refused_with_the_bound() {
    let server = Served::start("apps:\n  crm: { builtin: crm }\n", &[]);
    let client = Strict::of(&server).await;
    let names = |count: usize| vec!["crm:users_list"; count];
    for (tool, field, most) in [
        ("codecall:describe", "toolNames", 100),
        ("codecall:search", "filter/appIds", 100),
        ("codecall:execute", "allowedTools", 1_000),
    ] {
        let input = |count| {
            let mut input = good(tool);
            match field {
                "filter/appIds" => input["filter"] = json!({"appIds": names(count)}),
                field => input[field] = json!(names(count)),
            }
            input
        };
        assert_ne!(client.call(tool, input(most)).await.is_error, Some(true), "{tool}");
        let error = client.refused(tool, input(most + 1)).await["error"].clone();
        assert_eq!(error["code"], "VALIDATION_ERROR", "{error}");
        let message = error["message"].as_str().unwrap();
        let bound = format!("more than {most} items");
        assert!(message.contains(&format!("/{field}")) && message.contains(&bound), "{message}");
    }
}

#[tokio::test]
async fn every_other_refusal_of_a_meta_tool_fits_its_output_schema_too() {
    let server = Served::start(
        "apps:\n  crm: { builtin: crm, tools: { users_get: { scopes: [\"crm:read\"] }, users_list: { enabledInCodeCall: false } } }\n\
         codecall: { vm: { timeoutMs: 1000, maxIterations: 1000000000 }, worker: { workers: 1, maxWorkers: 1, queue: 1 } }\n\
         auth: { mode: orchestrated, allowDefaultPublic: true, anonymousScopes: [\"crm:write\"], scopes: { \"crm:write\": Write, \"crm:read\": Read } }\n",
        &[],
    );
    let client = Strict::of(&server).await;
    for (tool, status) in META {
        // A search without a query lists apps.
        let empty = if tool == "codecall:search" { json!({"filter": 1}) } else { json!({}) };
        for bad in [empty, json!({"unknown": 1}), json!({"query": 1, "toolNames": 1, "script": 1, "tool": 1})]
        {
            let body = client.refused(tool, bad).await;
            let code = &body["error"]["code"];
            assert_eq!((&body["status"], code), (&json!(status), &json!("VALIDATION_ERROR")), "{body}");
        }
    }
    for (tool, code) in [
        ("crm:nope", "TOOL_NOT_FOUND"),
        ("crm:users_get", "ACCESS_DENIED"),
        ("crm:users_list", "ACCESS_DENIED"),
        ("crm:users_create", "VALIDATION_ERROR"),
        ("codecall:search", "SELF_REFERENCE_BLOCKED"),
    ] {
        let body = client.refused("codecall:invoke", json!({"tool": tool, "input": {"id": 1}})).await;
        assert_eq!(body["error"]["code"], code, "{body}");
        let script = format!("return await callTool({tool:?}, {{ id: 1 }})");
        let body = client.refused("codecall:execute", json!({"script": script})).await;
        assert_eq!(body["error"]["code"], code, "{body}");
    }
    for (script, status) in [
        ("const = 1", "syntax_error"),
        ("return eval('1')", "illegal_access"),
        ("throw new RangeError('far')", "runtime_error"),
        ("while (true) {}", "timeout"),
    ] {
        let body = client.refused("codecall:execute", json!({"script": script})).await;
        assert_eq!(body["status"], status, "{body}");
    }
    let calls = (0..4).map(|_| client.refused("codecall:execute", json!({"script": "while (true) {}"})));
    let bodies = join_all(calls).await;
    assert!(bodies.iter().any(|body| body["error"]["code"] == "QUEUE_FULL"), "{bodies:?}");
    // What is not refused is as the contract says: no status where none is named.
    let found = client.call("codecall:search", good("codecall:search")).await.structured_content.unwrap();
    assert!(found.get("status").is_none() && found["tools"].is_array(), "{found}");
}

/// The files of policies in which each of these is about one tool.
fn policies(rules: &[(&str, &str)]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "@id(\"base\") permit (principal, action, resource);\n".to_owned();
    for (kind, tool) in rules {
        text += &format!("@id(\"on-{tool}\") {kind} (principal, action, resource == Tool::\"{tool}\");\n");
    }
    let file = folder.path().join("rules.cedar");
    std::fs::write(&file, text).unwrap();
    (folder, format!("policies: [{}]\n", file.display()))
}

#[tokio::test]
async fn what_policies_and_approvals_refuse_in_a_meta_tool_fits_its_output_schema() {
    let (_folder, policies) =
        policies(&[("forbid", "crm:users_list"), ("@ask(\"Sure?\") permit", "crm:users_get")]);
    let server = Served::start(&format!("apps:\n  crm: {{ builtin: crm }}\n{policies}"), &[]);
    let client = Strict::of(&server).await;
    for (tool, input, code) in [
        ("crm:users_list", json!({}), "ACCESS_DENIED"),
        // Its client cannot be asked.
        ("crm:users_get", json!({"id": "usr_0001"}), "APPROVAL_REQUIRED"),
    ] {
        let body = client.refused("codecall:invoke", json!({"tool": tool, "input": input})).await;
        assert_eq!((&body["status"], &body["error"]["code"]), (&json!("error"), &json!(code)), "{body}");
        let script = format!("return await callTool({tool:?}, {input})");
        let body = client.refused("codecall:execute", json!({"script": script})).await;
        assert_eq!((&body["status"], &body["error"]["code"]), (&json!("tool_error"), &json!(code)), "{body}");
    }
    // One that can be asked, and says no.
    let client = Strict::of_person(&server, Person::saying([no(), no()])).await;
    let asks = json!({"id": "usr_0001"});
    let body = client.refused("codecall:invoke", json!({"tool": "crm:users_get", "input": asks})).await;
    assert_eq!(
        (&body["status"], &body["error"]["code"]),
        (&json!("error"), &json!("APPROVAL_DENIED")),
        "{body}"
    );
    let script = format!("return await callTool('crm:users_get', {asks})");
    let body = client.refused("codecall:execute", json!({"script": script})).await;
    assert_eq!(
        (&body["status"], &body["error"]["code"]),
        (&json!("tool_error"), &json!("APPROVAL_DENIED")),
        "{body}"
    );
}

#[gatewright_testing::test]
async fn a_refusal_of_another_tool_has_its_code_in_meta_and_no_structured_content(demo: Demo) {
    let refused = demo.call("crm:users_list", json!({})).await;
    expect(&refused).to_be_error();
    assert_eq!(refused.raw["_meta"]["code"], "ACCESS_DENIED", "{}", refused.raw);
    assert_eq!(refused.structured(), None);
    assert!(refused.text().contains("codecall:invoke"), "it says what to do: {}", refused.text());
}
