//! API keys of the configuration: their callers in policies, rate limits and tasks, reload, and what is written down of them.

use std::process::Command;

use serde_json::{Value, json};

use crate::{
    gate::{Gate, Site, config},
    served::Served,
    support::gatewright,
};

/// A key called `name`, and its entry in the configuration.
fn generate(name: &str, scope: &str) -> (String, Value) {
    let output = Command::new(gatewright())
        .args(["api-key", "generate", name, "--scope", scope, "--json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let made: Value = serde_json::from_slice(&output.stdout).unwrap();
    (made["key"].as_str().unwrap().to_owned(), made["entry"].clone())
}

#[tokio::test]
async fn a_key_of_the_configuration_is_a_caller_with_scopes_policies_and_limits_of_its_own() {
    let (reader, reader_entry) = generate("reader", "crm:read");
    let (other, other_entry) = generate("other", "crm:read");
    let mut all = config(json!({"apiKeys": [reader_entry, other_entry]}));
    all["apps"]["crm"]["scopes"] = json!(["crm:read"]);
    all["apps"]["billing"]["scopes"] = json!(["billing:read"]);
    all["codecall"] = json!({"enabled": false});
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("keys.cedar");
    std::fs::write(
        &policy,
        r#"permit(principal, action, resource);
           forbid(principal, action == Action::"call", resource == Tool::"crm:users_get")
           when { principal has client && principal.client == "key:other" };"#,
    )
    .unwrap();
    all["policies"] = json!([policy]);
    all["rateLimits"] = json!([{"tool": "crm:accounts_list", "limit": 1, "window": "1h"}]);
    let site = Site::start(&all);
    let gate = site.gate();
    let tools = gate.tools(Some(&reader)).await;
    assert!(tools.contains(&"crm:users_list".to_owned()), "{tools:?}");
    assert!(!tools.iter().any(|tool| tool.starts_with("billing:")), "{tools:?}");
    assert!(tools.contains(&"crm:users_get".to_owned()), "{tools:?}");
    assert!(!gate.tools(Some(&other)).await.contains(&"crm:users_get".to_owned()));
    let accounts = async |gate: &Gate, key: &str| {
        let answer =
            gate.mcp(Some(key), "tools/call", json!({"name": "crm:accounts_list", "arguments": {}})).await;
        answer.body.contains("RATE_LIMIT")
    };
    assert!(!accounts(&gate, &reader).await && accounts(&gate, &reader).await);
    assert!(!accounts(&gate, &other).await, "another key has its own count");
}

#[tokio::test]
async fn keys_follow_the_configuration_without_a_restart() {
    let (_, entry) = generate("ci", "mcp");
    let (key, new) = generate("ci", "mcp");
    let text = |entry: &Value| {
        json!({"apps": {"crm": {"builtin": "crm"}}, "auth": {"mode": "orchestrated", "apiKeys": [entry]}})
            .to_string()
    };
    let served = Served::start(&text(&entry), &["--no-watch"]);
    let base = format!("http://{}", served.address);
    let gate = Gate::new(&base, vec![base.clone()]);
    let status = async || gate.mcp(Some(&key), "tools/list", json!({})).await.status;
    assert_eq!(status().await, 401);
    served.replace(&text(&new));
    served.hang_up();
    let line = served.says("the configuration was reloaded");
    assert!(line.contains("auth.apiKeys"), "{line}");
    assert_eq!(status().await, 200);
    served.replace(&text(&entry));
    served.hang_up();
    served.says("the configuration was reloaded");
    assert_eq!(status().await, 401);
}

#[test]
fn generate_prints_the_key_alone_and_an_entry_that_check_accepts() {
    let output =
        Command::new(gatewright()).args(["api-key", "generate", "ci", "--no-expiry"]).output().unwrap();
    let (key, told) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(key.starts_with("gwk_") && key.lines().count() == 1, "{key}");
    assert!(!told.contains(key.trim()), "only once");
    let entry = told.lines().find(|line| line.trim_start().starts_with('-')).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gatewright.yaml");
    let text =
        format!("apps: {{ crm: {{ builtin: crm }} }}\nauth:\n  mode: orchestrated\n  apiKeys:\n{entry}\n");
    std::fs::write(&file, text).unwrap();
    let check = |arguments: &[&str]| {
        let output = Command::new(gatewright()).arg("check").args(arguments).arg(&file).output().unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr),
        )
    };
    assert_eq!(check(&["--offline"]).0, 0);
    let (code, told) = check(&["--offline", "--production"]);
    assert!(code != 0 && told.contains("an API key never expires"), "{told}");
    for bad in ["a b", ""] {
        let output = Command::new(gatewright()).args(["api-key", "generate", bad]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
    }
}
