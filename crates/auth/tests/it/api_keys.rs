//! Static API keys: configured and stored ones, their ends, ceilings and names, and floods of unknown ones.

use std::{sync::Arc, time::Duration};

use futures::FutureExt as _;
use gatewright_auth::{
    ApiKeyError, AuthConfig, Clock as _, Deployment, ManualClock, ResourceServer, RevokedApiKey,
    SystemEntropy, Transparent,
    config::{ApiKeyConfig, ApiKeyHash, Expiry},
    store::{MemoryStore, Store},
};
use gatewright_core::{AuthRefusal, Authenticator as _, CallerAddress, Principal, Scopes};
use http::{Request, request::Parts};
use secrecy::ExposeSecret as _;
use serde_json::json;

use crate::support::{scopes_now, site::Site};

const DAY: Duration = Duration::from_secs(86_400);

fn parts(headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::post("/mcp");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

async fn check(guard: &ResourceServer, key: &str) -> Result<Principal, AuthRefusal> {
    guard.authenticate(&parts(&[("authorization", &format!("Bearer {key}"))])).await
}

async fn status(guard: &ResourceServer, key: &str) -> u16 {
    check(guard, key).await.map_or_else(|refused| refused.status().as_u16(), |_| 200)
}

/// A key, and its entry in the configuration.
fn configured(name: &str, scopes: &[&str], expires: Option<u64>) -> (String, ApiKeyConfig) {
    let new = gatewright_auth::NewApiKey::generate(name, expires, &SystemEntropy).unwrap();
    let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    let entry = ApiKeyConfig {
        name: name.into(),
        hash: new.hash,
        scopes,
        endpoints: Vec::new(),
        expires: expires.map(Expiry),
    };
    (new.key.expose_secret().to_owned(), entry)
}

fn entry(key: &ApiKeyConfig) -> serde_json::Value {
    json!({"name": key.name, "hash": key.hash.to_string(), "scopes": key.scopes})
}

fn names(scopes: &[&str]) -> Vec<String> {
    scopes.iter().map(|scope| (*scope).to_owned()).collect()
}

async fn stored(site: &Site, name: &str, life: Option<Duration>) -> String {
    let new = site.server.create_api_key(name, &names(&["read"]), &[], life).await.unwrap();
    new.key.expose_secret().to_owned()
}

#[tokio::test]
async fn a_configured_key_and_a_stored_one_name_their_caller_and_grant_their_scopes() {
    let (key, ci) = configured("ci", &["read"], None);
    let site = Site::with(json!({"apiKeys": [entry(&ci)]})).await;
    let guard = site.resource_server();
    let made = stored(&site, "nightly.build-2", Some(DAY)).await;
    assert!(made.starts_with("gwk_") && made.len() == 47 && made != key, "32 random bytes");
    for (key, name) in [(&key, "key:ci"), (&made, "key:nightly.build-2")] {
        let principal = check(&guard, key).await.unwrap();
        assert_eq!((&*principal.subject, principal.client_id.as_deref()), (name, Some(name)));
        assert_eq!(principal.scopes, Scopes::parse("read"));
        // Again, from the cache.
        assert_eq!(check(&guard, key).await.unwrap(), principal);
    }
}

#[tokio::test]
async fn a_key_may_come_in_its_own_header_but_not_beside_a_token_and_not_as_dpop() {
    let (key, ci) = configured("ci", &["read"], None);
    let guard = Site::with(json!({"apiKeys": [entry(&ci)]})).await.resource_server();
    let bearer = format!("Bearer {key}");
    let answer = async |headers: &[(&str, &str)]| {
        guard.authenticate(&parts(headers)).await.map_or_else(|refused| refused.status().as_u16(), |_| 200)
    };
    assert_eq!(answer(&[("x-api-key", &key)]).await, 200);
    assert_eq!(answer(&[("x-api-key", "of-a-proxy"), ("authorization", &bearer)]).await, 200);
    assert_eq!(answer(&[("x-api-key", "of-a-proxy")]).await, 401, "nobody");
    assert_eq!(answer(&[("x-api-key", &key), ("authorization", &bearer)]).await, 401, "two credentials");
    assert_eq!(answer(&[("x-api-key", &key), ("x-api-key", &key)]).await, 401, "two keys");
    assert_eq!(answer(&[("authorization", &format!("DPoP {key}"))]).await, 401);
}

#[tokio::test]
async fn keys_end_at_their_time_without_the_grace_of_clocks() {
    let clock = Arc::new(ManualClock::from_system());
    let (key, mut ci) = configured("ci", &["read"], Some(clock.now_s() + 60));
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let site = Site::on(json!({}), clock.clone(), store).await;
    let guard = site.resource_server();
    guard.replace_api_keys(std::slice::from_ref(&ci));
    let made = stored(&site, "nightly", Some(Duration::from_secs(60))).await;
    let forever = stored(&site, "always", None).await;
    for key in [&key, &made, &forever] {
        assert_eq!(status(&guard, key).await, 200);
    }
    clock.advance(Duration::from_secs(61));
    for key in [&key, &made] {
        assert_eq!(status(&guard, key).await, 401);
    }
    assert_eq!(status(&guard, &forever).await, 200);
    ci.expires = None;
    guard.replace_api_keys(&[ci]);
    assert_eq!(status(&guard, &key).await, 200, "the configuration gives it more time");
    // What has ended makes room for another key of its name.
    assert_ne!(stored(&site, "nightly", None).await, made);
}

#[tokio::test]
async fn a_revoked_key_is_refused_at_once_at_every_instance_and_its_streams_end() {
    // The clock stands still: only what is announced can have done it.
    let clock = Arc::new(ManualClock::from_system());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
    let here = Site::on(json!({}), clock.clone(), store.clone()).await;
    let there = Site::on(json!({}), clock.clone(), store).await;
    let guard = there.resource_server();
    let (key, other) = (stored(&here, "ci", None).await, stored(&here, "other", None).await);
    assert_eq!((status(&guard, &key).await, status(&guard, &other).await), (200, 200));
    let ended = guard.until_ended(&parts(&[("x-api-key", &key)]));
    assert_eq!(here.server.revoke_api_key("ci").await.unwrap(), RevokedApiKey::Revoked);
    assert_eq!((status(&guard, &key).await, status(&guard, &other).await), (401, 200));
    tokio::time::timeout(Duration::from_secs(60), ended).await.expect("the stream ends");
    assert_eq!(here.server.revoke_api_key("ci").await.unwrap(), RevokedApiKey::Unknown);
    assert_eq!((here.events("api_key.created"), here.events("api_key.revoked")), (2, 1));
    let heard = here.heard.0.lock().unwrap();
    let last = heard.last().unwrap();
    assert_eq!((last.actor.as_deref(), last.client.as_deref()), (Some("key:ci"), Some("key:ci")));
    assert!(!format!("{heard:?}").contains(&key));
}

#[tokio::test]
async fn a_key_whose_scopes_change_goes_on_and_its_streams_end() {
    let (key, ci) = configured("ci", &["read", "write"], None);
    let site = Site::with(json!({"apiKeys": [entry(&ci)]})).await;
    let guard = site.resource_server();
    let mut ended = guard.until_ended(&parts(&[("x-api-key", &key)]));
    assert!((&mut ended).now_or_never().is_none());
    guard.replace_api_keys(&[ApiKeyConfig { scopes: names(&["read"]), ..ci }]);
    assert_eq!(status(&guard, &key).await, 200);
    tokio::time::timeout(Duration::from_secs(60), ended).await.expect("the stream ends");
}

#[tokio::test]
async fn a_key_that_leaves_the_configuration_is_refused_and_its_streams_end() {
    let (key, ci) = configured("ci", &["read"], None);
    let site = Site::with(json!({"apiKeys": [entry(&ci)]})).await;
    let guard = site.resource_server();
    let ended = guard.until_ended(&parts(&[("authorization", &format!("Bearer {key}"))]));
    assert_eq!(status(&guard, &key).await, 200);
    assert_eq!(site.server.revoke_api_key("ci").await.unwrap(), RevokedApiKey::Configured);
    guard.replace_api_keys(&[]);
    assert_eq!(status(&guard, &key).await, 401);
    tokio::time::timeout(Duration::from_secs(60), ended).await.expect("the stream ends");
}

#[tokio::test]
async fn scopes_of_a_key_are_bounded_again_at_each_use() {
    let clock = Arc::new(ManualClock::from_system());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
    let before = Site::on(json!({}), clock.clone(), store.clone()).await;
    let made = before.server.create_api_key("ci", &names(&["read", "write"]), &[], None).await.unwrap();
    let key = made.key.expose_secret();
    let after = Site::on(json!({"scopes": {"write": null}}), clock, store).await;
    for (site, scopes) in [(&before, "read write"), (&after, "read")] {
        let principal = check(&site.resource_server(), key).await.unwrap();
        assert_eq!(principal.scopes, Scopes::parse(scopes));
    }
    for refused in ["write", "openid", "offline_access"] {
        let made = after.server.create_api_key("other", &names(&["read", refused]), &[], None).await;
        assert!(matches!(made, Err(ApiKeyError::Scope { scope, .. }) if scope == refused));
    }
}

#[tokio::test]
async fn names_are_checked_and_no_two_keys_have_one() {
    let (_, ci) = configured("ci", &["read"], None);
    let site = Site::with(json!({"apiKeys": [entry(&ci)]})).await;
    stored(&site, "nightly", None).await;
    for taken in ["ci", "nightly"] {
        let again = site.server.create_api_key(taken, &[], &[], None).await;
        assert!(matches!(again, Err(ApiKeyError::Taken(name)) if name == taken));
    }
    for bad in ["", "a b", "a:b", &"n".repeat(65), "näh"] {
        let made = site.server.create_api_key(bad, &[], &[], None).await;
        assert!(matches!(made, Err(ApiKeyError::Name(_))), "{bad}");
    }
    let all = site.server.api_keys(10).await.unwrap();
    let listed: Vec<_> = all.iter().map(|key| (key.name.as_str(), key.origin)).collect();
    assert_eq!(listed, [("ci", "configured"), ("nightly", "stored")]);
}

#[tokio::test]
async fn a_network_that_sends_unknown_keys_is_stopped_before_the_store_and_others_are_not() {
    let site = Site::with(json!({"limits": {"unknownKeys": 3}})).await;
    let guard = site.resource_server();
    let known = stored(&site, "ci", None).await;
    let from = async |ip: &str, key: &str| {
        let mut parts = parts(&[("authorization", &format!("Bearer {key}"))]);
        parts.extensions.insert(CallerAddress(ip.parse().unwrap()));
        guard.authenticate(&parts).await
    };
    let code =
        |answer: Result<Principal, AuthRefusal>| answer.map_or_else(|no| no.status().as_u16(), |_| 200);
    assert_eq!(code(from("192.0.2.1", &known).await), 200);
    for n in 0..6 {
        let answer = from("192.0.2.1", &format!("gwk_{n:0>43}")).await;
        assert_eq!(code(answer), if n < 3 { 401 } else { 429 }, "key {n}");
    }
    let refused = from("192.0.2.1", "gwk_x").await.unwrap_err();
    assert_eq!(refused.headers()["retry-after"], "60");
    assert!(refused.headers().get("www-authenticate").is_none());
    assert_eq!(code(from("192.0.2.1", &known).await), 200, "who was known goes on");
    assert_eq!(code(from("198.51.100.1", "gwk_y").await), 401, "another network has its own count");
    site.clock.advance(Duration::from_secs(61));
    assert_eq!(code(from("192.0.2.1", "gwk_z").await), 401);
    assert!(site.server.metrics().prometheus().contains("gatewright_auth_failures_total 9"));
}

#[tokio::test]
async fn no_client_and_no_token_of_a_provider_can_have_the_name_of_a_key() {
    let deployment = Deployment::new("https://mcp.example", "/mcp", "Notes");
    let config: AuthConfig = serde_json::from_value(json!({
        "mode": "orchestrated", "clients": [{"clientId": "key:ci", "redirectUris": ["https://c.example/cb"]}],
    }))
    .unwrap();
    let problems = config.validate(&deployment);
    assert_eq!(problems[0].path, "auth.clients[0].clientId");
}

#[tokio::test]
async fn an_external_provider_has_configured_keys_beside_its_tokens() {
    let (key, ci) = configured("ci", &["crm:*"], None);
    let config: AuthConfig = serde_json::from_value(json!({
        "mode": "transparent", "expectedAudience": "x", "provider": {"url": "https://idp.example", "jwks": {"keys": []}},
        "apiKeys": [entry(&ci)],
    }))
    .unwrap();
    let deployment = Deployment::new("https://mcp.example", "/mcp", "Notes");
    let clock = Arc::new(ManualClock::from_system());
    let guard = ResourceServer::transparent(Transparent::new(config, &deployment, clock).unwrap());
    assert_eq!(check(&guard, &key).await.unwrap().scopes, Scopes::parse("crm:*"));
    assert_eq!(status(&guard, "gwk_unknown").await, 401);
}

#[test]
fn a_configuration_of_keys_is_checked() {
    let deployment = Deployment::new("https://mcp.example", "/mcp", "Notes");
    let hash = format!("sha256:{}", "0a".repeat(32));
    let good = json!({"name": "ci", "hash": hash, "scopes": ["read"], "expires": "2099-01-31"});
    let read = |keys: serde_json::Value, mode: &str| {
        let config = json!({"mode": mode, "scopes": {"read": "Read"}, "apiKeys": keys});
        serde_json::from_value::<AuthConfig>(config)
    };
    let config = read(json!([good]), "orchestrated").unwrap();
    assert_eq!(config.validate(&deployment), []);
    assert_eq!(config.api_keys[0].expires, Some(Expiry(4_073_500_800)));
    let other = format!("sha256:{}", "0b".repeat(32));
    for (change, mode, path) in [
        (json!({"name": ""}), "orchestrated", "auth.apiKeys[1].name"),
        (json!({"name": "ci"}), "orchestrated", "auth.apiKeys[1].name"),
        (json!({"hash": hash}), "orchestrated", "auth.apiKeys[1].hash"),
        (json!({"scopes": ["reed"]}), "orchestrated", "auth.apiKeys[1].scopes[0]"),
        (json!({"scopes": ["openid"]}), "orchestrated", "auth.apiKeys[1].scopes[0]"),
        (json!({}), "public", "auth.apiKeys"),
    ] {
        let mut key = json!({"name": "other", "hash": other, "scopes": []});
        crate::support::site::merge(&mut key, change.clone());
        let problems = read(json!([good, key]), mode).unwrap().validate(&deployment);
        assert!(problems.iter().any(|problem| problem.path == path), "{change}: {problems:?}");
    }
    for bad in [
        json!({"name": "ci", "scopes": [], "hash": "gwk_0123"}),
        json!({"name": "ci", "scopes": [], "hash": "sha256:0a"}),
        json!({"name": "ci", "hash": hash}),
        json!({"name": "ci", "scopes": [], "hash": hash, "expires": "soon"}),
        json!({"name": "ci", "scopes": [], "hash": hash, "key": "gwk_x"}),
    ] {
        assert!(read(json!([bad]), "orchestrated").is_err(), "{bad}");
    }
    assert!(ApiKeyHash::try_from(hash.to_uppercase()).is_err(), "only the digits may be in upper case");
}

#[tokio::test]
async fn work_without_a_request_goes_on_with_what_its_key_grants_until_that_is_revoked() {
    let clock = Arc::new(ManualClock::from_system());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
    let site = Site::on(json!({}), clock.clone(), store).await;
    let guard = site.resource_server();
    let since = || std::time::UNIX_EPOCH + Duration::from_secs(clock.now_s());

    let of_store = check(&guard, &stored(&site, "nightly", None).await).await.unwrap();
    let (key, ci) = configured("ci", &["read"], None);
    guard.replace_api_keys(&[ci]);
    let of_configuration = check(&guard, &key).await.unwrap();
    for caller in [&of_store, &of_configuration] {
        assert_eq!(scopes_now(&guard, caller, since()).await, Ok(Some(caller.scopes.clone())), "{caller:?}");
        let elsewhere = caller.clone().at(Some("team".into()));
        assert_eq!(
            scopes_now(&guard, &elsewhere, since()).await,
            Ok(None),
            "the key is for another endpoint"
        );
    }

    let began = since();
    site.server.revoke_api_key("nightly").await.unwrap();
    guard.replace_api_keys(&[]);
    for caller in [&of_store, &of_configuration] {
        assert_eq!(scopes_now(&guard, caller, began).await, Ok(None), "{caller:?}");
    }
    clock.advance(Duration::from_secs(1));
    stored(&site, "nightly", None).await;
    assert_eq!(scopes_now(&guard, &of_store, began).await, Ok(None), "another key has the name");
}

#[tokio::test]
async fn keys_of_one_name_are_different_credentials() {
    let clock = Arc::new(ManualClock::from_system());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
    let site = Site::on(json!({}), clock, store).await;
    let guard = site.resource_server();
    let credential = async |key: &str| {
        let caller = check(&guard, key).await.unwrap();
        guard.credential(&caller).await.unwrap()
    };
    let first = credential(&stored(&site, "nightly", None).await).await;
    assert!(first.is_some());
    site.server.revoke_api_key("nightly").await.unwrap();
    let second = credential(&stored(&site, "nightly", None).await).await;
    assert!(second.is_some() && second != first);
    let mut known = Vec::new();
    for _ in 0..2 {
        let (key, ci) = configured("ci", &["read"], None);
        guard.replace_api_keys(&[ci]);
        known.push(credential(&key).await.unwrap());
    }
    assert_ne!(known[0], known[1]);
    let ada = Principal { subject: "ada".into(), ..Principal::local() };
    assert_eq!(guard.credential(&ada).await, Ok(None));
}
