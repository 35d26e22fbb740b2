//! Authorization requests (checklist A).

use axum::body::Body;
use http::{Method, Request, StatusCode};
use serde_json::json;

use crate::support::site::{Answer, ISSUER, REDIRECT, Site, ask, post};

fn is_page(answer: &Answer, what: &str) {
    assert_eq!(answer.status, 400, "{what}: {}", answer.text);
    assert!(answer.header("location").is_empty() && answer.text.contains("<html"), "{what}");
}

fn is_error(answer: &Answer, code: &str, what: &str) {
    assert_eq!(answer.status, 302, "{what}: {}", answer.text);
    assert!(answer.header("location").starts_with(&format!("{REDIRECT}?")), "{what}");
    let location = answer.location();
    assert_eq!(location.get("error").map(String::as_str), Some(code), "{what}");
    assert_eq!(location["state"], "s-123", "{what}");
    assert_eq!(location["iss"], ISSUER, "{what}");
}

#[tokio::test]
async fn a01_and_a26_a_redirect_that_is_not_registered_to_the_letter_never_redirects() {
    let site = Site::new().await;
    for uri in [
        "https://c.example/cb/",
        "https://c.example/CB",
        "https://c.example/cb?x=1",
        "https://c.example/cb%2f",
        "https://c.example//cb",
        "https://evil.example/cb",
        "HTTPS://c.example/cb",
    ] {
        is_page(&site.get(&ask(&[("redirect_uri", uri)])).await, uri);
        is_page(&site.get(&ask(&[("redirect_uri", uri), ("scope", "root")])).await, uri);
    }
}

#[tokio::test]
async fn a02_a_loopback_redirect_may_have_any_port() {
    let site = Site::new().await;
    let ok = site.get(&ask(&[("redirect_uri", "http://127.0.0.1:2222/cb")])).await;
    assert_eq!(ok.status, 200);
    for uri in ["http://127.0.0.1:2222/cbx", "http://127.0.0.2:1111/cb", "https://127.0.0.1:1111/cb"] {
        is_page(&site.get(&ask(&[("redirect_uri", uri)])).await, uri);
    }
}

#[tokio::test]
async fn a03_and_a04_an_unknown_client_never_redirects() {
    let site = Site::new().await;
    for id in ["zzz", "", "https://"] {
        is_page(&site.get(&ask(&[("client_id", id), ("redirect_uri", "https://evil.example/")])).await, id);
    }
}

#[tokio::test]
async fn a05_and_a06_redirects_are_https_loopback_or_reverse_domain_and_hide_nothing() {
    let base =
        |uri: &str| json!({"clients": [{"clientId": "app", "redirectUris": [uri]}], "mode": "orchestrated"});
    let deployment = gatewright_auth::Deployment::new(ISSUER, "/mcp", "Notes");
    for bad in [
        "https://c/cb#f",
        "https://u@c/cb",
        "javascript:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "http://c.example/cb",
        "myapp:/cb",
    ] {
        let config: gatewright_auth::AuthConfig = serde_json::from_value(base(bad)).unwrap();
        assert_eq!(config.validate(&deployment).len(), 1, "{bad}");
    }
    let config: gatewright_auth::AuthConfig = serde_json::from_value(base("com.example.app:/cb")).unwrap();
    assert!(config.validate(&deployment).is_empty());
    let site = Site::new().await;
    for bad in ["https://c.example/cb#f", "https://u@c.example/cb", "javascript:alert(1)"] {
        is_page(&site.get(&ask(&[("redirect_uri", bad)])).await, bad);
    }
}

#[tokio::test]
async fn a07_a08_and_a09_an_s256_challenge_of_43_characters_is_required() {
    let site = Site::new().await;
    is_error(&site.get(&ask(&[("code_challenge", "")])).await, "invalid_request", "none");
    is_error(&site.get(&ask(&[("code_challenge_method", "plain")])).await, "invalid_request", "plain");
    is_error(&site.get(&ask(&[("code_challenge_method", "")])).await, "invalid_request", "no method");
    for challenge in
        ["x".repeat(42), "x".repeat(129), format!("{}=", "A".repeat(42)), format!("{}+", "A".repeat(42))]
    {
        is_error(&site.get(&ask(&[("code_challenge", &challenge)])).await, "invalid_request", &challenge);
    }
}

#[tokio::test]
async fn a10_and_a33_only_codes_in_the_query() {
    let site = Site::new().await;
    for kind in ["token", "id_token", "code token"] {
        is_error(&site.get(&ask(&[("response_type", kind)])).await, "unsupported_response_type", kind);
    }
    is_error(&site.get(&ask(&[("response_type", "")])).await, "invalid_request", "none");
    is_error(&site.get(&ask(&[("response_mode", "fragment")])).await, "invalid_request", "fragment");
}

#[tokio::test]
async fn a11_and_a12_repeated_parameters_are_refused_and_empty_or_unknown_ones_ignored() {
    let site = Site::new().await;
    is_page(&site.get(&(ask(&[]) + "&client_id=other")).await, "client_id");
    is_page(&site.get(&(ask(&[]) + "&redirect_uri=https://c.example/cb")).await, "redirect_uri");
    let twice = site.get(&(ask(&[]) + "&state=again")).await;
    assert_eq!(twice.location()["error"], "invalid_request");
    assert_eq!(twice.location().get("state"), None, "neither of the two is echoed");
    assert_eq!(site.get(&(ask(&[("scope", "")]) + "&scope=&foo=bar")).await.status, 200);
}

#[tokio::test]
async fn a13_and_a23_forms_by_post_answer_with_303_and_other_methods_with_405() {
    let site = Site::new().await;
    let query = ask(&[]);
    let form = query.split_once('?').unwrap().1.to_owned();
    let send = |form: String| {
        let mut request = post("/oauth/authorize", &[]);
        *request.body_mut() = Body::from(form);
        request
    };
    assert_eq!(site.send(send(form.clone())).await.status, 200);
    assert_eq!(site.send(send(form.replace("S256", "plain"))).await.status, 303);
    let answer = site.browser().request(Method::PUT, "/oauth/authorize").await;
    assert_eq!(answer.status, 405);
    assert!(answer.header("allow").contains("GET") && answer.header("allow").contains("POST"));
    let browser = site.browser();
    let page = browser.get(&query).await;
    assert_eq!(browser.log_in(&page, "alice", crate::support::site::PASSWORD).await.status, 303);
}

#[tokio::test]
async fn a14_a15_and_a16_state_and_issuer_come_back_to_the_letter() {
    let site = Site::new().await;
    let long = "é+%20 %\"<&=".repeat(200);
    for state in ["ü + %41 &=?#", &long] {
        let browser = site.browser();
        let page = browser.to_consent(&[("state", state), ("prompt", "consent")]).await;
        let location = browser.decide(&page, &["read"], "allow").await.location();
        assert_eq!((location["state"].as_str(), location["iss"].as_str()), (state, ISSUER));
        let refused = site.get(&ask(&[("state", state), ("response_type", "token")])).await.location();
        assert_eq!((refused["state"].as_str(), refused["iss"].as_str()), (state, ISSUER));
    }
    is_page(&site.get(&ask(&[("state", &"x".repeat(5000))])).await, "too long");
    let none = site.get(&ask(&[("state", "")])).await;
    assert_eq!(none.location()["error"], "invalid_request", "state is required");
}

#[tokio::test]
async fn state_may_be_left_out_where_the_configuration_says_so_and_pkce_may_not() {
    let site = Site::with(json!({"stateOptional": true})).await;
    let browser = site.browser();
    let page = browser.to_consent(&[("state", ""), ("prompt", "consent")]).await;
    let location = browser.decide(&page, &["read"], "allow").await.location();
    assert!(!location.contains_key("state") && location["iss"] == ISSUER, "{location:?}");
    assert_eq!(site.redeem(&location["code"]).await.status, 200);
    let refused = site.get(&ask(&[("state", ""), ("code_challenge", "")])).await.location();
    assert_eq!((refused["error"].as_str(), refused.get("state")), ("invalid_request", None));
}

#[tokio::test]
async fn a17_a18_a19_and_a20_a_resource_must_be_ours() {
    let site = Site::new().await;
    for resource in [
        "mcp",
        "https://mcp.example/mcp#f",
        "https://other.example/mcp",
        "https://mcp.example/mcp/",
        "https://mcp.example",
    ] {
        is_error(&site.get(&ask(&[("resource", resource)])).await, "invalid_target", resource);
    }
    let two = ask(&[("resource", "https://mcp.example/mcp")]) + "&resource=https://other.example/mcp";
    is_error(&site.get(&two).await, "invalid_target", "two");
    for resource in ["https://mcp.example/mcp", "HTTPS://MCP.EXAMPLE/mcp", "https://mcp.example:443/mcp"] {
        assert_eq!(site.get(&ask(&[("resource", resource)])).await.status, 200, "{resource}");
    }
}

#[tokio::test]
async fn a21_and_e03_without_scope_and_resource_the_defaults_are_granted_and_reported() {
    let site = Site::new().await;
    let tokens = site.redeem(&site.code(&[("scope", "")]).await).await.json();
    assert_eq!(tokens["scope"], "read write");
    let claims = crate::support::site::claims(tokens["access_token"].as_str().unwrap());
    assert_eq!(claims["aud"], "https://mcp.example/mcp");
}

#[tokio::test]
async fn a22_unknown_scopes_are_dropped_and_reported_and_nothing_else_is_an_error() {
    let site = Site::new().await;
    is_error(&site.get(&ask(&[("scope", "root")])).await, "invalid_scope", "only unknown");
    let tokens = site.redeem(&site.code(&[("scope", "read root")]).await).await.json();
    assert_eq!(tokens["scope"], "read");
}

#[tokio::test]
async fn a24_a25_and_b05_to_b07_pages_leak_nothing_and_cannot_be_framed_or_kept() {
    let site = Site::new().await;
    let browser = site.browser();
    let login = browser.get(&ask(&[])).await;
    let consent = browser.to_consent(&[]).await;
    let error = site.get(&ask(&[("client_id", "zzz")])).await;
    let signed_out = site.get("/oauth/logout").await;
    for page in [&login, &consent, &error, &signed_out] {
        assert_eq!(page.header("referrer-policy"), "no-referrer");
        assert_eq!(page.header("x-frame-options"), "DENY");
        assert_eq!(page.header("cache-control"), "no-store");
        assert!(page.header("access-control-allow-origin").is_empty());
        let policy = page.header("content-security-policy");
        for rule in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"]
        {
            assert!(policy.contains(rule), "{policy}");
        }
        assert!(!policy.contains("unsafe") && !page.text.contains("<script") && !page.text.contains("<img"));
        assert!(!page.text.contains("src=") && !page.text.contains("url(") && !page.text.contains("@import"));
        let links: Vec<&str> = page.text.split("<link ").skip(1).collect();
        assert!(matches!(links[..], [icon] if icon.starts_with("rel=\"icon\" href=\"data:")), "{links:?}");
    }
    assert!(consent.header("content-security-policy").contains("form-action 'self' https:"));
    let redirect = site.get(&ask(&[("response_type", "token")])).await;
    assert_eq!(redirect.header("referrer-policy"), "no-referrer");
    let preflight = Request::builder()
        .method(Method::OPTIONS)
        .uri("/oauth/authorize")
        .header("origin", "https://evil.example")
        .body(Body::empty())
        .unwrap();
    assert!(site.send(preflight).await.header("access-control-allow-origin").is_empty());
}

#[tokio::test]
async fn a27_prompt_none_shows_nothing() {
    let site = Site::new().await;
    is_error(&site.get(&ask(&[("prompt", "none")])).await, "login_required", "no session");
    let browser = site.browser();
    browser.to_consent(&[]).await;
    is_error(&browser.get(&ask(&[("prompt", "none")])).await, "consent_required", "no consent");
    browser.code(&[]).await;
    assert!(browser.get(&ask(&[("prompt", "none")])).await.location().contains_key("code"));
}

#[tokio::test]
async fn a28_prompts_and_max_age_force_their_step() {
    let site = Site::new().await;
    let browser = site.browser();
    browser.code(&[]).await;
    assert!(browser.get(&ask(&[])).await.location().contains_key("code"), "remembered");
    for (name, value) in [("prompt", "login"), ("max_age", "0")] {
        assert!(browser.get(&ask(&[(name, value)])).await.text.contains("name=\"password\""), "{name}");
    }
    assert!(browser.get(&ask(&[("prompt", "consent")])).await.text.contains("name=\"decision\""));
}

#[tokio::test]
async fn a29_a_request_of_32_kb_is_refused() {
    let site = Site::new().await;
    let answer = site.get(&ask(&[("foo", &"x".repeat(32_000))])).await;
    assert_eq!(answer.status, StatusCode::URI_TOO_LONG);
}

#[tokio::test]
async fn a30_a_pushed_request_is_used_once_in_time_by_its_client() {
    let site = Site::new().await;
    let query = ask(&[]);
    let pairs: Vec<(String, String)> =
        url::form_urlencoded::parse(query.split_once('?').unwrap().1.as_bytes()).into_owned().collect();
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let push = || async {
        let answer = site.post("/oauth/par", &pairs).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        let body = answer.json();
        assert!(body["expires_in"].as_u64().unwrap() <= 600);
        body["request_uri"].as_str().unwrap().to_owned()
    };
    let go = |uri: String, client: &'static str| async move {
        ask(&[]).split('?').next().unwrap().to_owned() + &format!("?client_id={client}&request_uri={uri}")
    };
    let uri = push().await;
    assert_eq!(site.get(&go(uri.clone(), "app").await).await.status, 200);
    is_page(&site.get(&go(uri, "app").await).await, "used");
    let uri = push().await;
    is_page(&site.get(&go(uri.clone(), "other").await).await, "another client");
    assert_eq!(site.get(&go(uri, "app").await).await.status, 200, "another client does not use it up");
    let late = push().await;
    site.clock.advance(std::time::Duration::from_secs(91));
    is_page(&site.get(&go(late, "app").await).await, "expired");
    let mut bad = pairs.clone();
    bad.retain(|(name, _)| *name != "code_challenge");
    assert_eq!(site.post("/oauth/par", &bad).await.error(), "invalid_request");
}

#[tokio::test]
async fn a31_pushing_can_be_required() {
    let site = Site::with(json!({"requirePar": true})).await;
    is_page(&site.get(&ask(&[])).await, "a plain request");
}

#[tokio::test]
async fn a32_request_objects_are_not_accepted() {
    let site = Site::new().await;
    is_error(
        &site.get(&ask(&[("request", "eyJhbGciOiJub25lIn0.e30.")])).await,
        "request_not_supported",
        "unsigned",
    );
    assert_eq!(site.server_metadata().await["request_parameter_supported"], false);
}

impl Site {
    pub(crate) async fn server_metadata(&self) -> serde_json::Value {
        self.get("/.well-known/oauth-authorization-server").await.json()
    }
}
