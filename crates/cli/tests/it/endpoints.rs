//! A running binary with two endpoints: their tools, code mode, audit, reloads and commands.

use std::{fs, process::Command};

use gatewright_testing::{Mcp, expect};
use serde_json::{Value, json};

use crate::{
    names::check,
    served::{LONG, Served},
    support::gatewright,
};

const APPS: &str =
    "codecall: { worker: { workers: 1 } }\napps: { crm: { builtin: crm }, billing: { builtin: billing } }\n";
const ENDPOINTS: &str = "endpoints:\n  support: { apps: [crm], exclude: [\"crm:users_delete\"], title: Support desk }\n  \
                         invoices: { tools: [\"billing:invoices_*\"], mode: direct }\n";

fn config(more: &str) -> String {
    format!("{APPS}{ENDPOINTS}{more}")
}

async fn at(served: &Served, endpoint: &str) -> Mcp {
    let url = format!("http://{}/mcp{endpoint}", served.address);
    Mcp::http(url).timeout(LONG).connect().await.unwrap()
}

async fn names(mcp: &Mcp) -> Vec<String> {
    mcp.tools().list().await.unwrap().iter().map(|tool| tool.name.to_string()).collect()
}

/// The structured result of a call.
async fn call(mcp: &Mcp, name: &str, input: Value) -> Value {
    mcp.tools().call(name, input).await.unwrap().structured().cloned().unwrap_or_default()
}

async fn execute(mcp: &Mcp, script: &str) -> Value {
    call(mcp, "codecall:execute", json!({"script": script})).await
}

#[tokio::test]
async fn code_mode_at_an_endpoint_finds_describes_and_calls_what_it_offers_and_nothing_else() {
    let served = Served::start(&config(""), &[]);
    let support = at(&served, "/support").await;
    assert_eq!(names(&support).await.len(), 4, "the meta-tools");
    let found = call(&support, "codecall:search", json!({"query": "invoice user", "topK": 50})).await;
    let apps: Vec<&str> =
        found["tools"].as_array().unwrap().iter().map(|hit| hit["appId"].as_str().unwrap()).collect();
    assert!(!apps.is_empty() && apps.iter().all(|app| *app == "crm"), "{found}");
    let all = call(&at(&served, "").await, "codecall:search", json!({"query": "invoice user"})).await;
    assert!(found["totalIndexed"].as_u64() < all["totalIndexed"].as_u64(), "{found} {all}");
    let hidden = ["billing:invoices_list", "crm:users_delete"];
    let described = call(&support, "codecall:describe", json!({"toolNames": hidden})).await;
    assert_eq!(described["notFound"], json!(hidden), "{described}");
    for name in hidden {
        let invoked = call(&support, "codecall:invoke", json!({"tool": name, "input": {}})).await;
        assert_eq!(invoked["error"]["code"], "TOOL_NOT_FOUND", "{invoked}");
        let ran = execute(&support, &format!("return await callTool('{name}', {{}});")).await;
        assert_eq!(ran["error"]["code"], "TOOL_NOT_FOUND", "{ran}");
        let looked = execute(&support, &format!("return getTool('{name}') ?? 'none';")).await;
        assert!(looked["status"] != "ok" || looked["result"] == "none", "{looked}");
    }
    let ran = execute(&support, "return (await callTool('crm:users_list', {limit: 1})).items.length;").await;
    assert_eq!(ran["result"], 1, "{ran}");
}

#[tokio::test]
async fn an_endpoint_without_code_mode_lists_its_tools_and_knows_no_meta_tools() {
    let served = Served::start(&config(""), &[]);
    let invoices = at(&served, "/invoices").await;
    let listed = names(&invoices).await;
    assert!(
        !listed.is_empty() && listed.iter().all(|name| name.starts_with("billing:invoices_")),
        "{listed:?}"
    );
    // A client cannot choose another mode there.
    let asked = at(&served, "/invoices?mode=code").await;
    assert_eq!(names(&asked).await, listed);
    let refused = invoices.tools().call("codecall:execute", json!({"script": "return 1"})).await.unwrap();
    expect(&refused).to_be_error();
    assert!(invoices.resources().list().await.unwrap().is_empty());
    assert!(invoices.prompts().list().await.unwrap().is_empty());
    assert_eq!(names(&at(&served, "").await).await.len(), 4);
}

#[tokio::test]
async fn a_plan_in_the_background_stays_within_its_endpoint_and_is_unknown_elsewhere() {
    let served = Served::start(&config(""), &[]);
    let (support, main) = (at(&served, "/support").await, at(&served, "").await);
    let script = "return await callTool('billing:invoices_list', {}, {throwOnError: false});";
    let begun = call(&support, "codecall:execute", json!({"script": script, "detach": true})).await;
    let id = begun["executionId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
    let resume = json!({"resume": id});
    let elsewhere = call(&main, "codecall:execute", resume.clone()).await;
    assert_ne!(elsewhere["status"], "ok", "{elsewhere}");
    let ended = async {
        loop {
            let body = call(&support, "codecall:execute", resume.clone()).await;
            if body["status"] != "running" {
                return body;
            }
        }
    };
    let body = tokio::time::timeout(LONG, ended).await.unwrap();
    let told = [&body["error"]["code"], &body["result"]["error"]["code"]];
    assert!(told.contains(&&json!("TOOL_NOT_FOUND")), "{body}");
}

#[tokio::test]
async fn a_reload_adds_changes_and_removes_endpoints() {
    let served = Served::start(&config(""), &[]);
    let url = |name: &str| format!("http://{}/mcp/{name}", served.address);
    let status = async |name: &str| {
        let post = reqwest::Client::new().post(url(name)).header("content-type", "application/json");
        post.body(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).send().await.unwrap().status().as_u16()
    };
    assert_eq!(status("added").await, 404);
    let (invoices, support) = (at(&served, "/invoices").await, at(&served, "/support").await);
    let many = names(&invoices).await.len();
    served.replace(&format!(
        "{APPS}endpoints:\n  invoices: {{ tools: [\"billing:invoices_list\"], mode: direct }}\n  added: {{ apps: [\"*\"] }}\n"
    ));
    served.says("the configuration was reloaded");
    assert!(many > 1);
    assert_eq!(names(&invoices).await, ["billing:invoices_list"]);
    assert_eq!(names(&at(&served, "/added").await).await.len(), 4);
    assert_eq!(status("support").await, 404);
    assert!(support.tools().list().await.is_err());
}

#[tokio::test]
async fn the_audit_names_the_endpoint() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let mut served = Served::start(&config(&format!("audit: {{ file: \"{}\" }}\n", file.display())), &[]);
    execute(&at(&served, "/support").await, "return 1;").await;
    execute(&at(&served, "").await, "return 1;").await;
    served.terminate();
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let named: Vec<Option<&str>> = lines.iter().map(|line| line["endpoint"].as_str()).collect();
    assert_eq!(named, [Some("support"), None], "{text}");
}

#[test]
fn a_check_finds_names_modes_and_scopes_of_endpoints_that_cannot_be_right() {
    let text = r#"apps: { crm: { builtin: crm } }
codecall: { enabled: false }
endpoints:
  Bad_Name: { apps: [crm] }
  empty: {}
  code: { apps: [crm], mode: code }
  scoped: { apps: [crm], scopes: [supprt], expectedAudience: x }
auth: { mode: orchestrated, scopes: { support: Support } }
"#;
    let (code, found) = check(text, &[], "findings");
    let places: Vec<&str> = found.iter().map(|(_, path, _)| path.as_str()).collect();
    for place in [
        "endpoints.Bad_Name",
        "endpoints.empty",
        "endpoints.code.mode",
        "endpoints.scoped.scopes.0",
        "endpoints.scoped.expectedAudience",
    ] {
        assert!(places.contains(&place), "{place}: {found:#?}");
    }
    assert_eq!((code, found.len()), (2, 5), "{found:#?}");
}

#[test]
fn a_live_check_finds_apps_tools_and_keys_of_endpoints_that_do_not_exist() {
    let text = r#"apps: { crm: { builtin: crm } }
endpoints:
  a: { apps: [crmm, crm], tools: ["crm:user_list", "crm:users_*", "billing:x"], exclude: ["*:anything"], prompts: ["crn"] }
"#;
    let (_, found) = check(text, &["--live"], "findings");
    let found: Vec<(&str, &str)> =
        found.iter().map(|(_, path, problem)| (path.as_str(), problem.as_str())).collect();
    let expected = [
        ("endpoints.a.apps.0", "did you mean `crm`?"),
        ("endpoints.a.prompts.0", "there is no app `crn`"),
        ("endpoints.a.tools.0", "did you mean `users_list`?"),
        ("endpoints.a.tools.2", "there is no app `billing`"),
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for ((path, problem), (place, part)) in found.iter().zip(expected) {
        assert!(*path == place && problem.contains(part), "{path}: {problem}");
    }
}

#[gatewright_testing::test]
async fn stdio_serves_one_endpoint_and_an_unknown_one_is_an_error()
-> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    use gatewright_testing::{ClientOptions, Server, Transport};
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("gatewright.yaml");
    fs::write(&file, config(""))?;
    let server = Server::builder(gatewright().display().to_string())
        .arg("serve")
        .arg("--stdio")
        .arg("--endpoint")
        .arg("invoices")
        .arg("--config")
        .arg(file.display().to_string())
        .transport(Transport::Stdio)
        .start()
        .await?;
    let mcp = server.create_client(ClientOptions::default()).await?;
    let listed = mcp.tools().list().await?;
    assert!(listed.iter().all(|tool| tool.name.starts_with("billing:invoices_")) && !listed.is_empty());
    mcp.disconnect().await;
    let output = Command::new(gatewright())
        .args(["serve", "--stdio", "--endpoint", "suport", "--config"])
        .arg(&file)
        .output()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("did you mean `support`?"), "{text}");
    Ok(())
}

#[test]
fn connect_puts_an_endpoint_into_a_client() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("gatewright.yaml"), format!("http: {{ port: 4711 }}\n{}", config("")))
        .unwrap();
    let connect = |arguments: &[&str]| {
        let mut command = Command::new(gatewright());
        command.args(["connect", "cursor", "--print"]).args(arguments);
        let output = command.current_dir(home.path()).env_clear().env("HOME", home.path()).output().unwrap();
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat()
    };
    let by_address = connect(&["--endpoint", "support"]);
    assert!(by_address.contains("http://127.0.0.1:4711/mcp/support"), "{by_address}");
    let by_command = connect(&["--endpoint", "support", "--stdio"]);
    assert!(by_command.contains("--endpoint") && by_command.contains("support"), "{by_command}");
    let unknown = connect(&["--endpoint", "invoice"]);
    assert!(unknown.contains("did you mean `invoices`?"), "{unknown}");
}
