//! Tools under other names and descriptions, with fixed and hidden parameters.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    gate::Gate,
    names::check,
    served::{LONG, Served},
    stub,
};

fn config(folder: &Path, tool: Value, more: Value) -> String {
    let mut app = stub::app(folder);
    let mut tool = tool;
    tool["visibleInListTools"] = json!(true);
    tool["enabledInCodeCall"] = json!(true);
    app["tools"] = json!({"find": tool, "poke": {"visibleInListTools": true}});
    let mut all =
        json!({"codecall": {"worker": {"workers": 1}, "mode": "metadata_driven"}, "apps": {"crm": app}});
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    all.to_string()
}

fn presented() -> Value {
    json!({
        "as": "search", "title": "Search", "description": "Finds customers of the company.",
        "hide": ["tenant"], "defaults": {"tenant": "acme", "limit": 5},
    })
}

async fn serve(folder: &TempDir, config: &str) -> (Served, Gate) {
    let served = Served::start(config, &["--no-watch"]);
    let base = format!("http://{}", served.address);
    let gate = Gate::new(&base, vec![base.clone()]);
    let up = async { while gate.tools(None).await.iter().all(|name| !name.starts_with("crm:")) {} };
    tokio::time::timeout(LONG, up).await.unwrap_or_else(|_| panic!("the stub in {folder:?} is up"));
    (served, gate)
}

async fn refusal(gate: &Gate, tool: &str, arguments: Value) -> (Value, String) {
    let answer = gate.mcp(None, "tools/call", json!({"name": tool, "arguments": arguments})).await.json();
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    let code = answer["result"]["_meta"]["code"].clone();
    (if code.is_null() { answer["error"]["data"]["code"].clone() } else { code }, text)
}

#[tokio::test]
async fn a_tool_has_its_new_name_everywhere_and_the_server_gets_its_own_and_what_is_fixed() {
    let folder = tempfile::tempdir().unwrap();
    stub::set(folder.path(), &[stub::find("Finds.")]);
    let policy = folder.path().join("p.cedar");
    fs::write(
        &policy,
        r#"permit(principal, action, resource);
           forbid(principal, action == Action::"call", resource == Tool::"crm:search")
           when { context.arguments has tenant && context.arguments.tenant == "acme" && context.arguments.query == "secret" };"#,
    )
    .unwrap();
    let more =
        json!({"policies": [policy], "rateLimits": [{"tool": "crm:search", "limit": 4, "window": "1h"}]});
    let (_served, gate) = serve(&folder, &config(folder.path(), presented(), more)).await;
    let listed = gate.mcp(None, "tools/list", json!({})).await.json();
    let tools = listed["result"]["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "crm:search").unwrap_or_else(|| panic!("{listed:#}"));
    assert_eq!(
        (&tool["title"], &tool["description"], &tool["inputSchema"]["required"]),
        (&json!("Search"), &json!("Finds customers of the company."), &json!(["query"]))
    );
    assert_eq!(
        tool["inputSchema"]["properties"],
        json!({"query": {"type": "string"}, "limit": {"type": "integer", "default": 5}})
    );
    assert!(!listed.to_string().contains("tenant") && !listed.to_string().contains("crm:find"), "{listed}");
    let called = gate.call(None, "crm:search", json!({"query": "x"})).await;
    assert_eq!(called, json!({"name": "find", "arguments": {"query": "x", "tenant": "acme", "limit": 5}}));
    let called = gate.call(None, "crm:search", json!({"query": "x", "limit": 1})).await;
    assert_eq!(called["arguments"]["limit"], 1);
    let (code, text) = refusal(&gate, "crm:search", json!({"query": "x", "tenant": "other"})).await;
    assert_eq!((code, text.contains("/tenant")), (json!("VALIDATION_ERROR"), true), "{text}");
    let (code, text) = refusal(&gate, "crm:search", json!({})).await;
    assert_eq!((code, text.contains("query")), (json!("VALIDATION_ERROR"), true), "{text}");
    assert_eq!(refusal(&gate, "crm:find", json!({"query": "x"})).await.0, "TOOL_NOT_FOUND");
    // Policies see what is sent.
    assert_eq!(refusal(&gate, "crm:search", json!({"query": "secret"})).await.0, "ACCESS_DENIED");
    let script = "return await callTool('crm:search', {query: 'y'});";
    let ran = gate.call(None, "codecall:execute", json!({"script": script})).await;
    assert_eq!(ran["result"]["arguments"]["tenant"], "acme", "{ran}");
    let tried = gate.call(None, "codecall:execute", json!({"script": script, "dryRun": true})).await;
    assert_eq!(tried["status"], "ok", "{tried}");
    assert_eq!(tried["dryRun"]["calls"][0]["arguments"], json!({"query": "y", "limit": 5}), "{tried}");
    let found =
        gate.call(None, "codecall:search", json!({"query": "customers of the company"})).await.to_string();
    assert!(found.contains("crm:search") && !found.contains("crm:find"), "{found}");
    let described = gate.call(None, "codecall:describe", json!({"toolNames": ["crm:search"]})).await;
    let tool = &described["tools"][0];
    // Results are the server's, which sends back what it got.
    let (schema, examples) = (tool["inputSchema"].to_string(), tool["usageExamples"].to_string());
    assert!(schema.contains("query") && !schema.contains("tenant"), "{schema}");
    assert!(examples.contains("crm:search") && !examples.contains("tenant"), "{examples}");
    gate.call(None, "crm:search", json!({"query": "x"})).await;
    assert_eq!(refusal(&gate, "crm:search", json!({"query": "x"})).await.0, "RATE_LIMIT");
}

#[tokio::test]
async fn a_server_that_takes_the_new_name_for_a_tool_of_its_own_does_not_get_it() {
    let folder = tempfile::tempdir().unwrap();
    stub::set(folder.path(), &[stub::plain("search"), stub::find("Finds.")]);
    let (_served, gate) = serve(&folder, &config(folder.path(), presented(), json!({}))).await;
    assert_eq!(gate.call(None, "crm:search", json!({"query": "x"})).await["name"], "find");
    assert_eq!(gate.tools(None).await.iter().filter(|name| *name == "crm:search").count(), 1);
    // Nor when its own is gone: scopes, approvals and pins were given to that one.
    stub::set(folder.path(), &[stub::plain("search")]);
    gate.call(None, "crm:poke", json!({})).await;
    let gone = async { while gate.tools(None).await.contains(&"crm:search".to_owned()) {} };
    tokio::time::timeout(LONG, gone).await.unwrap();
}

#[tokio::test]
async fn a_change_that_contradicts_the_configuration_takes_the_tool_out_and_is_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    stub::set(folder.path(), &[stub::find("Finds.")]);
    let (mut served, gate) = serve(&folder, &config(folder.path(), presented(), json!({}))).await;
    assert_eq!(served.readiness().await["config"]["unknownNames"], 0);
    // The server calls the parameter otherwise: it must not be shown.
    let mut renamed = stub::find("Finds.");
    renamed["inputSchema"]["properties"] =
        json!({"tenantId": {"type": "string"}, "query": {"type": "string"}, "limit": {"type": "integer"}});
    renamed["inputSchema"]["required"] = json!(["query"]);
    stub::set(folder.path(), &[renamed]);
    gate.call(None, "crm:poke", json!({})).await;
    let line = served.says("apps.crm.tools.find.hide.0:");
    assert!(line.contains("WARN") && line.contains("did you mean `tenantId`?"), "{line}");
    let gone = async { while gate.tools(None).await.contains(&"crm:search".to_owned()) {} };
    tokio::time::timeout(LONG, gone).await.unwrap();
    let counted = async { while served.readiness().await["config"]["unknownNames"] != 2 {} };
    tokio::time::timeout(LONG, counted).await.unwrap();
    assert_eq!(refusal(&gate, "crm:search", json!({"query": "x"})).await.0, "TOOL_NOT_FOUND");
    // Back as it was.
    stub::set(folder.path(), &[stub::find("Finds.")]);
    gate.call(None, "crm:poke", json!({})).await;
    let back = async { while !gate.tools(None).await.contains(&"crm:search".to_owned()) {} };
    tokio::time::timeout(LONG, back).await.unwrap();
    let rest = served.terminate();
    assert!(!rest.iter().any(|line| line.contains("apps.crm.tools.find.hide.0:")), "{rest:#?}");
}

#[tokio::test]
async fn a_tool_that_its_server_changes_is_reported_once_for_each_change_until_the_configuration_is_read_again()
 {
    let folder = tempfile::tempdir().unwrap();
    stub::set(folder.path(), &[stub::find("Finds."), stub::plain("other")]);
    let more = json!({"admin": {"port": 0}});
    let (mut served, gate) = serve(&folder, &config(folder.path(), presented(), more)).await;
    let change = async |description: &str| {
        let mut other = stub::plain("other");
        other["description"] = description.into();
        stub::set(folder.path(), &[stub::find(description), other]);
        gate.call(None, "crm:poke", json!({})).await;
    };
    change("Deletes.").await;
    let line = served.says("apps.crm.tools.find:");
    assert!(
        line.contains("WARN") && line.contains("`/description` was \"Finds.\" and is \"Deletes.\""),
        "{line}"
    );
    let counted = async { while served.readiness().await["config"]["unknownNames"] != 1 {} };
    tokio::time::timeout(LONG, counted).await.unwrap();
    // Clients still see the words of the configuration.
    let listed = gate.mcp(None, "tools/list", json!({})).await.json().to_string();
    assert!(listed.contains("Finds customers of the company."), "{listed}");
    change("Deletes all.").await;
    let line = served.says("apps.crm.tools.find:");
    assert!(line.contains("and is \"Deletes all.\""), "{line}");
    served.hang_up();
    served.says("nothing differs");
    let settled = async { while served.readiness().await["config"]["unknownNames"] != 0 {} };
    tokio::time::timeout(LONG, settled).await.unwrap();
    let rest = served.terminate();
    assert!(!rest.iter().any(|line| line.contains("apps.crm.tools.")), "{rest:#?}");
}

#[test]
fn check_finds_names_that_clash_and_a_live_check_finds_what_the_tools_contradict() {
    let folder = tempfile::tempdir().unwrap();
    stub::set(folder.path(), &[stub::find("Finds."), stub::plain("other")]);
    let mut app = stub::app(folder.path());
    app["tools"] = json!({"find": {"as": "same"}, "other": {"as": "same"}, "poke": {"as": "a b"}});
    let text = json!({"apps": {"crm": app}}).to_string();
    let (code, found) = check(&text, &[], "findings");
    let paths: Vec<&str> = found.iter().map(|(_, path, _)| path.as_str()).collect();
    assert_eq!((code, paths), (2, vec!["apps.crm.tools.other.as", "apps.crm.tools.poke.as"]), "{found:?}");
    app["tools"] = json!({
        "find": {"hide": ["tenant", "limt"], "defaults": {"limit": "five", "quary": 1}},
        "fnd": {"as": "x"},
    });
    let text =
        json!({"apps": {"crm": app}, "rateLimits": [{"tool": "crm:find", "limit": 1, "window": "1m"}]})
            .to_string();
    let (code, found) = check(&text, &["--live"], "findings");
    let expected = [
        ("apps.crm.tools.find.defaults.limit", "does not fit"),
        ("apps.crm.tools.find.defaults.quary", "`query`"),
        ("apps.crm.tools.find.hide.0", "`defaults`"),
        ("apps.crm.tools.find.hide.1", "`limit`"),
        ("apps.crm.tools.fnd", "`find`"),
    ];
    let paths: Vec<&str> = found.iter().map(|(_, path, _)| path.as_str()).collect();
    assert_eq!((code, paths), (2, expected.map(|(path, _)| path).to_vec()), "{found:#?}");
    for ((_, _, problem), (_, word)) in found.iter().zip(expected) {
        assert!(problem.contains(word), "{problem}");
    }
}
