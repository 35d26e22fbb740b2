//! The contract's `auth` object, without any other key, from the check of the file to a tool's answer.

use std::{
    io::{BufRead as _, BufReader},
    net::TcpListener,
    process::{Child, Command, Stdio},
};

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    gate::{Gate, Person, Site, parameter},
    support::gatewright,
};

const REDIRECT: &str = "http://127.0.0.1:51000/here";
const STORE_PASSWORD: &str = "of-the-store";

/// Every field of the contract's table for the built-in server, and no other. `dcrEnabled` is on: the client of this test registers itself.
fn contract(storage: Value, key: &Value) -> Value {
    json!({
        "info": {"name": "acme-tools", "version": "1.0.0"},
        "http": {"port": 0},
        "apps": {"every": {"builtin": "everything"}},
        "codecall": {"mode": "metadata_driven", "worker": {"workers": 1}},
        "auth": {
            "mode": "orchestrated",
            "type": "local",
            "sessionMode": "stateful",
            "tokenStorage": storage,
            "local": {"signKey": key, "keyRotationDays": 60, "maxKeys": 3},
            "refresh": {
                "enabled": true, "skewSeconds": 60, "accessTokenTtl": 900, "refreshTokenTtl": 604_800,
                "rotateRefreshToken": true,
            },
            "consent": {"enabled": true},
            "allowDefaultPublic": false,
            "dcrEnabled": true,
        },
        "logging": {"level": "info", "redact": ["access_token", "refresh_token", "client_secret"]},
    })
}

fn signing_key() -> Value {
    let made = Command::new(gatewright()).args(["key", "generate"]).output().unwrap();
    serde_json::from_slice(&made.stdout).unwrap()
}

/// Standard error of `gatewright check` for a valid file.
fn check(config: &Value) -> String {
    let mut file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    std::io::Write::write_all(&mut file, config.to_string().as_bytes()).unwrap();
    let output = Command::new(gatewright()).args(["check", "--config"]).arg(file.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// The password that a server without users prints for `admin`.
fn password(site: &mut Site) -> &'static str {
    let line = site.log.wait_for("Sign in as `admin` with the password ").expect("a password is printed");
    let password = line.rsplit(' ').next().unwrap().to_owned();
    assert_eq!(password.len(), 22, "128 bits: {line}");
    site.printed_on_purpose.push(password.clone());
    password.leak()
}

/// A client that registers itself, a user who signs in and allows, and the tokens that come of it. No scope is named anywhere.
async fn log_in(gate: &Gate, password: &'static str) -> Value {
    let metadata = json!({"client_name": "Newcomer", "redirect_uris": [REDIRECT],
        "token_endpoint_auth_method": "none", "grant_types": ["authorization_code", "refresh_token"]});
    let headers = [("content-type", "application/json")];
    let registered = gate.send(Method::POST, "/oauth/register", &headers, metadata.to_string()).await;
    assert_eq!(registered.status, 201, "{}", registered.body);
    let client = registered.json()["client_id"].as_str().unwrap().to_owned();
    let mut person = Person { name: Some("admin"), password: Some(password), ..Person::default() };
    let callback = person.authorize(gate, &gate.ask(&client, REDIRECT, "")).await;
    let tokens = gate.redeem(&client, REDIRECT, &parameter(&callback, "code")).await;
    assert_eq!(tokens.status, 200, "{}", tokens.body);
    tokens.json()
}

async fn works_end_to_end(site: &mut Site) {
    let (gate, password) = (site.gate(), password(site));
    assert_eq!(gate.mcp(None, "tools/list", json!({})).await.status, 401);
    let tokens = log_in(&gate, password).await;
    assert_eq!(tokens["scope"], "mcp");
    let token = tokens["access_token"].as_str();
    let listed = gate.tools(token).await;
    assert!(listed.iter().any(|name| name.starts_with("every:")), "{listed:?}");
    let ran = gate.call(token, "codecall:execute", json!({"script": "return 6 * 7"})).await;
    assert_eq!((&ran["status"], &ran["result"]), (&json!("ok"), &json!(42)), "{ran}");
}

#[tokio::test]
async fn the_contracts_auth_object_alone_serves_users_from_memory() {
    let config = contract(json!({"type": "memory"}), &signing_key());
    let told = check(&config);
    assert!(told.contains("auth.local.users") && told.contains("`admin`"), "{told}");
    works_end_to_end(&mut Site::start(&config)).await;
    // Not even the key is needed.
    let mut least = config;
    least["auth"] = json!({"mode": "orchestrated", "type": "local", "dcrEnabled": true});
    works_end_to_end(&mut Site::start(&least)).await;
}

struct Redis(Child, u16);

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn redis() -> Redis {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut child = Command::new("redis-server")
        .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--requirepass", STORE_PASSWORD])
        .args(["--port", &port.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server is installed");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("Ready to accept connections")), "redis-server started");
    std::thread::spawn(move || lines.for_each(drop));
    Redis(child, port)
}

#[tokio::test]
async fn the_contracts_auth_object_alone_serves_users_from_redis_at_every_instance() {
    let redis = redis();
    let store = json!({"type": "redis", "config": {
        "host": "127.0.0.1", "port": redis.1, "password": STORE_PASSWORD, "tls": false, "keyPrefix": "acme:"}});
    let config = contract(store, &signing_key());
    check(&config);
    let mut site = Site::start(&config);
    works_end_to_end(&mut site).await;
    let first = password(&mut site);
    let mut other = Site::start(&config);
    assert_eq!(password(&mut other), first, "every instance, and the next start, know the same password");
    works_end_to_end(&mut other).await;
}

#[tokio::test]
async fn the_port_of_redis_is_the_one_that_the_variable_names() {
    let redis = redis();
    let store = json!({"type": "redis", "config": {
        "host": "127.0.0.1", "port": "${REDIS_PORT:-6379}", "password": STORE_PASSWORD, "tls": false, "keyPrefix": "named:"}});
    let config = contract(store, &signing_key());
    let port = redis.1.to_string();
    let mut site = Site::launch("json", &config.to_string(), &[("REDIS_PORT", port.clone())], &[]);
    works_end_to_end(&mut site).await;
    // What it stores is in that Redis, and is gone with it.
    let output = Command::new("redis-cli")
        .args(["-p", &port, "-a", STORE_PASSWORD, "--no-auth-warning", "--scan", "--pattern", "named:*"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).lines().count() > 0, "{output:?}");
}

#[tokio::test]
async fn a_user_who_is_configured_is_the_only_one() {
    let site = Site::start(&crate::gate::config(json!({})));
    assert!(!site.log.text().contains("Sign in as"), "{}", site.log.text());
}
