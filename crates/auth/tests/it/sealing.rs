//! A start with other secrets than the store was written with.

use std::{sync::Arc, time::Duration};

use gatewright_auth::{
    AuthConfig, AuthorizationServer, Deployment, ManualClock, ServerParts, SystemEntropy,
    keys::{Algorithm, Jwk},
    store::{MemoryStore, Store},
};
use serde_json::{Value, json};

use crate::support::site::{Heard, ISSUER, Site, config, merge};

fn shared() -> (Arc<ManualClock>, Arc<dyn Store>) {
    let clock = Arc::new(ManualClock::from_system());
    let store = Arc::new(MemoryStore::new(clock.clone()));
    (clock, store)
}

async fn start(
    over: Value,
    clock: &Arc<ManualClock>,
    store: &Arc<dyn Store>,
) -> Result<AuthorizationServer, String> {
    let mut value = config();
    merge(&mut value, over);
    let config: AuthConfig = serde_json::from_value(value).unwrap();
    let parts = ServerParts {
        store: store.clone(),
        clock: clock.clone(),
        entropy: Arc::new(SystemEntropy),
        audit: Arc::new(Heard::default()),
    };
    let deployment = Deployment::new(ISSUER, "/mcp", "Notes");
    AuthorizationServer::with_parts(config, deployment, parts).await.map_err(|error| error.to_string())
}

fn with_key(key: &Jwk) -> Value {
    json!({"local": {"signKey": key}})
}

#[tokio::test]
async fn j07_without_the_signing_key_it_was_written_with_a_store_is_used_with_new_keys() {
    let (clock, store) = shared();
    let key = Jwk::generate(Algorithm::ES256).unwrap();
    let before = Site::on(with_key(&key), clock.clone(), store.clone()).await;
    let tokens = before.tokens().await;
    let (access, refresh) =
        (tokens["access_token"].as_str().unwrap(), tokens["refresh_token"].as_str().unwrap());

    let after = Site::on(json!({}), clock.clone(), store.clone()).await;
    assert_eq!(after.introspect(access).await["active"], false, "nothing verifies the old tokens any more");
    let renewed = after.refresh(refresh, &[]).await;
    assert_eq!(renewed.status, 200, "what was granted lives on: {}", renewed.text);
    let renewed = renewed.json()["access_token"].as_str().unwrap().to_owned();
    assert_eq!(after.introspect(&renewed).await["active"], true);

    // An instance that still runs with the old configuration does not take the keys of the new ones away.
    clock.advance(Duration::from_secs(31));
    before.tokens().await;
    let third = Site::on(json!({}), clock.clone(), store.clone()).await;
    assert_eq!(third.introspect(&renewed).await["active"], true, "all new instances share their keys");
}

#[tokio::test]
async fn j07_a_signing_key_that_comes_back_signs_again() {
    let (clock, store) = shared();
    let key = Jwk::generate(Algorithm::ES256).unwrap();
    Site::on(with_key(&key), clock.clone(), store.clone()).await.tokens().await;
    Site::on(json!({}), clock.clone(), store.clone()).await.tokens().await;
    let back = Site::on(with_key(&key), clock, store).await;
    let tokens = back.tokens().await;
    assert_eq!(back.introspect(tokens["access_token"].as_str().unwrap()).await["active"], true);
}

#[tokio::test]
async fn a_store_written_with_an_encryption_key_is_not_given_up_for_want_of_it() {
    let (clock, store) = shared();
    let secret = "0123456789abcdef0123456789abcdef";
    let written = json!({"encryptionKey": secret});
    let site = Site::on(written.clone(), clock.clone(), store.clone()).await;
    let tokens = site.tokens().await;
    for other in [json!({}), json!({"encryptionKey": "another-key-of-the-same-size-00"})] {
        let refused = start(other, &clock, &store).await.unwrap_err();
        assert!(refused.contains("`auth.encryptionKey`") && refused.contains("`keys`"), "{refused}");
        assert!(!refused.contains(secret));
    }
    let again = Site::on(written, clock, store).await;
    assert_eq!(
        again.introspect(tokens["access_token"].as_str().unwrap()).await["active"],
        true,
        "the refused starts changed nothing"
    );
}
