//! Users' tokens for HTTP APIs, whose documents name the endpoints of their authorization servers.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gatewright_auth::{ManualClock, OauthEndpoints, UpstreamProvider, UpstreamVault, store::Store};
use gatewright_core::{BearerToken, UserCredentials as _};
use serde_json::{Value, json};

use crate::{
    connect::{APP, answer_at, open, place_of, principal, sent, shared, tokens},
    support::{
        site::{ISSUER, Site},
        web::{Reply, Web},
    },
};

fn provider(web: &Web, change: impl FnOnce(&mut UpstreamProvider)) -> UpstreamProvider {
    let mut provider = UpstreamProvider {
        app: APP.into(),
        resource: "https://api.example https://files.example".into(),
        is_mcp: false,
        client_id: Some("gateway".into()),
        client_secret: Some("hush".to_owned().into()),
        scopes: Vec::new(),
        issuer: None,
        endpoints: Some(OauthEndpoints {
            authorization: web.url("/authorize?tenant=a"),
            token: web.url("/token"),
            refresh: Some(web.url("/refresh")),
            secret_in_form: true,
        }),
        parameters: vec![("access_type".into(), "offline".into())],
        allow_private: true,
    };
    change(&mut provider);
    provider
}

struct Given {
    web: Web,
    site: Site,
    vault: UpstreamVault,
    clock: Arc<ManualClock>,
    settings: UpstreamProvider,
}

async fn given(change: impl FnOnce(&mut UpstreamProvider)) -> Given {
    let web = Web::start().await;
    web.on("/token", tokens("access-1", "refresh-1"));
    web.on("/refresh", tokens("access-2", "refresh-2"));
    let (clock, store): (Arc<ManualClock>, Arc<dyn Store>) = shared();
    let mut site = Site::on(json!({}), clock.clone(), store).await;
    let vault = UpstreamVault::new(&site.server);
    let settings = provider(&web, change);
    vault.serve(settings.clone()).unwrap();
    site.router = site.router.clone().merge(vault.router());
    Given { web, site, vault, clock, settings }
}

impl Given {
    fn provider(&self) -> UpstreamProvider {
        self.settings.clone()
    }

    async fn token(&self, scopes: &[&str]) -> Option<String> {
        let scopes: Vec<String> = scopes.iter().map(ToString::to_string).collect();
        let token = self.vault.bearer(APP, &principal("user:alice"), &scopes).await.unwrap();
        token.map(|token| token.expose().to_owned())
    }

    /// Signs alice in for these scopes, with more in the answer. Returns the authorization request, and the status of the answer's page.
    async fn connect(&self, scopes: &[&str], more: &[(&str, &str)]) -> (BTreeMap<String, String>, u16) {
        let scopes: Vec<String> = scopes.iter().map(ToString::to_string).collect();
        let url = self.vault.authorize(APP, &principal("user:alice"), &scopes).await.unwrap().url;
        let browser = self.site.browser();
        let asked = open(&browser, &url, "alice").await;
        assert!(
            asked.header("location").starts_with(&self.web.url("/authorize?tenant=a&")),
            "{}",
            asked.text
        );
        let asked: BTreeMap<_, _> = asked.location().into_iter().collect();
        let pairs = [&[("state", asked["state"].as_str()), ("code", "c-1")], more].concat();
        let done = answer_at(&browser, &place_of(&self.web.url("/token")), &pairs).await;
        (asked, done.status.as_u16())
    }
}

#[tokio::test]
async fn a_user_signs_in_at_the_endpoints_of_the_document_with_pkce_and_without_resource() {
    let given = given(|_| {}).await;
    assert_eq!(given.token(&["read"]).await, None);
    let (asked, status) = given.connect(&["read"], &[("iss", "https://whoever.example")]).await;
    assert_eq!(status, 200, "an issuer whose name is not known may name itself");
    assert_eq!((&*asked["client_id"], &*asked["code_challenge_method"]), ("gateway", "S256"));
    assert_eq!((&*asked["scope"], &*asked["access_type"]), ("read", "offline"));
    assert_eq!(asked["redirect_uri"], format!("{ISSUER}{}/callback", place_of(&given.web.url("/token"))));
    assert!(!asked.contains_key("resource"));
    let exchanged = &sent(&given.web, "/token")[0];
    assert_eq!((&*exchanged["code"], &*exchanged["client_secret"]), ("c-1", "hush"));
    assert!(exchanged.contains_key("code_verifier") && !exchanged.contains_key("resource"));
    assert_eq!(given.token(&["read"]).await.as_deref(), Some("access-1"));
    assert_eq!(given.token(&[]).await.as_deref(), Some("access-1"));
    let paths: Vec<String> = given.web.seen().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["/token"], "no metadata is asked for");
}

#[tokio::test]
async fn more_scopes_are_asked_for_with_those_of_before_and_survive_a_refresh() {
    let given = given(|provider| provider.scopes = vec!["base".into()]).await;
    let (asked, _) = given.connect(&["read"], &[]).await;
    assert_eq!(asked["scope"], "base read");
    assert_eq!(given.token(&["read", "write"]).await, None, "it was not asked for with `write`");
    let (asked, _) = given.connect(&["write"], &[]).await;
    assert_eq!(asked["scope"], "base read write");
    given.clock.advance(Duration::from_secs(601));
    assert_eq!(given.token(&["write", "read"]).await.as_deref(), Some("access-2"));
    let refreshed = &sent(&given.web, "/refresh")[0];
    assert_eq!((&*refreshed["refresh_token"], refreshed.contains_key("resource")), ("refresh-1", false));
}

#[tokio::test]
async fn an_issuer_that_the_operator_names_has_to_be_the_one_that_answers() {
    let given = given(|provider| provider.issuer = Some("https://idp.example".into())).await;
    let url = given.vault.authorize(APP, &principal("user:alice"), &[]).await.unwrap().url;
    let browser = given.site.browser();
    let state = open(&browser, &url, "alice").await.location()["state"].clone();
    let pairs = [("state", state.as_str()), ("code", "c"), ("iss", "https://evil.example")];
    assert_eq!(answer_at(&browser, &place_of("https://idp.example"), &pairs).await.status, 400);
    assert!(sent(&given.web, "/token").is_empty() && given.token(&[]).await.is_none());
}

#[tokio::test]
async fn a_refresh_that_is_refused_with_the_status_of_a_success_ends_the_grant() {
    let given = given(|_| {}).await;
    given.connect(&[], &[]).await;
    given.web.on("/refresh", Reply::json(json!({"error": "bad_refresh_token", "error_description": "gone"})));
    let refused = BearerToken::new("access-1");
    assert!(given.vault.refused(APP, &principal("user:alice"), &refused).await.unwrap().is_none());
    assert_eq!(given.token(&[]).await, None, "the user signs in again");
}

#[tokio::test]
async fn a_token_of_one_server_is_not_there_once_the_api_has_another() {
    let given = given(|_| {}).await;
    given.connect(&[], &[]).await;
    given.vault.serve(provider(&given.web, |other| other.resource = "https://evil.example".into())).unwrap();
    assert_eq!(given.token(&[]).await, None);
    given.vault.serve(provider(&given.web, |_| {})).unwrap();
    assert_eq!(given.token(&[]).await.as_deref(), Some("access-1"));
}

/// Metadata of the authorization server at `issuer`, whose endpoints are those of the document below `above`.
fn metadata(web: &Web, issuer: &str, above: &str, more: Value) -> Reply {
    let mut all = json!({
        "issuer": issuer, "authorization_endpoint": web.url(&format!("{above}/authorize")),
        "token_endpoint": web.url(&format!("{above}/token")),
    });
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Reply::json(all)
}

/// A provider without a client identifier, whose endpoints are below `above`.
async fn unregistered(above: &str) -> Given {
    let above = above.to_owned();
    given(move |provider| {
        (provider.client_id, provider.client_secret) = (None, None);
        let endpoints = provider.endpoints.as_mut().unwrap();
        endpoints.authorization =
            endpoints.authorization.replace("/authorize", &format!("{above}/authorize"));
        endpoints.token = endpoints.token.replace("/token", &format!("{above}/token"));
        endpoints.secret_in_form = false;
    })
    .await
}

#[tokio::test]
async fn without_a_client_id_the_gateway_registers_where_metadata_names_the_endpoints_of_the_document() {
    for (above, well_known, issuer) in [
        ("", "/.well-known/oauth-authorization-server", ""),
        ("", "/.well-known/openid-configuration", "/"),
        ("/realms/a/oidc", "/.well-known/oauth-authorization-server/realms/a", "/realms/a"),
        ("/realms/a/oidc", "/realms/a/.well-known/openid-configuration", "/realms/a"),
    ] {
        let given = unregistered(above).await;
        let (web, issuer) = (&given.web, given.web.url(issuer));
        let register = json!({"registration_endpoint": web.url("/register")});
        web.on(well_known, metadata(web, &issuer, above, register));
        let made = Reply::json(json!({"client_id": "made-for-us", "token_endpoint_auth_method": "none"}));
        web.on("/register", Reply { status: 201, ..made });
        web.on(&format!("{above}/token"), tokens("access-1", "refresh-1"));
        let url = given.vault.authorize(APP, &principal("user:alice"), &[]).await.unwrap().url;
        let browser = given.site.browser();
        let asked: BTreeMap<_, _> = open(&browser, &url, "alice").await.location().into_iter().collect();
        assert_eq!((&*asked["client_id"], &*asked["tenant"]), ("made-for-us", "a"), "{well_known}");
        let callback = format!("{ISSUER}{}/callback", place_of(&issuer));
        assert_eq!(asked["redirect_uri"], callback);
        let pairs = [("state", asked["state"].as_str()), ("code", "c")];
        assert_eq!(answer_at(&browser, &place_of(&issuer), &pairs).await.status, 200);
        assert_eq!(given.token(&[]).await.as_deref(), Some("access-1"));
        let seen = web.seen();
        let registered: Vec<_> = seen.iter().filter(|(path, _)| path == "/register").collect();
        assert_eq!(registered.len(), 1, "once, although it was asked for twice");
        assert!(registered[0].1.contains(&callback) && !registered[0].1.contains("secret"));
    }
}

#[tokio::test]
async fn without_a_client_id_the_gateway_shows_its_document_where_that_is_taken() {
    let given = unregistered("").await;
    let takes = json!({"client_id_metadata_document_supported": true});
    let issuer = given.web.url("");
    let reply = metadata(&given.web, &issuer, "", takes);
    given.web.on("/.well-known/oauth-authorization-server", reply);
    let url = given.vault.authorize(APP, &principal("user:alice"), &[]).await.unwrap().url;
    let asked = open(&given.site.browser(), &url, "alice").await.location();
    assert_eq!(asked["client_id"], format!("{ISSUER}{}/client.json", place_of(&issuer)));
}

#[tokio::test]
async fn without_a_client_id_and_a_way_to_register_the_caller_hears_which_key_is_missing() {
    let well_known = "/.well-known/oauth-authorization-server";
    let given = unregistered("").await;
    let (web, who) = (&given.web, principal("user:alice"));
    let register = json!({"registration_endpoint": web.url("/register")});
    let of_others = metadata(web, &web.url(""), "/others", register);
    let web_page = Reply { status: 200, headers: Vec::new(), body: "<html>".into() };
    for reply in [None, Some(of_others), Some(web_page), Some(metadata(web, &web.url(""), "", json!({})))] {
        if let Some(reply) = reply {
            web.on(well_known, reply);
        }
        given.vault.serve(given.provider()).unwrap();
        let why = given.vault.authorize(APP, &who, &[]).await.unwrap_err();
        let callback = format!("{ISSUER}{}/callback", place_of(&web.url("/token")));
        assert!(why.contains("`apps.notes.auth.clientId`") && why.contains(&callback), "{why}");
        assert!(why.contains("no metadata says how the gateway could register itself"), "{why}");
    }
    assert!(sent(web, "/register").is_empty(), "nobody else hears of the gateway");
    // A server that is down may say more later.
    web.on(well_known, Reply { status: 503, headers: Vec::new(), body: String::new() });
    given.vault.serve(given.provider()).unwrap();
    let why = given.vault.authorize(APP, &who, &[]).await.unwrap_err();
    assert!(why.contains("cannot be read: the answer has status 503") && !why.contains("clientId"), "{why}");
}

#[tokio::test]
async fn endpoints_that_no_browser_or_request_may_go_to_are_refused() {
    for (authorization, token) in [
        ("javascript:alert(1)", "https://idp.example/token"),
        ("https://idp.example/authorize", "file:///etc/passwd"),
        ("https://idp.example/authorize#x", "https://idp.example/token"),
        ("http://10.0.0.1/authorize", "https://idp.example/token"),
    ] {
        let given = given(|provider| {
            provider.allow_private = false;
            let (authorization, token) = (authorization.to_owned(), token.to_owned());
            provider.endpoints =
                Some(OauthEndpoints { authorization, token, refresh: None, secret_in_form: false });
        })
        .await;
        let url = given.vault.authorize(APP, &principal("user:alice"), &[]).await.unwrap().url;
        let refused = open(&given.site.browser(), &url, "alice").await;
        assert_eq!(refused.status, 502, "{authorization} {token}: {}", refused.text);
    }
}
