//! Users' tokens for HTTP APIs, whose documents name the endpoints of their authorization servers.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gatewright_auth::{ManualClock, OauthEndpoints, UpstreamProvider, UpstreamVault, store::Store};
use gatewright_core::{BearerToken, UserCredentials as _};
use serde_json::json;

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
}

async fn given(change: impl FnOnce(&mut UpstreamProvider)) -> Given {
    let web = Web::start().await;
    web.on("/token", tokens("access-1", "refresh-1"));
    web.on("/refresh", tokens("access-2", "refresh-2"));
    let (clock, store): (Arc<ManualClock>, Arc<dyn Store>) = shared();
    let mut site = Site::on(json!({}), clock.clone(), store).await;
    let vault = UpstreamVault::new(&site.server);
    vault.serve(provider(&web, change)).unwrap();
    site.router = site.router.clone().merge(vault.router());
    Given { web, site, vault, clock }
}

impl Given {
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
