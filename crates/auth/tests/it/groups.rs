//! Groups of callers: of the configuration, and of claims of external providers.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use gatewright_auth::{
    Clock as _, ManualClock, ResourceServer,
    store::{MemoryStore, Store},
};
use gatewright_core::{Authenticator as _, Groups, Principal};
use http::{Request, request::Parts};
use serde_json::{Value, json};

use crate::support::{
    idp::{AUDIENCE, Idp, back, begin, identity, remote},
    log::Log,
    site::{Site, password_hash},
    web::Reply,
};

fn parts(token: &str) -> Parts {
    let request = Request::post("/mcp").header("authorization", format!("Bearer {token}"));
    request.body(()).unwrap().into_parts().0
}

async fn caller(guard: &ResourceServer, token: &str) -> Principal {
    guard.authenticate(&parts(token)).await.unwrap()
}

fn names(principal: &Principal) -> Vec<&str> {
    principal.groups.names().collect()
}

#[tokio::test]
async fn groups_are_read_from_the_claim_that_the_configuration_names() {
    let idp = Idp::start().await;
    let claims = json!({"groups": ["ops", "/team a", "ops"], "https://idp.example/roles": ["boss"]});
    let token = idp.token(&idp.key, claims);
    let by_default = idp.guard(json!({}));
    assert_eq!(names(&caller(&by_default, &token).await), ["/team a", "ops"]);
    let named = idp.guard(json!({"provider": {"groupsClaim": "https://idp.example/roles"}}));
    assert_eq!(names(&caller(&named, &token).await), ["boss"]);
    for without in [json!({}), json!({"groups": null}), json!({"groups": []})] {
        assert!(caller(&by_default, &idp.token(&idp.key, without)).await.groups.is_empty());
    }
}

#[tokio::test]
async fn groups_of_an_introspected_token_are_read_too_and_stay_for_work_without_a_request() {
    let idp = Idp::start().await;
    let uri = idp.web.url("/introspect");
    let guard =
        idp.guard(json!({"provider": {"introspectionUri": uri, "clientId": "rs", "clientSecret": "s"}}));
    let answer = json!({"active": true, "sub": "u2", "aud": AUDIENCE, "groups": ["ops"]});
    idp.web.on("/introspect", Reply::json(answer));
    let who = caller(&guard, "opaque").await;
    assert_eq!(names(&who), ["ops"]);
    assert_eq!(guard.principal_now(&who, UNIX_EPOCH, None).await, Ok(Some(who.clone())));
}

#[tokio::test]
async fn a_claim_that_is_no_bounded_list_of_strings_is_ignored_and_logged_once() {
    let idp = Idp::start().await;
    let guard = idp.guard(json!({}));
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let many: Vec<String> = (0..=Groups::MOST).map(|n| n.to_string()).collect();
    for groups in [
        json!("ops"),
        json!(7),
        json!({"ops": true}),
        json!(["ops", 7]),
        json!(["ops", null]),
        json!(["ops", ["dev"]]),
        json!(["ops", ""]),
        json!(["ops", "x".repeat(Groups::LONGEST + 1)]),
        json!(many),
    ] {
        let who = caller(&guard, &idp.token(&idp.key, json!({"groups": groups}))).await;
        assert!(who.groups.is_empty(), "{groups}");
    }
    let text = log.text();
    assert_eq!(text.matches("groups of users are ignored").count(), 1, "{text}");
    assert!(!text.contains("ops"), "{text}");
    let most: Vec<String> = (0..Groups::MOST).map(|n| n.to_string()).collect();
    let who = caller(&guard, &idp.token(&idp.key, json!({"groups": most}))).await;
    assert_eq!(who.groups.names().count(), Groups::MOST);
}

fn alice(groups: Value) -> Value {
    json!({"local": {"users": [{"username": "alice", "passwordHash": password_hash(), "groups": groups}]}})
}

#[tokio::test]
async fn groups_of_configured_users_are_those_of_the_configuration_at_each_request() {
    let clock = Arc::new(ManualClock::from_system());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
    let before = Site::on(alice(json!(["ops", "dev"])), clock.clone(), store.clone()).await;
    let tokens = before.tokens().await;
    let token = tokens["access_token"].as_str().unwrap();
    let who = caller(&before.resource_server(), token).await;
    assert_eq!(names(&who), ["dev", "ops"]);
    let since = UNIX_EPOCH + Duration::from_secs(clock.now_s());
    for (groups, left) in [(json!(["dev"]), vec!["dev"]), (json!([]), vec![])] {
        let after = Site::on(alice(groups), clock.clone(), store.clone()).await.resource_server();
        assert_eq!(names(&caller(&after, token).await), left, "the token is the same");
        let now = after.principal_now(&who, since, None).await.unwrap().unwrap();
        assert_eq!(now, Principal { groups: now.groups.clone(), ..who.clone() });
        assert_eq!(names(&now), left, "work without a request");
    }
}

#[tokio::test]
async fn callers_without_a_user_are_in_no_group() {
    let over = json!({"allowDefaultPublic": true, "anonymousScopes": ["read"]});
    let site = Site::with(over).await;
    let anonymous = Request::post("/mcp").body(()).unwrap().into_parts().0;
    assert!(site.resource_server().authenticate(&anonymous).await.unwrap().groups.is_empty());
    let key = site.server.create_api_key("ci", &["read".to_owned()], &[], None).await.unwrap();
    let key = secrecy::ExposeSecret::expose_secret(&key.key).to_owned();
    assert!(caller(&site.resource_server(), &key).await.groups.is_empty());
}

/// Answers the provider's token endpoint with an ID token that names these groups.
fn names_groups(idp: &Idp, asked: &BTreeMap<String, String>, groups: Value) {
    let id_token = identity(idp, &idp.key, asked, json!({"groups": groups}));
    let body = json!({"access_token": "a", "refresh_token": "r", "expires_in": 300, "id_token": id_token});
    idp.web.on("/token", Reply::json(body));
}

#[tokio::test]
async fn groups_of_a_remote_login_are_those_of_the_last_id_token() {
    let idp = Idp::start().await;
    let site = remote(&idp).await;
    let guard = site.resource_server();
    let browser = site.browser();
    let asked = begin(&browser).await;
    names_groups(&idp, &asked, json!(["ops", "dev"]));
    let next = browser.get(&back(&idp, &asked["state"])).await;
    let page = browser.follow(&next).await;
    let code = browser.decide(&page, &["read"], "allow").await.location()["code"].clone();
    let mut ours = site.redeem(&code).await.json();
    let token = |ours: &Value, name: &str| ours[name].as_str().unwrap_or_else(|| panic!("{ours}")).to_owned();
    let who = caller(&guard, &token(&ours, "access_token")).await;
    assert_eq!(names(&who), ["dev", "ops"]);
    let since = UNIX_EPOCH + Duration::from_secs(idp.clock.now_s());
    assert_eq!(
        guard.principal_now(&who, since, None).await,
        Ok(Some(who)),
        "nobody knows more without a request"
    );

    // A refresh within a minute asks nobody; what the provider says later counts. An answer without an ID token says nothing.
    for (seconds, answer, left) in [
        (1, Some(json!([])), vec!["dev", "ops"]),
        (61, Some(json!(["dev"])), vec!["dev"]),
        (61, None, vec!["dev"]),
        (61, Some(Value::Null), vec![]),
        (61, Some(json!(["new"])), vec!["new"]),
    ] {
        idp.clock.advance(Duration::from_secs(seconds));
        match answer {
            Some(groups) => names_groups(&idp, &asked, groups),
            None => idp.web.on("/token", Reply::json(json!({"access_token": "a"}))),
        }
        ours = site.refresh(&token(&ours, "refresh_token"), &[]).await.json();
        assert_eq!(names(&caller(&guard, &token(&ours, "access_token")).await), left);
    }
}

#[test]
fn groups_of_configured_users_are_checked_when_the_configuration_is_read() {
    use gatewright_auth::{AuthConfig, Deployment};
    let deployment = Deployment::new("https://mcp.example", "/mcp", "Notes");
    let many: Vec<String> = (0..=Groups::MOST).map(|n| n.to_string()).collect();
    for (groups, is_right) in [(json!(["ops"]), true), (json!([""]), false), (json!(many), false)] {
        let mut config = crate::support::site::config();
        crate::support::site::merge(&mut config, alice(groups));
        let config: AuthConfig = serde_json::from_value(config).unwrap();
        let problems = config.validate(&deployment);
        let found = problems.iter().filter(|problem| problem.path == "auth.local.users[0].groups").count();
        assert_eq!(found, usize::from(!is_right), "{problems:?}");
    }
}
