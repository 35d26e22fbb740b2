//! Health, readiness and the page at `/`.

use std::sync::Arc;

use gatewright_core::{AppOptions, LocalApp};
use gatewright_server::clients::Client;
use serde_json::{Value, json};

use crate::support::{Believing, Rig, Tools, start, start_with};

async fn get_at(rig: &Rig, path: &str, host: &str) -> (u16, Value) {
    let response = rig.http.get(format!("{}{path}", rig.base)).header("host", host).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn get(rig: &Rig, path: &str) -> (u16, Value) {
    get_at(rig, path, "10.1.2.3:80").await
}

#[tokio::test]
async fn a_server_whose_apps_are_up_is_ready_whatever_the_probe_calls_it() {
    let rig = start(json!({})).await;
    assert_eq!(get(&rig, "/healthz").await, (200, json!({"status": "ok"})));
    assert_eq!(get(&rig, "/readyz").await, (200, json!({"status": "ready"})));
}

#[tokio::test]
async fn apps_are_told_only_to_requests_that_name_an_allowed_host() {
    let rig = start_with(json!({}), |builder| builder.ready_detail("more", || json!("details"))).await;
    let told = json!({"status": "ready", "down": [], "apps": {"app": {"status": "up", "tools": 4}}, "more": "details"});
    assert_eq!(get_at(&rig, "/readyz", "localhost").await, (200, told));
    for other in ["evil.example", "10.1.2.3", "localhost.evil.example"] {
        assert_eq!(get_at(&rig, "/readyz", other).await, (200, json!({"status": "ready"})), "{other}");
    }
}

#[tokio::test]
async fn an_app_that_is_down_degrades_the_server_and_is_named() {
    let rig = start(json!({})).await;
    let app = Arc::new(LocalApp::start(Tools::default()).await.unwrap());
    rig.gateway.registry().add("broken", app.clone(), AppOptions::default());
    gatewright_core::App::shutdown(&*app).await;
    assert_eq!(get(&rig, "/readyz").await, (200, json!({"status": "degraded"})));
    let (status, body) = get_at(&rig, "/readyz", "localhost").await;
    assert_eq!((status, &body["status"], &body["down"]), (200, &json!("degraded"), &json!(["broken"])));
    assert_eq!(body["apps"]["app"]["status"], "up");
}

async fn page(rig: &Rig) -> (http::HeaderMap, String) {
    let response = rig.http.get(format!("{}/", rig.base)).send().await.unwrap();
    assert_eq!(response.status(), 200);
    (response.headers().clone(), response.text().await.unwrap())
}

#[tokio::test]
async fn the_page_shows_apps_tools_and_instructions_for_every_client_and_allows_nothing_from_elsewhere() {
    let rig = start(json!({})).await;
    let (headers, html) = page(&rig).await;
    let policy = headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("'self'"), "{policy}");
    assert_eq!(html.matches("<script").count(), 1, "{html}");
    assert!(!html.contains("style=") && !html.contains("onclick"), "{html}");
    for client in Client::ALL {
        let text = client.instruction("test-gateway", &rig.url).text;
        let escaped =
            text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
        assert!(html.contains(client.facts().title) && html.contains(&escaped), "{escaped}: {html}");
    }
    for address in ["http://", "https://"] {
        let script = html.split("<script>").nth(1).unwrap();
        assert!(!script.contains(address), "{script}");
    }
    let html = html.replace("<wbr>", "");
    for expected in ["test-gateway", "1.2.3", "app:echo", "4 tools", &rig.url] {
        assert!(html.contains(expected), "{expected}: {html}");
    }
    assert!(html.contains(&format!("claude mcp add --transport http test-gateway {}", rig.url)), "{html}");
}

#[tokio::test]
async fn the_page_keeps_the_apps_to_itself_when_callers_must_say_who_they_are() {
    let rig = start_with(json!({}), |builder| builder.authenticator(Arc::new(Believing))).await;
    let html = page(&rig).await.1.replace("<wbr>", "");
    assert!(html.contains("test-gateway") && html.contains("Bearer $TOKEN"), "{html}");
    for private in ["app:echo", "1.2.3", "tools</span>"] {
        assert!(!html.contains(private), "{private}: {html}");
    }
}

#[tokio::test]
async fn there_is_no_page_when_it_is_off() {
    let rig = start(json!({"landing": false})).await;
    assert_eq!(rig.http.get(format!("{}/", rig.base)).send().await.unwrap().status(), 404);
}
