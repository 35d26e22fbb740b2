//! Scopes about users are for users only, and every list of scopes names each of them once.

use gatewright_auth::{AuthConfig, ConsentTool, Deployment};
use gatewright_core::Authenticator as _;
use http::{Request, header};
use serde_json::{Value, json};

use crate::support::site::{Answer, SECRET, Site, config, merge};

/// A configuration that lists the scopes of OpenID Connect beside its own.
async fn lists_openid() -> Site {
    let scopes = json!({"openid": "Know who you are", "profile": "", "email": "", "offline_access": ""});
    Site::with(json!({
        "scopes": scopes, "allowDefaultPublic": true, "anonymousScopes": ["read", "openid"],
    }))
    .await
}

async fn machine(site: &Site, scope: &str) -> Answer {
    let mut pairs =
        vec![("grant_type", "client_credentials"), ("client_id", "poster"), ("client_secret", SECRET)];
    if !scope.is_empty() {
        pairs.push(("scope", scope));
    }
    site.token(&pairs).await
}

async fn userinfo(site: &Site, token: &Value) -> Answer {
    let bearer = format!("Bearer {}", token["access_token"].as_str().unwrap());
    let request = Request::get("/oauth/userinfo").header(header::AUTHORIZATION, bearer);
    site.send(request.body(axum::body::Body::empty()).unwrap()).await
}

#[tokio::test]
async fn a_client_that_acts_for_itself_gets_no_scope_about_a_user() {
    let site = lists_openid().await;
    assert_eq!(machine(&site, "").await.json()["scope"], "read write");
    let token = machine(&site, "read openid profile email offline_access").await.json();
    assert_eq!((&token["scope"], token.get("id_token")), (&json!("read"), None));
    assert_eq!(machine(&site, "openid").await.error(), "invalid_scope");
    let anonymous = site.token(&[("grant_type", "anonymous")]).await.json();
    assert_eq!(anonymous["scope"], "read");
    assert_eq!(userinfo(&site, &anonymous).await.status, 403);
}

#[tokio::test]
async fn userinfo_refuses_the_token_of_a_client_that_acts_for_itself() {
    let site = lists_openid().await;
    let token = machine(&site, "read openid").await.json();
    let refused = userinfo(&site, &token).await;
    assert_eq!((refused.status.as_u16(), refused.error().as_str()), (403, "insufficient_scope"));
    assert!(
        refused.json()["error_description"].as_str().unwrap().contains("about a user"),
        "{}",
        refused.text
    );
}

#[tokio::test]
async fn userinfo_names_the_scope_that_a_token_lacks() {
    let site = Site::new().await;
    let refused = userinfo(&site, &site.tokens().await).await;
    assert_eq!((refused.status.as_u16(), refused.error().as_str()), (403, "insufficient_scope"));
    assert!(refused.header("www-authenticate").contains("scope=\"openid\""), "{:?}", refused.headers);
    assert!(refused.json()["error_description"].as_str().unwrap().ends_with(": openid"), "{}", refused.text);
}

#[tokio::test]
async fn no_list_of_scopes_names_one_twice() {
    let site = lists_openid().await;
    for path in ["/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource"] {
        let body = site.get(path).await.json();
        let mut scopes: Vec<String> = serde_json::from_value(body["scopes_supported"].clone()).unwrap();
        let all = scopes.len();
        scopes.sort();
        scopes.dedup();
        assert_eq!((scopes.len(), scopes.contains(&"read".to_owned())), (all, true), "{path}: {body}");
    }
    let missing = ["write", "read", "write"].map(str::to_owned);
    let response = site.resource_server().insufficient_scope(&gatewright_core::Principal::local(), &missing);
    let challenge = response.headers()["www-authenticate"].to_str().unwrap();
    assert!(challenge.contains("scope=\"write read\""), "{challenge}");
}

#[tokio::test]
async fn the_consent_page_names_a_scope_once() {
    let site = lists_openid().await;
    site.server.set_consent_tools(|| {
        let scopes = ["read", "write", "read"].map(str::to_owned).to_vec();
        vec![ConsentTool { app: "notes".into(), name: "notes:add".into(), scopes, destructive: false }]
    });
    let page = site.browser().to_consent(&[("scope", "read openid read write openid")]).await.text;
    for scope in ["read", "write", "openid"] {
        assert_eq!(page.matches(&format!("value=\"{scope}\"")).count(), 1, "{scope}: {page}");
    }
    assert!(page.contains("needs: Read your notes, Change your notes</li>"), "{page}");
}

#[tokio::test]
async fn a_lack_of_scopes_names_them_in_the_challenge_and_in_the_message() {
    let site = Site::new().await;
    let response = site.resource_server().insufficient_scope(
        &gatewright_core::Principal::local(),
        &["read".into(), "a \"quoted\" one".into(), "write".into()],
    );
    let challenge = response.headers()["www-authenticate"].to_str().unwrap().to_owned();
    assert!(challenge.contains("scope=\"read write\""), "{challenge}");
    let body: Value = serde_json::from_str(response.body()).unwrap();
    assert_eq!(body["error"], "insufficient_scope");
    assert!(body["error_description"].as_str().unwrap().ends_with("read write"), "{body}");
}

#[test]
fn a_scope_that_no_request_can_name_is_refused_at_the_start() {
    let problems = |scope: &str| {
        let mut all = config();
        merge(&mut all, json!({"scopes": {scope: "Words"}}));
        let config: AuthConfig = serde_json::from_value(all).unwrap();
        config.validate(&Deployment::new("https://mcp.example", "/mcp", "Notes"))
    };
    assert!(problems("crm:users.read/own").is_empty());
    for scope in ["two words", "say\"this\"", "a\\b", "caf\u{e9}", ""] {
        assert_eq!(problems(scope)[0].path, "auth.scopes", "{scope:?}");
    }
}
