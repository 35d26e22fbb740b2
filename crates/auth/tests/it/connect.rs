//! Users' tokens for servers behind the gateway: obtained with their consent, kept encrypted, refreshed once, sent nowhere else.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use gatewright_auth::{
    ManualClock, UpstreamProvider, UpstreamVault,
    store::{Digest, MemoryStore, Store},
};
use gatewright_core::{BearerToken, Principal, Scopes, UserCredentials as _};
use http::{Request, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::support::{
    account::{ACCOUNT, account},
    site::{Answer, Browser, ISSUER, PASSWORD, Site},
    web::{Reply, Web},
};

pub(crate) const APP: &str = "notes";

/// The other side: a server that is its own authorization server, as `Web` plays it.
async fn other() -> Web {
    let web = Web::start().await;
    let base = web.url("");
    web.on(
        "/.well-known/oauth-protected-resource/mcp",
        Reply::json(json!({
            "resource": web.url("/mcp"), "authorization_servers": [base], "scopes_supported": ["notes:read"],
        })),
    );
    web.on("/.well-known/oauth-authorization-server", Reply::json(json!({
        "issuer": base, "authorization_endpoint": web.url("/authorize"), "token_endpoint": web.url("/token"),
        "registration_endpoint": web.url("/register"), "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    })));
    let registered = Reply::json(json!({"client_id": "made-for-us", "token_endpoint_auth_method": "none"}));
    web.on("/register", Reply { status: 201, ..registered });
    web.on("/token", tokens("access-1", "refresh-1"));
    web
}

pub(crate) fn tokens(access: &str, refresh: &str) -> Reply {
    Reply::json(
        json!({"access_token": access, "token_type": "Bearer", "expires_in": 600, "refresh_token": refresh}),
    )
}

fn vault(site: &Site, web: &Web) -> UpstreamVault {
    let vault = UpstreamVault::new(&site.server);
    let provider = UpstreamProvider {
        app: APP.into(),
        resource: web.url("/mcp"),
        client_id: None,
        client_secret: None,
        scopes: Vec::new(),
        issuer: None,
        is_mcp: true,
        endpoints: None,
        parameters: Vec::new(),
        allow_private: true,
    };
    vault.serve(provider).unwrap();
    vault
}

pub(crate) fn principal(subject: &str) -> Principal {
    Principal { subject: subject.into(), client_id: None, scopes: Scopes::All, ..Principal::local() }
}

/// A site whose router has the vault's pages too.
async fn site(web: &Web, clock: &Arc<ManualClock>, store: &Arc<dyn Store>) -> (Site, UpstreamVault) {
    let over = json!({"encryptionKey": "0123456789abcdef0123456789abcdef"});
    let mut site = Site::on(over, clock.clone(), store.clone()).await;
    let vault = vault(&site, web);
    let pages: Router = vault.router();
    site.router = site.router.clone().merge(pages);
    (site, vault)
}

pub(crate) fn shared() -> (Arc<ManualClock>, Arc<dyn Store>) {
    let clock = Arc::new(ManualClock::from_system());
    (clock.clone(), Arc::new(MemoryStore::new(clock)))
}

fn path(url: &str) -> String {
    url.strip_prefix(ISSUER).unwrap_or_else(|| panic!("an address of this server: {url}")).to_owned()
}

/// Opens the address a user was given and signs in; returns where the browser is sent.
pub(crate) async fn open(browser: &Browser<'_>, url: &str, user: &str) -> Answer {
    let page = browser.get(&path(url)).await;
    if page.status != 200 {
        return page;
    }
    let mut next = browser.log_in(&page, user, PASSWORD).await;
    while next.header("location").starts_with(ISSUER) {
        next = browser.follow(&next).await;
    }
    next
}

/// The path below which the answers of an issuer arrive.
pub(crate) fn place_of(issuer: &str) -> String {
    format!("/oauth/connect/{}", &Digest::of(issuer).as_str()[..32])
}

async fn answer(browser: &Browser<'_>, web: &Web, pairs: &[(&str, &str)]) -> Answer {
    answer_at(browser, &place_of(&web.url("")), pairs).await
}

pub(crate) async fn answer_at(browser: &Browser<'_>, place: &str, pairs: &[(&str, &str)]) -> Answer {
    browser.get(&format!("{place}/callback?{}", crate::support::site::form(pairs))).await
}

async fn connect(site: &Site, vault: &UpstreamVault, web: &Web, user: &str) {
    let who = principal(&format!("user:{user}"));
    let url = vault.authorize(APP, &who, &[]).await.unwrap().url;
    let browser = site.browser();
    let asked = open(&browser, &url, user).await.location();
    let done =
        answer(&browser, web, &[("state", &asked["state"]), ("code", "c"), ("iss", &web.url(""))]).await;
    assert_eq!(done.status, 200, "{}", done.text);
}

async fn token(vault: &UpstreamVault, user: &str) -> Option<String> {
    let held = vault.bearer(APP, &principal(&format!("user:{user}")), &[]).await.unwrap();
    held.map(|token| token.expose().to_owned())
}

pub(crate) fn sent(web: &Web, to: &str) -> Vec<BTreeMap<String, String>> {
    let bodies = web.seen().into_iter().filter(|(path, _)| path == to);
    bodies.map(|(_, body)| url::form_urlencoded::parse(body.as_bytes()).into_owned().collect()).collect()
}

#[tokio::test]
async fn a_user_is_connected_with_pkce_state_and_resource_and_only_they_are() {
    let (web, (clock, store)) = (other().await, shared());
    let (site, vault) = site(&web, &clock, &store).await;
    assert_eq!(token(&vault, "alice").await, None);
    let authorize = vault.authorize(APP, &principal("user:alice"), &[]).await.unwrap();
    let browser = site.browser();
    let asked = open(&browser, &authorize.url, "alice").await;
    assert!(asked.header("location").starts_with(&web.url("/authorize?")), "{}", asked.header("location"));
    let query = asked.location();
    assert_eq!(
        (query["client_id"].as_str(), query["code_challenge_method"].as_str()),
        ("made-for-us", "S256")
    );
    assert_eq!((query["resource"].clone(), query["scope"].as_str()), (web.url("/mcp"), "notes:read"));
    assert_eq!(query["redirect_uri"], format!("{ISSUER}{}/callback", place_of(&web.url(""))));
    let done =
        answer(&browser, &web, &[("state", &query["state"]), ("code", "c-1"), ("iss", &web.url(""))]).await;
    assert_eq!(done.status, 200, "{}", done.text);
    assert_eq!(token(&vault, "alice").await.as_deref(), Some("access-1"));
    assert_eq!(token(&vault, "bob").await, None, "nobody else is connected");
    let exchanged = &sent(&web, "/token")[0];
    assert_eq!((exchanged["code"].as_str(), exchanged["resource"].clone()), ("c-1", web.url("/mcp")));
    use base64::Engine as _;
    let challenge = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .encode(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, exchanged["code_verifier"].as_bytes()));
    assert_eq!(challenge, query["code_challenge"]);
    assert_eq!(site.events("upstream.connected"), 1);
    assert_eq!(browser.get(&path(&authorize.url)).await.status, 400, "the address is used up");
    let again =
        answer(&browser, &web, &[("state", &query["state"]), ("code", "c-1"), ("iss", &web.url(""))]).await;
    assert_eq!(again.status, 400, "and so is the state");
}

#[tokio::test]
async fn the_address_of_one_user_connects_nobody_else() {
    let (web, (clock, store)) = (other().await, shared());
    let (site, vault) = site(&web, &clock, &store).await;
    let url = vault.authorize(APP, &principal("user:alice"), &[]).await.unwrap().url;
    let bob = site.browser();
    let refused = open(&bob, &url, "bob").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text);
    // The answer of the other server counts in the browser of that user only.
    let alice = site.browser();
    let asked = open(&alice, &url, "alice").await.location();
    let stolen =
        answer(&bob, &web, &[("state", &asked["state"]), ("code", "c"), ("iss", &web.url(""))]).await;
    assert_eq!(stolen.status, StatusCode::FORBIDDEN);
    assert_eq!((token(&vault, "alice").await, token(&vault, "bob").await), (None, None));
    assert!(sent(&web, "/token").is_empty());
    for nobody in ["anonymous", "service"] {
        assert!(vault.authorize(APP, &principal(nobody), &[]).await.is_err(), "{nobody} is no user");
    }
}

#[tokio::test]
async fn an_answer_of_another_server_or_to_nothing_asked_is_refused() {
    let (web, (clock, store)) = (other().await, shared());
    let (site, vault) = site(&web, &clock, &store).await;
    let who = principal("user:alice");
    let here = web.url("");
    let cases: [&[(&str, &str)]; 4] = [
        &[("iss", "https://evil.example")],
        &[],
        &[("iss", &here), ("error", "access_denied")],
        &[("iss", &here), ("code", "")],
    ];
    let browser = site.browser();
    for case in cases {
        let url = vault.authorize(APP, &who, &[]).await.unwrap().url;
        let asked = open(&browser, &url, "alice").await.location();
        let mut pairs = vec![("state", asked["state"].as_str())];
        if !case.iter().any(|(name, _)| *name == "error" || *name == "code") {
            pairs.push(("code", "c"));
        }
        pairs.extend(case);
        let answer = answer(&browser, &web, &pairs).await;
        assert!(answer.status.is_client_error(), "{case:?}: {}", answer.status);
    }
    assert_eq!(
        answer(&browser, &web, &[("state", "made-up"), ("code", "c"), ("iss", &here)]).await.status,
        400
    );
    assert!(sent(&web, "/token").is_empty() && token(&vault, "alice").await.is_none());
}

#[tokio::test]
async fn an_answer_that_arrives_at_the_address_of_another_issuer_is_a_mix_up() {
    let (web, (clock, store)) = (other().await, shared());
    let place = "/.well-known/oauth-authorization-server";
    let mut metadata: Value = serde_json::from_str(&web.held(place)).unwrap();
    // An issuer that does not name itself in its answers: nothing but the address tells whose they are.
    metadata["authorization_response_iss_parameter_supported"] = json!(false);
    web.on(place, Reply::json(metadata));
    let (site, vault) = site(&web, &clock, &store).await;
    let who = principal("user:alice");
    let browser = site.browser();
    for elsewhere in [place_of("https://honest.example"), "/oauth/connect/x".to_owned()] {
        let url = vault.authorize(APP, &who, &[]).await.unwrap().url;
        let asked = open(&browser, &url, "alice").await.location();
        let pairs = [("state", asked["state"].as_str()), ("code", "code-of-the-honest-one")];
        assert_eq!(answer_at(&browser, &elsewhere, &pairs).await.status, 400);
        assert_eq!(answer(&browser, &web, &pairs).await.status, 400, "the state is used up");
    }
    assert!(sent(&web, "/token").is_empty(), "no code went to the other one");
    let url = vault.authorize(APP, &who, &[]).await.unwrap().url;
    let asked = open(&browser, &url, "alice").await.location();
    let done = answer(&browser, &web, &[("state", &asked["state"]), ("code", "c")]).await;
    assert_eq!(done.status, 200, "{}", done.text);
}

#[tokio::test]
async fn metadata_that_names_another_issuer_or_resource_or_lacks_pkce_connects_nobody() {
    let well_known = "/.well-known/oauth-authorization-server";
    for (place, member, value) in [
        (well_known, "issuer", json!("https://evil.example")),
        (well_known, "code_challenge_methods_supported", json!(["plain"])),
        (well_known, "authorization_endpoint", json!("javascript:alert(1)")),
        (well_known, "authorization_endpoint", json!("data:text/html,x")),
        (well_known, "authorization_endpoint", json!("/authorize")),
        (well_known, "authorization_endpoint", json!("https://as.example/authorize#f")),
        (well_known, "authorization_endpoint", json!("https://as.example;script-src/authorize")),
        (well_known, "token_endpoint", json!("https://user@as.example/token")),
        (well_known, "registration_endpoint", json!("file:///etc/passwd")),
        ("/.well-known/oauth-protected-resource/mcp", "resource", json!("https://evil.example/mcp")),
    ] {
        let (web, (clock, store)) = (other().await, shared());
        let mut changed: Value = serde_json::from_str(&web.held(place)).unwrap();
        changed[member] = value;
        web.on(place, Reply::json(changed));
        let (site, vault) = site(&web, &clock, &store).await;
        let url = vault.authorize(APP, &principal("user:alice"), &[]).await.unwrap().url;
        let answer = site.browser().get(&path(&url)).await;
        assert_eq!(answer.status, StatusCode::BAD_GATEWAY, "{member}");
        assert!(sent(&web, "/register").is_empty());
    }
}

#[tokio::test]
async fn a_token_about_to_expire_is_refreshed_by_one_instance_for_all() {
    let (web, (clock, store)) = (other().await, shared());
    let (first, vault) = site(&web, &clock, &store).await;
    let (_second, other_vault) = site(&web, &clock, &store).await;
    connect(&first, &vault, &web, "alice").await;
    assert_eq!(token(&other_vault, "alice").await.as_deref(), Some("access-1"), "instances share the vault");
    web.on("/token", tokens("access-2", "refresh-2"));
    clock.advance(Duration::from_secs(545));
    let all = futures::future::join_all((0..8).map(|n| {
        let vault = if n % 2 == 0 { vault.clone() } else { other_vault.clone() };
        async move { token(&vault, "alice").await }
    }));
    for held in all.await {
        assert_eq!(held.as_deref(), Some("access-2"));
    }
    let refreshes: Vec<_> =
        sent(&web, "/token").into_iter().filter(|pairs| pairs["grant_type"] == "refresh_token").collect();
    assert_eq!(refreshes.len(), 1, "once for both instances");
    assert_eq!(
        (refreshes[0]["refresh_token"].as_str(), refreshes[0]["resource"].clone()),
        ("refresh-1", web.url("/mcp"))
    );
    assert_eq!(first.events("upstream.refreshed") + _second.events("upstream.refreshed"), 1);
}

#[tokio::test]
async fn a_refused_token_is_exchanged_and_forgotten_when_that_is_refused_too() {
    let (web, (clock, store)) = (other().await, shared());
    let (site, vault) = site(&web, &clock, &store).await;
    connect(&site, &vault, &web, "alice").await;
    let who = principal("user:alice");
    web.on("/token", tokens("access-2", "refresh-2"));
    let refused = BearerToken::new("access-1");
    let other = vault.refused(APP, &who, &refused).await.unwrap().unwrap();
    assert_eq!(other.expose(), "access-2");
    assert_eq!(
        vault.refused(APP, &who, &refused).await.unwrap().unwrap().expose(),
        "access-2",
        "no second refresh for an old one"
    );
    web.on("/token", Reply { status: 503, ..Reply::json("{}") });
    assert!(vault.refused(APP, &who, &other).await.is_err(), "a server that is down ends nothing");
    assert_eq!(token(&vault, "alice").await.as_deref(), Some("access-2"));
    web.on("/token", Reply { status: 400, ..Reply::json(json!({"error": "invalid_grant"})) });
    assert!(vault.refused(APP, &who, &other).await.unwrap().is_none());
    assert_eq!(token(&vault, "alice").await, None, "the user must authorize again");
    assert_eq!(site.events("upstream.lost"), 1);
}

#[tokio::test]
async fn a_user_who_disconnects_while_their_token_is_refreshed_stays_disconnected() {
    let (web, (clock, store)) = (other().await, shared());
    let (site, vault) = site(&web, &clock, &store).await;
    connect(&site, &vault, &web, "alice").await;
    let browser = site.browser();
    let page = account(&browser, "alice").await;
    let csrf = page.field("csrf");
    for answer in [tokens("access-2", "refresh-2"), Reply { status: 400, ..tokens("", "") }] {
        let (gate, before) = (web.hold("/token"), web.count("/token"));
        web.on("/token", answer);
        clock.advance(Duration::from_secs(545));
        let disconnect = async {
            while web.count("/token") == before {
                tokio::task::yield_now().await;
            }
            let fields = [("csrf", csrf.as_str()), ("action", "disconnect"), ("app", APP)];
            assert_eq!(browser.post(ACCOUNT, &fields).await.status, 303);
            gate.add_permits(1);
        };
        let alice = principal("user:alice");
        let (refreshed, ()) = tokio::join!(vault.bearer(APP, &alice, &[]), disconnect);
        assert!(!matches!(refreshed, Ok(Some(_))), "{refreshed:?}");
        assert_eq!(token(&vault, "alice").await, None);
        assert!(!browser.get(ACCOUNT).await.text.contains("value=\"notes\""));
        gate.add_permits(100);
        web.on("/token", tokens("access-1", "refresh-1"));
        connect(&site, &vault, &web, "alice").await;
    }
}

#[tokio::test]
async fn the_account_page_shows_what_is_connected_and_disconnects_it() {
    let (web, (clock, store)) = (other().await, shared());
    let (site, vault) = site(&web, &clock, &store).await;
    let browser = site.browser();
    let page = account(&browser, "alice").await;
    assert!(page.text.contains("asks you to connect it"), "{}", page.text);
    for user in ["alice", "bob"] {
        connect(&site, &vault, &web, user).await;
    }
    let page = browser.get(ACCOUNT).await;
    assert!(page.text.contains("value=\"notes\"") && page.text.contains("127.0.0.1"), "{}", page.text);
    let csrf = page.field("csrf");
    let disconnect = [("csrf", csrf.as_str()), ("action", "disconnect"), ("app", APP)];
    assert_eq!(browser.post(ACCOUNT, &disconnect).await.status, 303);
    assert_eq!((token(&vault, "alice").await, site.events("upstream.disconnected")), (None, 1));
    assert!(token(&vault, "bob").await.is_some(), "of another user");
    let again = browser.post(ACCOUNT, &disconnect).await;
    assert!(again.status == 400 && again.text.contains("not connected any more"), "{}", again.text);
}

#[tokio::test]
async fn our_client_document_names_itself_and_a_changed_address_has_no_token() {
    let (web, (clock, store)) = (other().await, shared());
    let (site, vault) = site(&web, &clock, &store).await;
    let request =
        Request::get(format!("{}/client.json", place_of(&web.url("")))).body(Body::empty()).unwrap();
    let response = vault.router().oneshot(request).await.unwrap();
    let body = axum::body::to_bytes(response.into_body(), 1 << 16).await.unwrap();
    let document: Value = serde_json::from_slice(&body).unwrap();
    let redirects = json!([format!("{ISSUER}{}/callback", place_of(&web.url("")))]);
    assert_eq!(document["redirect_uris"], redirects);
    assert_eq!(document["client_id"], format!("{ISSUER}{}/client.json", place_of(&web.url(""))));
    connect(&site, &vault, &web, "alice").await;
    let moved = UpstreamProvider {
        app: APP.into(),
        resource: web.url("/elsewhere"),
        client_id: None,
        client_secret: None,
        scopes: Vec::new(),
        issuer: None,
        is_mcp: true,
        endpoints: None,
        parameters: Vec::new(),
        allow_private: true,
    };
    vault.serve(moved).unwrap();
    assert_eq!(token(&vault, "alice").await, None, "a token is for the server it was issued for");
}

#[tokio::test]
async fn a_server_that_registers_nobody_says_what_whoever_runs_the_gateway_has_to_do() {
    let (web, (clock, store)) = (other().await, shared());
    let place = "/.well-known/oauth-authorization-server";
    let mut metadata: Value = serde_json::from_str(&web.held(place)).unwrap();
    metadata.as_object_mut().unwrap().shift_remove("registration_endpoint");
    web.on(place, Reply::json(metadata.clone()));
    let (site, vault) = site(&web, &clock, &store).await;
    let who = principal("user:alice");
    let url = vault.authorize(APP, &who, &[]).await.unwrap().url;
    let browser = site.browser();
    let refused = open(&browser, &url, "alice").await;
    assert_eq!(refused.status, StatusCode::BAD_GATEWAY);
    assert!(refused.text.contains("auth.clientId"), "{}", refused.text);
    let redirect = format!("{ISSUER}{}/callback", place_of(&web.url("")));
    assert!(refused.text.contains(&redirect), "what to register: {}", refused.text);
    // It takes client documents: then nobody has to do anything.
    metadata["client_id_metadata_document_supported"] = json!(true);
    web.on(place, Reply::json(metadata));
    clock.advance(Duration::from_secs(3600));
    let url = vault.authorize(APP, &who, &[]).await.unwrap().url;
    let asked = open(&site.browser(), &url, "alice").await.location();
    assert_eq!(asked["client_id"], format!("{ISSUER}{}/client.json", place_of(&web.url(""))));
    assert!(sent(&web, "/register").is_empty());
}

#[tokio::test]
async fn each_user_gets_their_own_token_and_the_newest_refresh_token_is_used() {
    let (web, (clock, store)) = (other().await, shared());
    let (site, vault) = site(&web, &clock, &store).await;
    web.on("/token", tokens("of-alice-1", "refresh-alice-1"));
    connect(&site, &vault, &web, "alice").await;
    web.on("/token", tokens("of-bob-1", "refresh-bob-1"));
    connect(&site, &vault, &web, "bob").await;
    let both = || async { (token(&vault, "alice").await.unwrap(), token(&vault, "bob").await.unwrap()) };
    assert_eq!(both().await, ("of-alice-1".into(), "of-bob-1".into()));
    for round in 2..5 {
        clock.advance(Duration::from_secs(545));
        web.on("/token", tokens(&format!("of-alice-{round}"), &format!("refresh-alice-{round}")));
        assert_eq!(token(&vault, "alice").await.unwrap(), format!("of-alice-{round}"));
        let last = sent(&web, "/token").pop().unwrap();
        assert_eq!(last["refresh_token"], format!("refresh-alice-{}", round - 1), "the server rotates");
        web.on("/token", tokens(&format!("of-bob-{round}"), &format!("refresh-bob-{round}")));
        assert_eq!(token(&vault, "bob").await.unwrap(), format!("of-bob-{round}"));
    }
    // One user's loss is nobody else's.
    web.on("/token", Reply { status: 400, ..Reply::json(json!({"error": "invalid_grant"})) });
    let held = BearerToken::new("of-alice-4");
    assert!(vault.refused(APP, &principal("user:alice"), &held).await.unwrap().is_none());
    assert_eq!(token(&vault, "alice").await, None);
    assert_eq!(token(&vault, "bob").await.as_deref(), Some("of-bob-4"));
}

#[tokio::test]
async fn a_server_that_quarrels_with_the_gateway_itself_loses_nobody_their_connection() {
    let (web, (clock, store)) = (other().await, shared());
    let (site, vault) = site(&web, &clock, &store).await;
    connect(&site, &vault, &web, "alice").await;
    clock.advance(Duration::from_secs(601));
    web.on("/token", Reply { status: 401, ..Reply::json(json!({"error": "invalid_client"})) });
    let failed = vault.bearer(APP, &principal("user:alice"), &[]).await.unwrap_err();
    assert!(failed.contains("invalid_client"), "{failed}");
    web.on("/token", tokens("access-2", "refresh-2"));
    assert_eq!(token(&vault, "alice").await.as_deref(), Some("access-2"));
}

#[tokio::test]
async fn calls_without_a_connection_get_one_address_until_it_is_used_or_nobody_asks_for_it() {
    let (web, (clock, store)) = (other().await, shared());
    let (site, vault) = site(&web, &clock, &store).await;
    let authorize = async |user: &str, scopes: &[&str]| {
        let scopes: Vec<String> = scopes.iter().map(ToString::to_string).collect();
        vault.authorize(APP, &principal(user), &scopes).await.unwrap()
    };
    let first = authorize("user:alice", &[]).await;
    for _ in 0..100 {
        assert_eq!(authorize("user:alice", &[]).await, first);
    }
    assert_eq!(store.list("connect", 1000).await.unwrap().len(), 1, "one record for all calls");
    let others = [authorize("user:bob", &[]).await, authorize("user:alice", &["more"]).await];
    assert!(others[0] != first && others[1] != first && others[0] != others[1]);
    for _ in 0..3 {
        clock.advance(Duration::from_secs(800));
        assert_eq!(authorize("user:alice", &[]).await, first, "it lives while it is given out");
    }
    let asked = open(&site.browser(), &first.url, "alice").await;
    assert!(asked.location().contains_key("state"), "{}", asked.text);
    let second = authorize("user:alice", &[]).await;
    assert_ne!(second, first, "it was used up");
    assert_eq!(site.browser().get(&path(&first.url)).await.status, 400);
    clock.advance(Duration::from_secs(901));
    assert_ne!(authorize("user:alice", &[]).await, second, "it was over");
    assert_eq!(site.browser().get(&path(&second.url)).await.status, 400);
    for bad in ["", ".", "x.y", "x"] {
        assert_eq!(site.browser().get(&format!("/oauth/connect?id={bad}")).await.status, 400, "{bad}");
    }
}
