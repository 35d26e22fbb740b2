//! The script on the pages with a passkey button, and the configurations that passkeys work with.

use std::time::Duration;

use gatewright_auth::{AuthConfig, Deployment};
use serde_json::{Value, json};

use super::{ACCOUNT, account, open, site};
use crate::support::site::{Site, ask};

#[tokio::test]
async fn pages_run_the_one_script_named_by_its_hash_and_none_where_passkeys_are_off() {
    let site = site().await;
    let browser = site.browser();
    let login = browser.get(&ask(&[])).await;
    let made = site.server.enrol("alice", Duration::from_secs(60)).await.unwrap();
    let (link, code) = (browser.get("/oauth/enrol").await, open(&browser, made.expose_link()).await);
    for page in [login, account(&browser, "alice").await, link, code] {
        let script = page.text.split("<script>").nth(1).unwrap().split("</script>").next().unwrap();
        let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, script.as_bytes());
        let hash = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, hash);
        let policy = page.header("content-security-policy");
        assert!(
            policy
                .starts_with(&format!("default-src 'none'; script-src 'sha256-{hash}'; style-src 'sha256-"))
        );
        assert!(!policy.contains("unsafe") && !policy.contains("script-src 'self'"), "{policy}");
        assert_eq!(page.text.matches("<script").count(), 1);
        assert!(!page.text.contains("onclick") && !page.text.contains("src="));
        assert_eq!(
            (page.header("cache-control"), page.header("referrer-policy")),
            ("no-store", "no-referrer")
        );
    }
    let consent = browser.get(&ask(&[])).await;
    assert!(consent.text.contains("name=\"decision\"") && consent.text.contains("/oauth/account"));
    assert!(!consent.text.contains("<script"), "no button, no script");
    let off = Site::new().await;
    let page = off.get(&ask(&[])).await;
    assert!(!page.text.contains("<script"));
    assert!(!page.header("content-security-policy").contains("script-src"));
    assert_eq!(off.get("/oauth/enrol").await.status, 404);
    let browser = off.browser();
    account(&off.browser(), "alice").await;
    let page = account(&browser, "alice").await;
    assert!(!page.text.contains("asskey") && !page.text.contains("<script"), "{}", page.text);
    let added = browser.post(ACCOUNT, &[("action", "add"), ("csrf", &page.field("csrf"))]).await;
    assert_eq!(added.status, 404);
}

#[test]
fn what_passkeys_cannot_work_with_is_told_when_the_configuration_is_read() {
    let problems = |url: &str, over: Value| -> Vec<String> {
        let mut value = json!({"mode": "orchestrated", "local": {"passkeys": {"enabled": true}}});
        crate::support::site::merge(&mut value, over);
        let config: AuthConfig = serde_json::from_value(value).unwrap();
        let found = config.validate(&Deployment::new(url, "/mcp", "N"));
        found.iter().map(ToString::to_string).collect()
    };
    for url in ["https://mcp.example", "http://localhost:3000", "https://mcp.example/below"] {
        assert_eq!(problems(url, json!({})), [""; 0], "{url}");
    }
    for url in ["http://127.0.0.1:3000", "http://[::1]:3000", "https://192.0.2.1"] {
        let told = problems(url, json!({}));
        assert!(told.len() == 1 && told[0].contains("http://localhost with the port"), "{told:?}");
    }
    for (over, word) in [
        (json!({"local": {"login": "demo"}}), "`local.login` must be `password`"),
        (json!({"sessionMode": "stateless"}), "sessionMode: stateful"),
        (json!({"local": {"passkeys": {"mostPerUser": 0}}}), "must be 1 to 100"),
        (
            json!({"type": "remote", "provider": {"url": "https://idp.example", "clientId": "x"}}),
            "type: local",
        ),
    ] {
        let told = problems("http://localhost:1", over);
        assert!(told.len() == 1 && told[0].contains(word), "{told:?}");
    }
    let without = json!({"local": {"passkeys": {"enabled": false}, "users": [{"username": "carol"}]}});
    let told = problems("https://mcp.example", without);
    assert!(told.len() == 1 && told[0].contains("gatewright user enrol"), "{told:?}");
}
