//! Nobody grants, and no token carries, more than the configuration, the client and the user allow at that moment.

use std::sync::Arc;

use gatewright_auth::{
    ManualClock,
    keys::{Algorithm, Jwk, SigningKey, sign},
    store::{Key, MemoryStore, Store},
};
use gatewright_core::{Authenticator as _, Scopes};
use http::{Method, Request, header};
use serde_json::{Value, json};

use crate::support::{
    scopes_now,
    site::{Answer, Browser, PASSWORD, SECRET, Site, ask, claims, form, password_hash, post},
};

/// A configuration in which alice may grant `read` only.
fn alice_reads() -> Value {
    json!({"local": {"users": [{"username": "alice", "passwordHash": password_hash(), "scopes": ["read"]}]}})
}

/// An instance before a change of the configuration and one after it, on one store.
async fn before_and_after(before: Value, after: Value) -> (Site, Site) {
    let clock = Arc::new(ManualClock::from_system());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
    let first = Site::on(before, clock.clone(), store.clone()).await;
    (first, Site::on(after, clock, store).await)
}

async fn all_tokens(site: &Site) -> Value {
    let answer = site.redeem(&site.code(&[("scope", "read write openid")]).await).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["scope"]), (200, &json!("read write openid")));
    answer.json()
}

fn text<'a>(body: &'a Value, name: &str) -> &'a str {
    body[name].as_str().unwrap_or_else(|| panic!("{name} in {body}"))
}

/// The scopes of the caller who shows `token`; the status of a refusal.
async fn granted(site: &Site, token: &str) -> Result<Vec<String>, u16> {
    let request = Request::post("/mcp").header(header::AUTHORIZATION, format!("Bearer {token}"));
    let parts = request.body(()).unwrap().into_parts().0;
    let caller = site.resource_server().authenticate(&parts).await;
    match caller.map_err(|refused| refused.status().as_u16())?.scopes {
        Scopes::Granted(scopes) => Ok(scopes.into_iter().collect()),
        Scopes::All => panic!("a token grants what it names"),
    }
}

/// A ceiling without `write`, and clients it is about.
fn without_write() -> [(&'static str, Value); 3] {
    let client = json!({"clients": [
        {"clientId": "app", "redirectUris": ["https://c.example/cb"], "scopes": ["read", "openid"]},
        {"clientId": "poster", "clientSecret": SECRET, "tokenEndpointAuthMethod": "client_secret_post",
            "grantTypes": ["client_credentials"], "scopes": ["read"]},
        {"clientId": "rs", "clientSecret": SECRET, "grantTypes": [], "introspects": "https://mcp.example/mcp"},
    ]});
    [("user", alice_reads()), ("client", client), ("configuration", json!({"scopes": {"write": null}}))]
}

/// The same browser, whose next requests arrive at another instance.
fn moved<'s>(browser: Browser<'_>, site: &'s Site) -> Browser<'s> {
    Browser { site, cookies: browser.cookies, ip: browser.ip }
}

#[tokio::test]
async fn each_ceiling_counts_at_each_stage_by_itself() {
    for (ceiling, after) in without_write() {
        for stage in ["consent page", "decision", "code", "refresh", "client_credentials", "lookup"] {
            let (before, after) = before_and_after(json!({}), after.clone()).await;
            let both = [("scope", "read write")];
            let granted = match stage {
                "consent page" => {
                    let browser = before.browser();
                    let page = browser.get(&ask(&both)).await;
                    let browser = moved(browser, &after);
                    let next = browser.log_in(&page, "alice", PASSWORD).await;
                    let page = browser.follow(&next).await;
                    assert!(page.text.contains("value=\"read\""), "{ceiling}: {}", page.text);
                    assert!(!page.text.contains("value=\"write\""), "{ceiling}: {}", page.text);
                    continue;
                }
                "decision" => {
                    let browser = before.browser();
                    let page = browser.to_consent(&both).await;
                    assert!(page.text.contains("value=\"write\""), "{}", page.text);
                    let browser = moved(browser, &after);
                    let mut decided = browser.decide(&page, &["read", "write"], "allow").await;
                    if decided.status == 400 {
                        decided = browser.decide(&page, &["read"], "allow").await;
                    }
                    // Redeemed where more is allowed, so that nothing but the decision can have narrowed it.
                    before.redeem(&decided.location()["code"]).await.json()
                }
                "code" => {
                    let code = before.code(&both).await;
                    after.redeem(&code).await.json()
                }
                "refresh" => {
                    let tokens = before.redeem(&before.code(&both).await).await.json();
                    after.refresh(text(&tokens, "refresh_token"), &[]).await.json()
                }
                "client_credentials" if ceiling == "user" => continue,
                "client_credentials" => {
                    let machine =
                        [("grant_type", stage), ("client_id", "poster"), ("client_secret", SECRET), both[0]];
                    assert_eq!(before.token(&machine).await.json()["scope"], "read write");
                    after.token(&machine).await.json()
                }
                _ => {
                    let tokens = before.redeem(&before.code(&both).await).await.json();
                    let left = granted(&after, text(&tokens, "access_token")).await;
                    assert_eq!(left, Ok(vec!["read".to_owned()]), "{stage} with the ceiling of {ceiling}");
                    continue;
                }
            };
            assert_eq!(granted["scope"], "read", "{stage} with the ceiling of {ceiling}: {granted}");
            let claims = claims(text(&granted, "access_token"));
            assert_eq!(claims["scope"], "read", "{stage} with the ceiling of {ceiling}");
        }
    }
}

#[tokio::test]
async fn a_user_grants_no_more_than_they_may_whatever_the_form_says() {
    let site = Site::with(alice_reads()).await;
    let browser = site.browser();
    let page = browser.to_consent(&[("scope", "read write")]).await;
    assert!(page.text.contains("value=\"read\"") && !page.text.contains("value=\"write\""), "{}", page.text);
    let stored = site.store.get(&Key::secret("pending", &page.field("pending"))).await.unwrap().unwrap();
    let stored: Value = serde_json::from_slice(&stored).unwrap();
    assert_eq!(stored["grant"]["scopes"], json!(["read"]), "what is stored is narrowed, too");
    assert_eq!(browser.decide(&page, &["read", "write"], "allow").await.status, 400);
    let code = browser.decide(&page, &["read"], "allow").await.location()["code"].clone();
    assert_eq!(site.redeem(&code).await.json()["scope"], "read");
    // Signed in already: the request is narrowed before its first page.
    let again = browser.get(&ask(&[("scope", "read write"), ("prompt", "consent")])).await;
    assert_eq!(browser.decide(&again, &["read", "write"], "allow").await.status, 400);
}

#[tokio::test]
async fn a_code_gives_what_is_allowed_when_it_is_redeemed() {
    let (before, after) = before_and_after(json!({}), alice_reads()).await;
    let code = before.code(&[("scope", "read write")]).await;
    assert_eq!(after.redeem(&code).await.json()["scope"], "read");
    let dropped = json!({"scopes": {"read": null, "write": null, "other": "Other"}});
    let (before, after) = before_and_after(json!({}), dropped).await;
    let code = before.code(&[("scope", "read write")]).await;
    assert_eq!(after.redeem(&code).await.error(), "invalid_grant", "nothing is left");
}

#[tokio::test]
async fn a_refresh_gives_no_scope_that_the_configuration_dropped() {
    let (before, after) = before_and_after(json!({}), json!({"scopes": {"write": null}})).await;
    let tokens = all_tokens(&before).await;
    let refreshed = after.refresh(text(&tokens, "refresh_token"), &[]).await.json();
    assert_eq!(refreshed["scope"], "read openid");
    let named = after.refresh(text(&refreshed, "refresh_token"), &[("scope", "read write")]).await.json();
    assert_eq!(named["scope"], "read", "it was granted once, and is not any more");
    let beyond = after.refresh(text(&named, "refresh_token"), &[("scope", "read email")]).await;
    assert_eq!(beyond.error(), "invalid_scope", "it was never granted");
}

#[tokio::test]
async fn an_access_token_loses_at_once_what_the_user_the_client_or_the_configuration_lost() {
    let client = |scopes: Value| {
        json!({"clients": [
            {"clientId": "app", "redirectUris": ["https://c.example/cb"], "scopes": scopes},
            {"clientId": "rs", "clientSecret": SECRET, "grantTypes": [], "introspects": "https://mcp.example/mcp"},
        ]})
    };
    let configuration = json!({"scopes": {"write": null}});
    for after in [alice_reads(), client(json!(["read"])), configuration] {
        let (before, after) = before_and_after(json!({}), after).await;
        let tokens = all_tokens(&before).await;
        let token = text(&tokens, "access_token");
        assert_eq!(granted(&before, token).await.unwrap(), ["openid", "read", "write"]);
        let left = granted(&after, token).await.unwrap();
        assert!(left.contains(&"read".to_owned()) && !left.contains(&"write".to_owned()), "{left:?}");
        let told = after.introspect(token).await;
        assert!(!text(&told, "scope").split(' ').any(|scope| scope == "write"), "{told}");
    }
}

#[tokio::test]
async fn work_that_goes_on_without_a_token_keeps_what_a_token_would_keep_and_ends_with_its_user_and_client() {
    let since = |site: &Site| std::time::UNIX_EPOCH + std::time::Duration::from_secs(site.now_s());
    let owner = async |site: &Site| {
        let tokens = all_tokens(site).await;
        let request = Request::post("/mcp")
            .header(header::AUTHORIZATION, format!("Bearer {}", text(&tokens, "access_token")));
        let parts = request.body(()).unwrap().into_parts().0;
        site.resource_server().authenticate(&parts).await.unwrap()
    };
    let all = Some(Scopes::parse("read write openid"));
    let user = |user: Value| json!({"local": {"users": [user]}});
    let client = |id: &str, scopes: Value| {
        json!({"clients": [
            {"clientId": id, "redirectUris": ["https://c.example/cb"], "scopes": scopes},
            {"clientId": "rs", "clientSecret": SECRET, "grantTypes": [], "introspects": "https://mcp.example/mcp"},
        ]})
    };
    let disabled = json!({"username": "alice", "passwordHash": password_hash(), "disabled": true});
    for (after, expected) in [
        (json!({}), all.clone()),
        (alice_reads(), Some(Scopes::parse("read"))),
        (client("app", json!(["read"])), Some(Scopes::parse("read"))),
        (json!({"scopes": {"write": null}}), Some(Scopes::parse("read openid"))),
        (client("another", json!(["read"])), None),
        (user(json!({"username": "bob", "passwordHash": password_hash()})), None),
        (user(disabled), None),
    ] {
        let (before, after) = before_and_after(json!({}), after).await;
        let (owner, guard) = (owner(&before).await, after.resource_server());
        assert_eq!(scopes_now(&guard, &owner, since(&before)).await, Ok(expected));
    }
    let site = Site::new().await;
    let (owner, guard, before) = (owner(&site).await, site.resource_server(), since(&site));
    let local = gatewright_core::Principal::local();
    assert_eq!(scopes_now(&guard, &local, before).await, Ok(None), "begun while nobody had to authenticate");
    site.server.revoke_user("user:alice").await.unwrap();
    assert_eq!(scopes_now(&guard, &owner, before).await, Ok(None), "an operator signed the user out");
    site.clock.advance(std::time::Duration::from_secs(2));
    assert_eq!(scopes_now(&guard, &owner, since(&site)).await, Ok(all.clone()), "begun after that");
    site.server.revoke_client("app").await.unwrap();
    assert_eq!(scopes_now(&guard, &owner, since(&site)).await, Ok(None));
}

#[tokio::test]
async fn userinfo_is_for_tokens_that_still_have_openid() {
    let (before, after) = before_and_after(json!({}), alice_reads()).await;
    let tokens = all_tokens(&before).await;
    let userinfo = async |site: &Site| {
        let bearer = format!("Bearer {}", text(&tokens, "access_token"));
        let request = Request::get("/oauth/userinfo").header(header::AUTHORIZATION, bearer);
        site.send(request.body(axum::body::Body::empty()).unwrap()).await.status.as_u16()
    };
    assert_eq!((userinfo(&before).await, userinfo(&after).await), (200, 403));
}

#[tokio::test]
async fn the_tokens_of_a_client_that_is_configured_no_more_are_refused() {
    let gone = json!({"clients": [{"clientId": "other", "redirectUris": ["https://other.example/cb"]}]});
    let (before, after) = before_and_after(json!({}), gone).await;
    let tokens = all_tokens(&before).await;
    assert_eq!(granted(&after, text(&tokens, "access_token")).await, Err(401));
}

#[tokio::test]
async fn anonymous_tokens_end_with_anonymous_access_and_lose_what_it_loses() {
    let open = |scopes: Value| json!({"allowDefaultPublic": true, "anonymousScopes": scopes});
    let (before, after) = before_and_after(open(json!(["read", "write"])), open(json!(["read"]))).await;
    let token = before.token(&[("grant_type", "anonymous")]).await.json();
    assert_eq!(granted(&after, text(&token, "access_token")).await.unwrap(), ["read"]);
    let (before, after) = before_and_after(open(json!(["read"])), json!({})).await;
    let token = before.token(&[("grant_type", "anonymous")]).await.json();
    assert_eq!(granted(&after, text(&token, "access_token")).await, Err(401));
}

async fn send_json(site: &Site, method: Method, path: &str, token: &str, body: &Value) -> Answer {
    let request =
        Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
    let request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    site.send(request.body(axum::body::Body::from(body.to_string())).unwrap()).await
}

#[tokio::test]
async fn a_registered_client_that_gives_a_scope_up_loses_it_in_the_tokens_it_has() {
    let site = Site::with(json!({"dcrEnabled": true})).await;
    let metadata = json!({"redirect_uris": ["https://n.example/cb"], "token_endpoint_auth_method": "none", "scope": "read write"});
    let client = send_json(&site, Method::POST, "/oauth/register", "", &metadata).await.json();
    let id = text(&client, "client_id");
    let changes = [("client_id", id), ("redirect_uri", "https://n.example/cb"), ("scope", "read write")];
    let code = site.code(&changes).await;
    let tokens = site.redeem_with(&code, &[("client_id", id)]).await.json();
    let guard = site.resource_server();
    let request = Request::post("/mcp")
        .header(header::AUTHORIZATION, format!("Bearer {}", text(&tokens, "access_token")));
    let parts = request.body(()).unwrap().into_parts().0;
    assert!(guard.authenticate(&parts).await.unwrap().scopes.allows("write"));
    let mut less = metadata;
    (less["client_id"], less["scope"]) = (json!(id), json!("read"));
    let path = format!("/oauth/register/{id}");
    let changed =
        send_json(&site, Method::PUT, &path, text(&client, "registration_access_token"), &less).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    let scopes = guard.authenticate(&parts).await.unwrap().scopes;
    assert!(scopes.allows("read") && !scopes.allows("write"), "{scopes:?}");
}

#[tokio::test]
async fn without_scopes_there_is_one_that_a_client_gets_without_asking() {
    let none = json!({"scopes": {"read": null, "write": null}});
    let site = Site::with(none).await;
    let browser = site.browser();
    let page = browser.to_consent(&[("scope", "")]).await;
    let code = browser.decide(&page, &["mcp"], "allow").await.location()["code"].clone();
    let tokens = site.redeem(&code).await.json();
    assert_eq!(tokens["scope"], "mcp");
    assert_eq!(granted(&site, text(&tokens, "access_token")).await.unwrap(), ["mcp"]);
    let machine = [("grant_type", "client_credentials"), ("client_id", "poster"), ("client_secret", SECRET)];
    assert_eq!(site.token(&machine).await.json()["scope"], "mcp");
    let metadata = site.get("/.well-known/oauth-protected-resource").await.json();
    assert_eq!(metadata["scopes_supported"], json!(["mcp"]));
}

#[tokio::test]
async fn a_secret_of_a_client_is_never_in_the_record_of_a_pushed_request() {
    let client = json!({"clientId": "pusher", "clientSecret": SECRET, "tokenEndpointAuthMethod": "client_secret_post",
        "redirectUris": ["https://c.example/cb"]});
    let site = Site::with(json!({"clients": [client]})).await;
    let query = ask(&[("client_id", "pusher")]);
    let mut pairs: Vec<(String, String)> =
        url::form_urlencoded::parse(query.split_once('?').unwrap().1.as_bytes()).into_owned().collect();
    pairs.push(("client_secret".into(), SECRET.into()));
    pairs.push(("client_assertion_type".into(), "made-up".into()));
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let pushed = site.send(post("/oauth/par", &pairs)).await;
    assert_eq!(pushed.status, 201, "{}", pushed.text);
    let uri = text(&pushed.json(), "request_uri").to_owned();
    let key = Key::secret("pushed", uri.rsplit(':').next().unwrap());
    let record = String::from_utf8(site.store.get(&key).await.unwrap().unwrap()).unwrap();
    assert!(!record.contains(SECRET) && !record.contains("client_assertion"), "{record}");
    let go = format!("/oauth/authorize?{}", form(&[("client_id", "pusher"), ("request_uri", &uri)]));
    assert_eq!(site.get(&go).await.status, 200);
}

#[tokio::test]
async fn the_assertion_of_a_client_is_never_in_the_record_of_a_pushed_request() {
    let key = Jwk::generate(Algorithm::ES256).unwrap();
    let client = json!({"clientId": "signer", "jwks": {"keys": [key.public()]}, "redirectUris": ["https://c.example/cb"]});
    let site = Site::with(json!({"clients": [client]})).await;
    let now = site.now_s();
    let claims = json!({"iss": "signer", "sub": "signer", "aud": "https://mcp.example", "exp": now + 60, "iat": now, "jti": "1"});
    let assertion = sign(&SigningKey::from_jwk(&key).unwrap(), "JWT", claims.as_object().unwrap());
    let query = ask(&[("client_id", "signer")]);
    let mut pairs: Vec<(String, String)> =
        url::form_urlencoded::parse(query.split_once('?').unwrap().1.as_bytes()).into_owned().collect();
    let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
    pairs.push(("client_assertion_type".into(), kind.into()));
    pairs.push(("client_assertion".into(), assertion.clone()));
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let pushed = site.send(post("/oauth/par", &pairs)).await;
    assert_eq!(pushed.status, 201, "{}", pushed.text);
    let uri = text(&pushed.json(), "request_uri").to_owned();
    let key = Key::secret("pushed", uri.rsplit(':').next().unwrap());
    let record = String::from_utf8(site.store.get(&key).await.unwrap().unwrap()).unwrap();
    for part in assertion.split('.').chain(["client_assertion", "jwt-bearer"]) {
        assert!(!record.contains(part), "{part} in {record}");
    }
    let go = format!("/oauth/authorize?{}", form(&[("client_id", "signer"), ("request_uri", &uri)]));
    assert_eq!(site.get(&go).await.status, 200);
}
