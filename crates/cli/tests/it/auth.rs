//! `gatewright serve` with the `auth` section: who gets in, and what they see.

use std::{io::Write as _, process::Command};

use gatewright_testing::Server;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    gate::{Person, Site, config, form, parameter, secret},
    support::gatewright,
};

/// The value of a parameter of a challenge.
fn challenge(text: &str, name: &str) -> String {
    let found = text.split_once(&format!("{name}=\"")).unwrap_or_else(|| panic!("no {name}: {text}"));
    found.1.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn a_client_finds_its_way_from_the_challenge_to_the_tools() {
    let site = Site::start(&config(json!({"dcrEnabled": true})));
    let gate = site.gate();

    let refused = gate.mcp(None, "tools/list", json!({})).await;
    assert_eq!(refused.status, 401);
    let metadata = challenge(refused.header("www-authenticate"), "resource_metadata");
    let resource = gate.get(&metadata).await.json();
    assert_eq!(resource["resource"], gate.resource());
    assert_eq!(resource["authorization_servers"], json!([gate.public]));
    let server = gate.get("/.well-known/oauth-authorization-server").await.json();
    assert_eq!(server["issuer"], gate.public);
    assert!(
        !gate.get(server["jwks_uri"].as_str().unwrap()).await.json()["keys"].as_array().unwrap().is_empty()
    );

    let redirect = "http://127.0.0.1:51000/here";
    let registration = json!({"client_name": "Newcomer", "redirect_uris": [redirect], "token_endpoint_auth_method": "none", "grant_types": ["authorization_code", "refresh_token"]});
    let endpoint = server["registration_endpoint"].as_str().unwrap();
    let registered = gate
        .send(Method::POST, endpoint, &[("content-type", "application/json")], registration.to_string())
        .await;
    assert_eq!(registered.status, 201, "{}", registered.body);
    let client = registered.json()["client_id"].as_str().unwrap().to_owned();

    let callback =
        Person::default().authorize(&gate, &gate.ask(&client, redirect, "crm:read billing:read")).await;
    assert_eq!(parameter(&callback, "iss"), gate.public);
    assert_eq!(parameter(&callback, "state"), "a-state-of-the-client");
    let code = parameter(&callback, "code");
    let tokens = gate.redeem(&client, redirect, &code).await;
    assert_eq!(tokens.status, 200, "{}", tokens.body);
    let tokens = tokens.json();
    let token = tokens["access_token"].as_str();
    assert!(gate.tools(token).await.contains(&"crm:users_list".to_owned()));
    let script = "const users = await callTool('crm:users_list', {limit: 2}); \
                  const invoices = await callTool('billing:invoices_list', {limit: 1}); \
                  return [users.items.length, invoices.items.length]";
    let ran = gate.call(token, "codecall:execute", json!({"script": script})).await;
    assert_eq!((&ran["status"], &ran["result"]), (&json!("ok"), &json!([2, 1])), "{ran}");

    let refresh = [
        ("grant_type", "refresh_token"),
        ("client_id", &client),
        ("refresh_token", tokens["refresh_token"].as_str().unwrap()),
    ];
    let refreshed = gate.token(&refresh).await.json();
    assert_eq!(gate.mcp(refreshed["access_token"].as_str(), "tools/list", json!({})).await.status, 200);

    // A code that comes again ends all that came of it.
    assert_eq!(gate.redeem(&client, redirect, &code).await.json()["error"], "invalid_grant");
    assert_eq!(gate.mcp(refreshed["access_token"].as_str(), "tools/list", json!({})).await.status, 401);
}

#[tokio::test]
async fn tools_beyond_the_scopes_are_neither_listed_nor_found_nor_reached_from_a_script() {
    let site = Site::start(&config(json!({})));
    let gate = site.gate();
    let tokens = gate.log_in("crm:read").await;
    assert_eq!(tokens["scope"], "crm:read");
    let token = tokens["access_token"].as_str();
    let listed = gate.tools(token).await;
    assert!(listed.contains(&"crm:users_list".to_owned()), "{listed:?}");
    let beyond = |name: &str| name.starts_with("billing:") || name == "crm:users_delete";
    assert!(!listed.iter().any(|name| beyond(name)), "{listed:?}");
    let found =
        gate.call(token, "codecall:search", json!({"query": "invoices, delete a user", "topK": 100})).await;
    let hits = found["tools"].as_array().unwrap();
    assert!(!hits.is_empty() && !hits.iter().any(|hit| beyond(hit["name"].as_str().unwrap())), "{found}");
    let described = gate.call(token, "codecall:describe", json!({"toolNames": ["crm:users_delete"]})).await;
    assert_eq!(described["notFound"], json!(["crm:users_delete"]), "{described}");
    let script = "const tried = []; for (const name of ['crm:users_list', 'crm:users_delete', 'billing:invoices_list']) { \
                  tried.push((await callTool(name, {id: 'usr_1'}, {throwOnError: false})).success); } return tried";
    let ran = gate.call(token, "codecall:execute", json!({"script": script})).await;
    assert_eq!(ran["status"], "ok", "{ran}");
    assert_eq!(ran["result"].as_array().unwrap()[1..], [json!(false), json!(false)], "{ran}");
    let invoked =
        gate.call(token, "codecall:invoke", json!({"tool": "billing:invoices_list", "input": {}})).await;
    assert_eq!(invoked["status"], "error", "{invoked}");
}

#[tokio::test]
async fn a_direct_call_that_needs_more_scopes_gets_them_all_named_in_one_challenge() {
    let site = Site::start(&config(json!({})));
    let gate = site.gate();
    let token = gate.machine_token("robot", "crm:read").await;
    let call = json!({"name": "crm:users_delete", "arguments": {"id": "usr_1"}});
    let refused = gate.mcp(Some(&token), "tools/call", call).await;
    assert_eq!(refused.status, 403, "{}", refused.body);
    let header = refused.header("www-authenticate");
    assert_eq!(challenge(header, "error"), "insufficient_scope");
    assert_eq!(challenge(header, "scope"), "crm:delete");
    assert!(challenge(header, "resource_metadata").starts_with(&gate.public));
    let message = refused.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.starts_with("Forbidden: ") && message.ends_with(": crm:delete"), "{}", refused.body);
}

#[tokio::test]
async fn a_bad_token_never_becomes_anonymous() {
    let site = Site::start(&config(json!({"allowDefaultPublic": true, "anonymousScopes": ["crm:read"]})));
    let gate = site.gate();
    assert!(gate.tools(None).await.contains(&"crm:users_list".to_owned()), "anonymous callers are let in");
    let good = gate.machine_token("robot", "crm:read").await;
    let (head, signature) = good.rsplit_once('.').unwrap();
    let flipped: String = signature.chars().rev().collect();
    for bad in ["nonsense", &format!("{head}.{flipped}"), &format!("{head}."), &good[1..]] {
        let refused = gate.mcp(Some(bad), "tools/list", json!({})).await;
        assert_eq!(refused.status, 401, "{bad}: {}", refused.body);
        assert_eq!(challenge(refused.header("www-authenticate"), "error"), "invalid_token", "{bad}");
    }
    for header in ["Basic cm9ib3Q6eA==", "Bearer", "Bearer a b"] {
        let headers = [("authorization", header), ("content-type", "application/json")];
        let refused = gate.send(Method::POST, "/mcp", &headers, "{}".to_owned()).await;
        assert_eq!(refused.status, 401, "{header}: {}", refused.body);
    }
    // A token in the address is not looked at: the caller stays who it is without one.
    let elsewhere = form(&[("access_token", &gate.machine_token("robot", "crm:delete").await)]);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "crm:users_delete",
        "arguments": {"id": "usr_1"}, "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}});
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "crm:users_delete"),
    ];
    let refused = gate.send(Method::POST, &format!("/mcp?{elsewhere}"), &headers, body.to_string()).await;
    assert_eq!(refused.status, 403, "{}", refused.body);
}

#[tokio::test]
async fn a_revoked_token_is_refused_at_once() {
    let site = Site::start(&config(json!({})));
    let gate = site.gate();
    let tokens = gate.log_in("crm:read").await;
    let token = tokens["access_token"].as_str();
    assert_eq!(gate.mcp(token, "tools/list", json!({})).await.status, 200);
    let fields = [("client_id", "app"), ("token", tokens["refresh_token"].as_str().unwrap())];
    assert_eq!(gate.post_form("/oauth/revoke", &[], &fields).await.status, 200);
    assert_eq!(gate.mcp(token, "tools/list", json!({})).await.status, 401);
}

#[tokio::test]
async fn a_session_is_of_the_caller_who_opened_it() {
    let site = Site::start(&config(json!({})));
    let gate = site.gate();
    let (own, other) =
        (gate.machine_token("robot", "crm:read").await, gate.machine_token("other", "crm:read").await);
    let send = async |token: &str, session: &str, message: Value| {
        let bearer = format!("Bearer {token}");
        let mut headers = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2025-11-25"),
            ("authorization", bearer.as_str()),
        ];
        headers.extend((!session.is_empty()).then_some(("mcp-session-id", session)));
        gate.send(Method::POST, "/mcp", &headers, message.to_string()).await
    };
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let opened = send(&own, "", hello).await;
    let session = opened.header("mcp-session-id").to_owned();
    assert!(!session.is_empty(), "{} {}", opened.status, opened.body);
    send(&own, &session, json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}});
    assert_eq!(send(&other, &session, list.clone()).await.status, 404, "as if there were no such session");
    assert_eq!(send("nonsense", &session, list.clone()).await.status, 401);
    let answer = send(&own, &session, list).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert!(!answer.json()["result"]["tools"].as_array().unwrap().is_empty());
}

async fn provider(arguments: &[&str]) -> (Server, Value) {
    let mut builder =
        Server::builder(gatewright().display().to_string()).ready_path("/.well-known/jwks.json");
    for argument in [&["mock", "oauth", "--json", "--port", "{port}"], arguments].concat() {
        builder = builder.arg(argument);
    }
    let server = builder.start().await.unwrap();
    let line = server.wait_for_log("baseUrl", std::time::Duration::from_secs(30)).await.unwrap();
    (server, serde_json::from_str(&line).unwrap())
}

#[tokio::test]
async fn transparent_mode_takes_the_tokens_of_the_provider_that_the_variables_name() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key.pem").display().to_string();
    let (_provider, info) = provider(&["--key", &key]).await;
    let issuer = info["issuer"].as_str().unwrap();
    let text = json!({
        "http": {"port": 0},
        "apps": {"crm": {"builtin": "crm"}},
        "codecall": {"mode": "metadata_driven", "worker": {"workers": 1}},
        "auth": {"mode": "transparent", "provider": {"allowPrivate": true}},
    });
    let variables = [
        ("IDP_PROVIDER_URL", issuer.to_owned()),
        ("IDP_EXPECTED_AUDIENCE", "https://tools.example".to_owned()),
    ];
    let site = Site::launch("json", &text.to_string(), &variables, &[]);
    let gate = site.gate();
    let metadata = challenge(
        gate.mcp(None, "tools/list", json!({})).await.header("www-authenticate"),
        "resource_metadata",
    );
    assert_eq!(gate.get(&metadata).await.json()["authorization_servers"], json!([issuer]));
    let token = |arguments: &[&str]| {
        let common = ["token", "--key", &key, "--issuer", issuer, "--scope", "crm:read"];
        let output = Command::new(gatewright()).args(common).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let audience = ["--audience", "https://tools.example"];
    let listed = gate.tools(Some(&token(&audience))).await;
    assert!(
        listed.contains(&"crm:users_list".to_owned()) && !listed.contains(&"crm:users_delete".to_owned())
    );
    for bad in [
        &["--audience", "https://elsewhere.example"][..],
        &[audience[0], audience[1], "--expired"],
        &[audience[0], audience[1], "--invalid-signature"],
        &[audience[0], audience[1], "--claim", "iss=https://elsewhere.example"],
    ] {
        assert_eq!(gate.mcp(Some(&token(bad)), "tools/list", json!({})).await.status, 401, "{bad:?}");
    }
}

fn refused(text: &str, arguments: &[&str]) -> String {
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let output = Command::new(gatewright())
        .args(["serve", "--config"])
        .arg(file.path())
        .args(arguments)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn nobody_is_served_beyond_loopback_without_authentication_unless_that_is_meant() {
    let apps = "apps: { crm: { builtin: crm } }\nhttp: { port: 0 }\n";
    let told = refused(apps, &["--host", "0.0.0.0"]);
    assert!(told.contains("auth.mode") && told.contains("allowDefaultPublic"), "{told}");
    // The address that clients use says nothing about who connects.
    for url in ["http://localhost:3000", "http://127.0.0.1:3000"] {
        let local =
            format!("apps: {{ crm: {{ builtin: crm }} }}\nhttp: {{ port: 0, publicUrl: \"{url}\" }}\n");
        for (auth, parts) in [
            ("{ mode: public }", ["auth.mode", "allowDefaultPublic"]),
            ("{ mode: orchestrated, local: { login: demo } }", ["auth.local.login", "loopback"]),
        ] {
            let told = refused(&format!("{local}auth: {auth}\n"), &["--host", "0.0.0.0"]);
            for part in parts {
                assert!(told.contains(part), "{url} {auth}: {told}");
            }
            let in_file = local.replace("port: 0", "port: 0, host: 0.0.0.0");
            let told = refused(&format!("{in_file}auth: {auth}\n"), &[]);
            assert!(told.contains(parts[0]), "{url} {auth}: {told}");
        }
    }
    let meant = format!("{apps}auth: {{ mode: public, allowDefaultPublic: true }}\n");
    let site = Site::launch("yaml", &meant, &[], &["--host", "0.0.0.0"]);
    assert!(site.log.text().contains("authentication is off"), "{}", site.log.text());
}

#[test]
fn every_bad_field_of_the_section_is_told_with_its_line_and_without_its_secrets() {
    let text = "apps: { crm: { builtin: crm } }\nauth:\n  mode: orchestrated\n  tokenStorage: { type: redis }\n  local:\n    signKey: s3cret\n    keyRotationDays: 0\n  clients:\n    - clientId: c\n      redirectUris: ['http://evil.example/x']\n";
    let told = refused(text, &[]);
    assert!(!told.contains("s3cret"), "{told}");
    for (line, path) in [
        (4, "auth.tokenStorage"),
        (6, "auth.local.signKey"),
        (7, "auth.local.keyRotationDays"),
        (10, "auth.clients"),
    ] {
        let found = told.lines().any(|text| text.contains(path) && text.contains(&format!("line {line}:")));
        assert!(found, "line {line}, {path}: {told}");
    }
    let unknown = refused(&text.replace("keyRotationDays", "keyRotationDay"), &[]);
    assert!(unknown.contains("line 7:") && unknown.contains("`keyRotationDays`"), "a suggestion: {unknown}");
    assert!(!unknown.contains("s3cret"), "{unknown}");
}

#[tokio::test]
async fn many_wrong_secrets_are_slowed_down_for_their_address_only_where_a_trusted_proxy_names_it() {
    let limits = json!({"limits": {"token": 5}, "trustedProxies": ["127.0.0.1"]});
    let site = Site::start(&config(limits));
    let gate = site.gate();
    let try_from = async |address: &str| {
        let headers = [("x-forwarded-for", address)];
        let fields =
            [("grant_type", "client_credentials"), ("client_id", "robot"), ("client_secret", "wrong")];
        gate.post_form("/oauth/token", &headers, &fields).await
    };
    let mut last = 0;
    for _ in 0..8 {
        last = try_from("198.51.100.1").await.status;
    }
    assert_eq!(last, 429);
    let slowed = try_from("198.51.100.1").await;
    assert!(!slowed.header("retry-after").is_empty());
    assert!(!slowed.body.contains(&secret("robot")));
}
