//! Audit events about passkeys.

use std::{sync::Arc, time::Duration};

use gatewright_auth::{AuthConfig, Deployment, ManualClock, store::MemoryStore};
use serde_json::Value;

use super::{ACCOUNT, act, finish, open, send, without_password};
use crate::support::{
    authenticator::{Authenticator, options},
    site::{ISSUER, Site, ask},
};

/// Keeps audit events as lines of JSON.
#[derive(Default)]
struct Lines(std::sync::Mutex<String>);

impl gatewright_auth::AuditSink for Lines {
    fn record(&self, event: &gatewright_auth::AuditEvent) {
        *self.0.lock().unwrap() += &(serde_json::to_string(event).unwrap() + "\n");
    }
}

#[tokio::test]
async fn what_happens_to_passkeys_is_in_the_audit_and_no_secret_is() {
    let audit = Arc::new(Lines::default());
    let mut config = crate::support::site::config();
    crate::support::site::merge(&mut config, without_password());
    let config: AuthConfig = serde_json::from_value(config).unwrap();
    let clock = Arc::new(ManualClock::from_system());
    let parts = gatewright_auth::ServerParts {
        store: Arc::new(MemoryStore::new(clock.clone())),
        clock: clock.clone(),
        entropy: Arc::new(gatewright_auth::SystemEntropy),
        audit: audit.clone(),
    };
    let mut site = Site::with(without_password()).await;
    let server = gatewright_auth::AuthorizationServer::with_parts(
        config,
        Deployment::new(ISSUER, "/mcp", "Notes"),
        parts,
    );
    site.server = server.await.unwrap();
    site.router = site.server.router();

    let made = site.server.enrol("carol", Duration::from_secs(60)).await.unwrap();
    let link = made.expose_link().to_owned();
    let (browser, mut key) = (site.browser(), Authenticator::new());
    let shown = open(&browser, &link).await;
    let done = finish(&browser, &shown, &mut key).await;
    let mut page = browser.follow(&done).await;
    act(&browser, &page, &[("action", "rename"), ("name", "Renamed")]).await;
    let login = site.browser().get(&ask(&[])).await;
    let again = site.browser();
    let asked = again.get(&ask(&[])).await;
    let signed = key.get(&options(&asked));
    assert_eq!(send(&again, &asked, &signed).await.status, 303);
    page = browser.get(ACCOUNT).await;
    act(&browser, &page, &[("action", "remove"), ("everywhere", "yes")]).await;

    let text = audit.0.lock().unwrap().clone();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    for name in [
        "passkey.invited",
        "passkey.added",
        "passkey.renamed",
        "passkey.login",
        "passkey.removed",
        "passkey.ended_everything",
    ] {
        assert_eq!(told(name), 1, "{name}: {text}");
    }
    let login_event = events.iter().find(|event| event["event"] == "passkey.login").unwrap();
    assert_eq!(login_event["actor"], "user:carol");
    let mut secrets = vec![link.split_once('#').unwrap().1.to_owned()];
    for page in [&shown, &page, &login, &asked] {
        secrets.extend(["csrf", "ceremony"].map(|name| page.field(name)));
    }
    secrets.push(asked.field("pending"));
    for browser in [&browser, &again] {
        secrets.extend(browser.cookies.lock().unwrap().values().cloned());
    }
    let answer: Value = serde_json::from_str(&signed).unwrap();
    secrets.extend(
        ["signature", "authenticatorData", "clientDataJSON"]
            .map(|name| answer[name].as_str().unwrap().to_owned()),
    );
    secrets.retain(|secret| !secret.is_empty());
    assert!(secrets.len() > 12, "{}", secrets.len());
    for secret in secrets {
        assert!(!text.contains(&secret), "{secret} in {text}");
    }
}
