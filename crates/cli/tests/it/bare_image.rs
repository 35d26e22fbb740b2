//! The binary where the system has no CA certificates, as in many small images.

use std::process::Command;

use serde_json::{Value, json};

use crate::{served::Served, support::gatewright};

/// The binary, as in an image without the package `ca-certificates`.
fn bare() -> Command {
    let mut command = Command::new(gatewright());
    command.env("SSL_CERT_FILE", "/nonexistent").env("SSL_CERT_DIR", "/nonexistent");
    command
}

async fn ready(server: &Served) -> Value {
    let url = format!("http://{}/readyz", server.address);
    reqwest::get(url).await.unwrap().json().await.unwrap()
}

#[tokio::test]
async fn what_asks_no_https_host_works_without_ca_certificates() {
    let inner = Served::start("codecall: { enabled: false }\napps: { crm: { builtin: crm } }\n", &[]);
    let config = json!({
        "apps": {"inner": {"url": format!("http://{}/mcp", inner.address)}},
        "auth": {
            "mode": "orchestrated",
            "type": "local",
            "tokenStorage": {"type": "memory"},
            "local": {"login": "demo"},
            "cimd": {"enabled": true},
        },
        "http": {"publicUrl": "http://127.0.0.1:3000"},
        "telemetry": {"otlp": {"endpoint": "http://127.0.0.1:4318"}},
    });
    let server = Served::by(bare(), &config.to_string(), &[]);
    let state = ready(&server).await;
    assert_eq!(state["apps"]["inner"]["status"], "up", "{state}");
    let health = bare().args(["health", "--url", &format!("http://{}", server.address)]).output().unwrap();
    assert!(health.status.success(), "{health:?}");
}

#[tokio::test]
async fn an_https_app_without_ca_certificates_is_down_and_says_what_to_install() {
    let config = "apps: { away: { url: 'https://127.0.0.1:1/mcp' } }\nadmin: { port: 0 }\n";
    let server = Served::by(bare(), config, &[]);
    let line = server.says("for operators on http://");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
    let page = reqwest::get(format!("http://{address}/")).await.unwrap().text().await.unwrap();
    assert!(page.contains("install <code>ca-certificates</code>"), "{page}");
}
