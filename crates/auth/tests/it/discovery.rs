//! Metadata and key set (checklist G), and clients that register or describe themselves (H).

use axum::body::Body;
use http::{Method, Request};
use serde_json::{Value, json};

use crate::support::site::{Answer, ISSUER, RESOURCE, SECRET, Site, ask, basic, post};

#[tokio::test]
async fn g01_and_g02_an_issuer_with_a_path_answers_at_all_three_addresses() {
    let clock = std::sync::Arc::new(gatewright_auth::ManualClock::from_system());
    let store = std::sync::Arc::new(gatewright_auth::store::MemoryStore::new(clock.clone()));
    let site = Site::at("https://mcp.example/t1", json!({}), clock, store).await;
    for path in [
        "/.well-known/oauth-authorization-server/t1",
        "/.well-known/openid-configuration/t1",
        "/t1/.well-known/openid-configuration",
    ] {
        let answer = site.get(path).await;
        assert_eq!(answer.json()["issuer"], "https://mcp.example/t1", "{path}");
    }
    for base in ["", "/t1"] {
        assert_eq!(site.get(&format!("{base}/.well-known/jwks.json")).await.status, 200);
        assert_eq!(
            site.post(&format!("{base}/oauth/token"), &[("grant_type", "x")]).await.error(),
            "unsupported_grant_type"
        );
        assert_eq!(site.get(&format!("{base}{}", ask(&[]))).await.status, 200);
    }
    let site = Site::new().await;
    assert_eq!(site.server_metadata().await["issuer"], ISSUER);
    assert_eq!(site.get("/.well-known/openid-configuration").await.json()["issuer"], ISSUER);
}

#[tokio::test]
async fn g03_g04_g05_g06_and_d17_metadata_says_what_is_on() {
    let site = Site::new().await;
    let body = site.server_metadata().await;
    assert_eq!(body["code_challenge_methods_supported"], json!(["S256"]));
    assert_eq!(body["authorization_response_iss_parameter_supported"], true);
    assert_eq!(body["client_id_metadata_document_supported"], true);
    assert_eq!(body.get("registration_endpoint"), None);
    assert!(body["scopes_supported"].as_array().unwrap().contains(&json!("offline_access")));
    let resource = site.get("/.well-known/oauth-protected-resource/mcp").await;
    assert!(!resource.text.contains("offline_access"));
    let site = Site::with(json!({"dcrEnabled": true, "cimd": {"enabled": false}})).await;
    let body = site.server_metadata().await;
    assert_eq!(body.get("client_id_metadata_document_supported"), None);
    assert_eq!(body["registration_endpoint"], "https://mcp.example/oauth/register");
}

#[tokio::test]
async fn g07_every_listed_authentication_method_works_and_others_do_not() {
    let site = Site::new().await;
    let listed = site.server_metadata().await["token_endpoint_auth_methods_supported"].clone();
    assert_eq!(listed, json!(["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]));
    // `none` is used by every test with `app`, the secrets by c19, `private_key_jwt` by c24.
    let mut request = post("/oauth/token", &[("grant_type", "client_credentials")]);
    request.headers_mut().insert("authorization", "Digest x".parse().unwrap());
    assert_eq!(site.send(request).await.status, 401);
}

#[tokio::test]
async fn g08_and_g09_resource_metadata_names_the_resource_it_was_asked_for() {
    let site = Site::new().await;
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"] {
        let body = site.get(path).await.json();
        assert_eq!(body["resource"], RESOURCE);
        assert_eq!(body["authorization_servers"], json!([ISSUER]));
        assert_eq!(body["scopes_supported"], json!(["read", "write"]));
        assert_eq!(body["bearer_methods_supported"], json!(["header"]));
    }
}

#[tokio::test]
async fn g10_and_g11_metadata_can_be_kept_for_minutes_and_read_from_browsers() {
    let site = Site::new().await;
    for path in [
        "/.well-known/oauth-authorization-server",
        "/.well-known/jwks.json",
        "/.well-known/oauth-protected-resource",
    ] {
        let answer = site.get(path).await;
        assert_eq!(
            answer.header("cache-control"),
            "public, max-age=300",
            "shorter than a key is published ahead (j01)"
        );
        assert_eq!(answer.header("access-control-allow-origin"), "*");
        assert!(answer.header("access-control-allow-credentials").is_empty());
    }
    for path in ["/oauth/token", "/oauth/revoke", "/oauth/register"] {
        let answer = site.browser().request(Method::OPTIONS, path).await;
        assert_eq!(answer.status, 204, "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), "*");
        assert!(answer.header("access-control-allow-headers").contains("authorization"));
    }
}

#[tokio::test]
async fn g13_plain_http_is_for_loopback_only() {
    let config: gatewright_auth::AuthConfig =
        serde_json::from_value(json!({"mode": "orchestrated"})).unwrap();
    let problems = |url: &str| config.validate(&gatewright_auth::Deployment::new(url, "/mcp", "N"));
    assert_eq!(problems("http://mcp.example")[0].path, "auth.publicUrl");
    for url in ["http://127.0.0.1:3000", "http://localhost:3000", "http://[::1]:3000", "https://mcp.example"]
    {
        assert!(problems(url).is_empty(), "{url}");
    }
}

async fn dcr(over: Value) -> Site {
    let mut all = json!({"dcrEnabled": true});
    crate::support::site::merge(&mut all, over);
    Site::with(all).await
}

async fn register(site: &Site, body: &str) -> Answer {
    let request = Request::post("/oauth/register").header("content-type", "application/json");
    site.send(request.body(Body::from(body.to_owned())).unwrap()).await
}

async fn manage(site: &Site, method: Method, id: &str, token: &str, body: &str) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(format!("/oauth/register/{id}"))
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {token}"));
    site.send(request.body(Body::from(body.to_owned())).unwrap()).await
}

#[tokio::test]
async fn a_client_whose_name_shows_nothing_is_unnamed() {
    let site = dcr(json!({})).await;
    for name in ["", "  ", "\u{202e}\u{200b}"] {
        let body = json!({"client_name": name, "redirect_uris": ["https://n.example/cb"]}).to_string();
        assert_eq!(register(&site, &body).await.json()["client_name"], "An unnamed client", "{name:?}");
    }
}

#[tokio::test]
async fn h01_a_registration_is_answered_in_full_and_works() {
    let site = dcr(json!({})).await;
    let answer = register(&site, r#"{"client_name":"New","redirect_uris":["https://n.example/cb"]}"#).await;
    assert_eq!((answer.status.as_u16(), answer.header("cache-control")), (201, "no-store"));
    let body = answer.json();
    assert!(body["client_id_issued_at"].as_u64().unwrap() >= site.now_s() - 1);
    assert_eq!(body["client_secret_expires_at"], 0);
    assert!(body["client_secret"].as_str().unwrap().len() >= 43);
    let public =
        register(&site, r#"{"redirect_uris":["https://n.example/cb"],"token_endpoint_auth_method":"none"}"#)
            .await
            .json();
    assert_eq!(public.get("client_secret"), None);
    let id = public["client_id"].as_str().unwrap();
    let code = site.code(&[("client_id", id), ("redirect_uri", "https://n.example/cb")]).await;
    assert_eq!(site.redeem_with(&code, &[("client_id", id)]).await.status, 200);
    assert_eq!(site.events("client.registered"), 2);
}

#[tokio::test]
async fn a_client_that_changes_its_registration_leaves_an_event() {
    let site = dcr(json!({})).await;
    let body =
        register(&site, r#"{"client_name":"Before","redirect_uris":["https://n.example/cb"]}"#).await.json();
    let id = body["client_id"].as_str().unwrap();
    let token = body["registration_access_token"].as_str().unwrap();
    let changed = json!({"client_id": id, "client_name": "After", "redirect_uris": ["https://m.example/cb"]});
    let refused = manage(&site, Method::PUT, id, "junk", &changed.to_string()).await;
    assert_eq!((refused.status.as_u16(), site.events("client.updated")), (401, 0));
    let answer = manage(&site, Method::PUT, id, token, &changed.to_string()).await;
    assert_eq!((answer.status.as_u16(), site.events("client.updated")), (200, 1), "{}", answer.text);
    let heard = site.heard.0.lock().unwrap();
    let event = heard.iter().find(|event| event.event == "client.updated").unwrap();
    assert_eq!((event.client.as_deref(), event.ip.as_deref()), (Some(id), Some("192.0.2.7")));
}

#[tokio::test]
async fn h02_h08_h09_and_h10_unacceptable_metadata_is_refused_with_its_code() {
    let site = dcr(json!({})).await;
    let ok = r#""redirect_uris":["https://n.example/cb"]"#;
    for (body, code) in [
        (r#"{"redirect_uris":["javascript:alert(1)"]}"#.to_owned(), "invalid_redirect_uri"),
        (r#"{"redirect_uris":["http://n.example/cb"]}"#.to_owned(), "invalid_redirect_uri"),
        (r#"{"redirect_uris":["https://n.example/cb#f"]}"#.to_owned(), "invalid_redirect_uri"),
        (r#"{"redirect_uris":[]}"#.to_owned(), "invalid_redirect_uri"),
        (
            r#"{"application_type":"web","redirect_uris":["http://127.0.0.1/cb"]}"#.to_owned(),
            "invalid_redirect_uri",
        ),
        (
            r#"{"application_type":"native","redirect_uris":["http://n.example/cb"]}"#.to_owned(),
            "invalid_redirect_uri",
        ),
        (format!(r#"{{{ok},"application_type":"odd"}}"#), "invalid_client_metadata"),
        (format!(r#"{{{ok},"grant_types":["implicit"]}}"#), "invalid_client_metadata"),
        (format!(r#"{{{ok},"response_types":["token"]}}"#), "invalid_client_metadata"),
        (format!(r#"{{{ok},"token_endpoint_auth_method":"magic"}}"#), "invalid_client_metadata"),
        (format!(r#"{{{ok},"software_statement":"eyJ"}}"#), "invalid_software_statement"),
        (format!(r#"{{{ok},"client_uri":"javascript:x"}}"#), "invalid_client_metadata"),
        (format!(r#"{{{ok},"logo_uri":"https://169.254.169.254/l.png"}}"#), "invalid_client_metadata"),
        (format!(r#"{{{ok},"logo_uri":"https://[::ffff:127.0.0.1]/l.png"}}"#), "invalid_client_metadata"),
    ] {
        let answer = register(&site, &body).await;
        assert_eq!((answer.status.as_u16(), answer.error().as_str()), (400, code), "{body}");
    }
}

#[tokio::test]
async fn h03_registration_that_is_off_is_not_there() {
    let site = Site::new().await;
    assert_eq!(register(&site, "{}").await.status, 404);
}

#[tokio::test]
async fn h04_bodies_that_are_not_metadata_are_400() {
    let site = dcr(json!({})).await;
    for body in [
        "",
        "{}",
        "[]",
        "null",
        "1",
        "{\"redirect_uris\":1}",
        "{\"redirect_uris\":[1]}",
        "{",
        "\u{0}",
        "{\"jwks\":{}}",
    ] {
        let answer = register(&site, body).await;
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.error().starts_with("invalid_"), "{body}");
    }
}

#[tokio::test]
async fn h05_an_initial_access_token_can_be_required() {
    let site = dcr(json!({"dcr": {"initialAccessToken": "let-me-in"}})).await;
    let body = r#"{"redirect_uris":["https://n.example/cb"]}"#;
    let answer = register(&site, body).await;
    assert_eq!((answer.status.as_u16(), answer.error().as_str()), (401, "invalid_token"));
    for (token, status) in [("wrong", 401), ("let-me-in", 201)] {
        let request = Request::post("/oauth/register")
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {token}"));
        assert_eq!(site.send(request.body(Body::from(body)).unwrap()).await.status, status);
    }
}

#[tokio::test]
async fn h06_registrations_are_limited_and_unused_ones_forgotten() {
    let body = r#"{"redirect_uris":["https://n.example/cb"],"token_endpoint_auth_method":"none"}"#;
    let site = dcr(json!({"limits": {"register": 3}})).await;
    for status in [201, 201, 201, 429] {
        assert_eq!(register(&site, body).await.status, status);
    }
    let site = dcr(json!({"dcr": {"mostPerDay": 1}})).await;
    let id = register(&site, body).await.json()["client_id"].as_str().unwrap().to_owned();
    let full = register(&site, body).await;
    assert_eq!(full.status, 503);
    assert!(!full.header("retry-after").is_empty());
    site.clock.advance(std::time::Duration::from_secs(2_592_001));
    assert_eq!(
        site.get(&ask(&[("client_id", &id), ("redirect_uri", "https://n.example/cb")])).await.status,
        400
    );
}

#[tokio::test]
async fn h06_a_registration_in_use_lives_on() {
    let site = dcr(json!({})).await;
    let body = r#"{"redirect_uris":["https://n.example/cb"],"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"]}"#;
    let id = register(&site, body).await.json()["client_id"].as_str().unwrap().to_owned();
    let changes = [("client_id", id.as_str()), ("redirect_uri", "https://n.example/cb")];
    let month = std::time::Duration::from_secs(29 * 86_400);
    site.clock.advance(month);
    let code = site.code(&changes).await;
    let tokens = site.redeem_with(&code, &[("client_id", &id)]).await.json();
    site.clock.advance(std::time::Duration::from_secs(6 * 86_400));
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let refreshed = site.refresh(refresh, &[("client_id", &id)]).await;
    assert_eq!(refreshed.status, 200, "{}", refreshed.text);
    site.clock.advance(month);
    assert_eq!(site.get(&ask(&changes)).await.status, 200, "used within a month");
    // Asking for a page is no use: anybody can.
    site.clock.advance(month);
    assert_eq!(site.get(&ask(&changes)).await.status, 400);
}

#[tokio::test]
async fn h07_a_registration_is_managed_with_its_own_token_only() {
    let site = dcr(json!({})).await;
    let body = r#"{"client_name":"One","redirect_uris":["https://n.example/cb"],"token_endpoint_auth_method":"none"}"#;
    let (one, two) = (register(&site, body).await.json(), register(&site, body).await.json());
    let (id, token) =
        (one["client_id"].as_str().unwrap(), one["registration_access_token"].as_str().unwrap());
    for other in ["", "x", two["registration_access_token"].as_str().unwrap()] {
        for method in [Method::GET, Method::PUT, Method::DELETE] {
            assert_eq!(manage(&site, method, id, other, body).await.status, 401);
        }
    }
    assert_eq!(manage(&site, Method::GET, id, token, "").await.json()["client_name"], "One");
    let renamed = json!({"client_id": id, "client_name": "Two", "redirect_uris": ["https://n.example/cb2"]})
        .to_string();
    assert_eq!(manage(&site, Method::PUT, id, token, &renamed).await.json()["client_name"], "Two");
    assert_eq!(
        site.get(&ask(&[("client_id", id), ("redirect_uri", "https://n.example/cb")])).await.status,
        400
    );
    assert_eq!(manage(&site, Method::DELETE, id, token, "").await.status, 204);
    assert_eq!(manage(&site, Method::GET, id, token, "").await.status, 401);
}

#[tokio::test]
async fn d12_deleting_a_client_ends_its_grants() {
    let site = dcr(json!({})).await;
    let body = r#"{"redirect_uris":["https://n.example/cb"],"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"]}"#;
    let client = register(&site, body).await.json();
    let id = client["client_id"].as_str().unwrap();
    let code = site.code(&[("client_id", id), ("redirect_uri", "https://n.example/cb")]).await;
    let tokens = site.redeem_with(&code, &[("client_id", id)]).await.json();
    site.clock.advance(std::time::Duration::from_millis(5));
    manage(&site, Method::DELETE, id, client["registration_access_token"].as_str().unwrap(), "").await;
    let again = site.refresh(tokens["refresh_token"].as_str().unwrap(), &[("client_id", id)]).await;
    assert_eq!(again.error(), "invalid_client");
    assert_eq!(site.introspect(tokens["access_token"].as_str().unwrap()).await["active"], false);
}

#[tokio::test]
async fn a_client_that_registers_itself_gets_no_tokens_without_a_user() {
    let body = r#"{"grant_types":["client_credentials"],"redirect_uris":[]}"#;
    let site = dcr(json!({})).await;
    assert_eq!(register(&site, body).await.error(), "invalid_client_metadata");
    let site = dcr(json!({"dcr": {"initialAccessToken": "let-me-in"}})).await;
    let request = Request::post("/oauth/register")
        .header("content-type", "application/json")
        .header("authorization", "Bearer let-me-in");
    let client = site.send(request.body(Body::from(body)).unwrap()).await.json();
    let mut request = post("/oauth/token", &[("grant_type", "client_credentials")]);
    let (id, secret) = (client["client_id"].as_str().unwrap(), client["client_secret"].as_str().unwrap());
    request.headers_mut().insert("authorization", basic(id, secret));
    assert_eq!(site.send(request).await.status, 200);
    assert_ne!(secret, SECRET);
}

#[tokio::test]
async fn one_network_gets_a_part_of_the_registrations_of_a_day_and_others_still_register_their_first() {
    let body = r#"{"redirect_uris":["https://n.example/cb"],"token_endpoint_auth_method":"none"}"#;
    let from = async |site: &Site, ip: &str| {
        let request = Request::post("/oauth/register").header("content-type", "application/json");
        let request = request.header("authorization", "Bearer let-me-in").body(Body::from(body)).unwrap();
        site.send_from(ip, request).await.status.as_u16()
    };
    let site = dcr(json!({"dcr": {"mostPerDay": 100}})).await;
    let mut registered = 0;
    while from(&site, "192.0.2.1").await == 201 {
        registered += 1;
    }
    assert!((10..=25).contains(&registered), "{registered} of 100");
    assert_eq!(from(&site, "192.0.2.1").await, 429);
    assert_eq!(from(&site, "198.51.100.1").await, 201);
    registered += 1;
    let mut n = 1;
    while registered < 100 {
        n += 1;
        registered += usize::from(from(&site, &format!("198.51.100.{n}")).await == 201);
    }
    assert_eq!(from(&site, "198.51.100.2").await, 503, "the day's are used up");
    for first in 0..100 {
        assert_eq!(from(&site, &format!("203.0.113.{first}")).await, 201, "{first}");
        assert_eq!(from(&site, &format!("203.0.113.{first}")).await, 503, "{first} once more");
    }
    assert_eq!(from(&site, "203.0.113.100").await, 503, "those for newcomers are used up, too");
    site.clock.advance(std::time::Duration::from_secs(86_401));
    assert_eq!(from(&site, "192.0.2.1").await, 201);

    let site = dcr(json!({"dcr": {"mostPerDay": 100, "initialAccessToken": "let-me-in"}})).await;
    for _ in 0..100 {
        assert_eq!(from(&site, "192.0.2.1").await, 201, "whoever has the token may have them all");
    }
}
