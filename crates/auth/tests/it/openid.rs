//! ID tokens, and what a client may ask of a login (OpenID Connect Core 1.0, RP-Initiated Logout 1.0).

use gatewright_core::Authenticator as _;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, SHA512, digest};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gatewright_auth::keys::{Algorithm, Jwk, JwkSet, Token, VerifyingKey};
use serde_json::{Value, json};

use crate::{
    dpop::{ath, proof, with_proof},
    support::{
        rsa_jwk,
        site::{Browser, ISSUER, PASSWORD, SECRET, Site, VERIFIER, ask, basic, claims, part, post},
    },
};

const OPENID: (&str, &str) = ("scope", "openid read");

/// The token response of a login at `app` with `openid`.
async fn login(browser: &Browser<'_>, changes: &[(&str, &str)]) -> Value {
    let changes: Vec<(&str, &str)> = [OPENID].iter().chain(changes).copied().collect();
    let code = browser.code(&changes).await;
    browser.site.redeem(&code).await.json()
}

fn text<'a>(body: &'a Value, name: &str) -> &'a str {
    body[name].as_str().unwrap_or_else(|| panic!("{name} in {body}"))
}

/// The claims, when a published key of a published algorithm signed them.
async fn verified(site: &Site, token: &str) -> Value {
    let published = JwkSet::parse(&site.get("/.well-known/jwks.json").await.text).unwrap();
    let header = part(token, 0);
    let key = published.keys.iter().find(|key| key.kid.as_deref() == header["kid"].as_str()).unwrap();
    let metadata = site.get("/.well-known/openid-configuration").await.json();
    assert!(metadata["id_token_signing_alg_values_supported"].as_array().unwrap().contains(&header["alg"]));
    let token = Token::parse(token).unwrap();
    Value::Object(token.verify(&VerifyingKey::from_jwk(key).unwrap()).unwrap())
}

#[tokio::test]
async fn an_id_token_tells_its_client_who_signed_in_and_when() {
    let made = json!({"local": {"algorithm": "EdDSA"}});
    let pinned = json!({"local": {"signKey": rsa_jwk()}});
    for (over, alg, with) in
        [(json!({}), "ES256", &SHA256), (made, "EdDSA", &SHA512), (pinned, "RS256", &SHA256)]
    {
        let site = Site::with(over).await;
        let browser = site.browser();
        let body = login(&browser, &[("nonce", "n-0S6_WzA2Mj")]).await;
        let (access, id) = (text(&body, "access_token"), text(&body, "id_token"));
        assert_eq!(part(id, 0)["typ"], "JWT");
        assert_eq!(part(id, 0)["alg"], alg);
        let told = verified(&site, id).await;
        let now = site.now_s();
        let hash = digest(with, access.as_bytes());
        let at_hash = URL_SAFE_NO_PAD.encode(&hash.as_ref()[..hash.as_ref().len() / 2]);
        let expected = json!({
            "iss": ISSUER, "sub": "user:alice", "aud": "app", "iat": now, "exp": now + 900, "auth_time": now,
            "nonce": "n-0S6_WzA2Mj", "at_hash": at_hash,
        });
        assert_eq!(told, expected, "{alg}: these and no others");
    }
}

#[tokio::test]
async fn there_is_an_id_token_only_where_a_user_granted_openid() {
    let site = Site::new().await;
    assert_eq!(site.tokens().await.get("id_token"), None, "not asked for");
    let browser = site.browser();
    let page = browser.to_consent(&[OPENID]).await;
    let code = browser.decide(&page, &["read"], "allow").await.location()["code"].clone();
    assert_eq!(site.redeem(&code).await.json().get("id_token"), None, "asked for and not allowed");
    let alone = |scope: &'static str| {
        let mut request = post("/oauth/token", &[("grant_type", "client_credentials"), ("scope", scope)]);
        request.headers_mut().insert("authorization", basic("service", SECRET));
        site.send(request)
    };
    let body = alone("openid read").await.json();
    assert_eq!((body.get("id_token"), &body["scope"]), (None, &json!("read")), "a client is nobody");
    assert_eq!(alone("openid profile").await.error(), "invalid_scope");
}

#[tokio::test]
async fn a_refreshed_id_token_is_about_the_same_login() {
    let site = Site::new().await;
    let body = login(&site.browser(), &[("nonce", "once")]).await;
    let first = claims(text(&body, "id_token"));
    site.clock.advance(Duration::from_secs(600));
    let body = site.refresh(text(&body, "refresh_token"), &[]).await.json();
    let second = verified(&site, text(&body, "id_token")).await;
    for name in ["iss", "sub", "aud", "auth_time"] {
        assert_eq!(first[name], second[name], "{name}");
    }
    assert_eq!(second["iat"], site.now_s());
    assert_eq!(second.get("nonce"), None, "the nonce belongs to the first");
    let access = claims(text(&body, "access_token"));
    assert_eq!(access["auth_time"], first["auth_time"], "a refresh is no login");
    let narrowed = site.refresh(text(&body, "refresh_token"), &[("scope", "read")]).await.json();
    assert_eq!(narrowed.get("id_token"), None, "narrowed");
}

#[tokio::test]
async fn an_id_token_opens_nothing_and_an_access_token_is_no_hint() {
    let site = Site::new().await;
    let browser = site.browser();
    let body = login(&browser, &[]).await;
    let id = text(&body, "id_token");
    let request = http::Request::get("/oauth/userinfo").header("authorization", format!("Bearer {id}"));
    assert_eq!(site.send(request.body(axum::body::Body::empty()).unwrap()).await.status, 401);
    let parts = http::Request::post("/mcp").header("authorization", format!("Bearer {id}"));
    let parts = parts.body(()).unwrap().into_parts().0;
    let refused = site.resource_server().authenticate(&parts).await.unwrap_err();
    assert_eq!(refused.status(), 401);
    assert_eq!(site.introspect(id).await, json!({"active": false}));
    let answer = browser.get(&ask(&[("id_token_hint", text(&body, "access_token"))])).await;
    assert_eq!(answer.location()["error"], "invalid_request");
}

#[tokio::test]
async fn prompts_ages_and_nonces_that_cannot_be_honoured_are_refused() {
    let site = Site::new().await;
    for (name, value) in [
        ("prompt", "none login"),
        ("prompt", "create"),
        ("max_age", "-1"),
        ("max_age", "soon"),
        ("max_age", "+5"),
        ("nonce", &"n".repeat(1025)),
        ("id_token_hint", "not-a-token"),
    ] {
        let answer = site.get(&ask(&[(name, value)])).await;
        let location = answer.location();
        assert_eq!(location["error"], "invalid_request", "{name}={value}");
        assert_eq!((&*location["state"], &*location["iss"]), ("s-123", ISSUER));
    }
    let answer = site.get(&ask(&[("registration", "{}")])).await;
    assert_eq!(answer.location()["error"], "registration_not_supported");
}

#[tokio::test]
async fn an_old_login_is_made_again_when_max_age_says_so() {
    let site = Site::new().await;
    let browser = site.browser();
    login(&browser, &[]).await;
    site.clock.advance(Duration::from_secs(100));
    let silent = |age: &'static str| ask(&[OPENID, ("prompt", "none"), ("max_age", age)]);
    assert!(browser.get(&silent("200")).await.location().contains_key("code"));
    assert_eq!(browser.get(&silent("99")).await.location()["error"], "login_required");
    let page = browser.get(&ask(&[OPENID, ("max_age", "99")])).await;
    let next = browser.log_in(&page, "alice", PASSWORD).await;
    let answer = browser.follow(&next).await;
    let body = site.redeem(&answer.location()["code"]).await.json();
    assert_eq!(claims(text(&body, "id_token"))["auth_time"], site.now_s());
}

#[tokio::test]
async fn select_account_asks_who_it_is_and_login_hint_fills_the_name_in() {
    let site = Site::new().await;
    let browser = site.browser();
    login(&browser, &[]).await;
    let changes = [("prompt", "select_account"), ("login_hint", "bob\"><b>\u{202e}")];
    let page = browser.get(&ask(&changes)).await;
    assert!(page.text.contains("name=\"password\""));
    assert_eq!(page.field("username"), "bob&quot;&gt;&lt;b&gt;", "escaped, without what turns text around");
}

#[tokio::test]
async fn only_the_user_that_an_id_token_hint_names_will_do() {
    let site = Site::new().await;
    let alices = login(&site.browser(), &[]).await;
    let hint = ("id_token_hint", text(&alices, "id_token"));
    site.clock.advance(Duration::from_secs(3000));
    let browser = site.browser();
    let silent = ask(&[OPENID, ("prompt", "none"), hint]);
    assert_eq!(browser.get(&silent).await.location()["error"], "login_required", "nobody");
    // Bob is signed in where alice is wanted.
    let page = browser.get(&ask(&[])).await;
    let page = browser.follow(&browser.log_in(&page, "bob", PASSWORD).await).await;
    browser.decide(&page, &["read"], "allow").await;
    assert_eq!(browser.get(&silent).await.location()["error"], "login_required", "somebody else");
    let page = browser.get(&ask(&[OPENID, hint])).await;
    assert!(page.text.contains("name=\"password\""), "somebody else is signed in: asked");
    let next = browser.log_in(&page, "bob", PASSWORD).await;
    assert_eq!(browser.follow(&next).await.location()["error"], "login_required", "and still is");
    let page = browser.get(&ask(&[OPENID, hint])).await;
    let page = browser.follow(&browser.log_in(&page, "alice", PASSWORD).await).await;
    // Consent is remembered for the user, whichever browser it was given in.
    assert!(page.location().contains_key("code"), "an expired hint is a hint");
    assert!(browser.get(&silent).await.location().contains_key("code"));
    let other = ask(&[hint, ("client_id", "other"), ("redirect_uri", "https://other.example/cb")]);
    assert_eq!(browser.get(&other).await.location()["error"], "invalid_request", "another client's");
}

#[tokio::test]
async fn a_logout_goes_back_to_the_client_that_an_id_token_names() {
    let site = Site::new().await;
    let browser = site.browser();
    let body = login(&browser, &[]).await;
    let to = |extra: &[(&str, &str)]| {
        let pairs =
            [&[("post_logout_redirect_uri", "https://c.example/bye"), ("state", "s")], extra].concat();
        format!("/oauth/logout?{}", crate::support::site::form(&pairs))
    };
    let hint = ("id_token_hint", text(&body, "id_token"));
    let mixed = browser.get(&to(&[hint, ("client_id", "other")])).await;
    assert_eq!(mixed.status, 400, "{}", mixed.text);
    let page = browser.get(&to(&[hint])).await;
    assert_eq!(page.status, 200, "asked first");
    assert!(page.header("content-security-policy").contains("form-action 'self' https:;"));
    let names = ["csrf", "post_logout_redirect_uri", "state", "id_token_hint"];
    let pairs: Vec<(&str, String)> = names.iter().map(|name| (*name, page.field(name))).collect();
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let done = browser.post("/oauth/logout", &pairs).await;
    assert_eq!((done.status.as_u16(), done.header("location")), (303, "https://c.example/bye?state=s"));
    assert_eq!(browser.get(&ask(&[("prompt", "none")])).await.location()["error"], "login_required");
    // Nobody is signed in: an ID token is enough to go on, a name that anyone can write is not.
    let fresh = site.browser();
    assert_eq!(fresh.get(&to(&[hint])).await.header("location"), "https://c.example/bye?state=s");
    let forged = format!("{}x", hint.1);
    for extra in [("client_id", "app"), ("id_token_hint", &*forged)] {
        let answer = fresh.get(&to(&[extra])).await;
        assert_eq!((answer.status.as_u16(), answer.header("location")), (200, ""), "{extra:?}");
    }
}

#[tokio::test]
async fn a_client_may_ask_for_a_logout_with_a_form() {
    let site = Site::new().await;
    let browser = site.browser();
    login(&browser, &[]).await;
    let mut request = post("/oauth/logout", &[("client_id", "app"), ("state", "s"), ("other", "x")]);
    request.headers_mut().insert("origin", "https://c.example".parse().unwrap());
    let sent = browser.send(request).await;
    assert_eq!(sent.status, 303);
    assert_eq!(sent.header("location"), format!("{ISSUER}/oauth/logout?client_id=app&state=s"));
    let page = browser.follow(&sent).await;
    assert!(page.text.contains("Sign out?"), "nothing happened yet");
    let silent = browser.get(&ask(&[OPENID, ("prompt", "none")])).await;
    assert!(silent.location().contains_key("code"), "still signed in");
}

#[tokio::test]
async fn the_openid_metadata_is_complete_and_true() {
    let site = Site::new().await;
    let body = site.get("/.well-known/openid-configuration").await.json();
    // OpenID Connect Discovery 1.0 §3, REQUIRED; RS256 is listed where a key of it is configured.
    for name in [
        "issuer",
        "authorization_endpoint",
        "token_endpoint",
        "jwks_uri",
        "response_types_supported",
        "subject_types_supported",
        "id_token_signing_alg_values_supported",
    ] {
        assert!(body.get(name).is_some(), "{name}");
    }
    assert_eq!(body["subject_types_supported"], json!(["public"]));
    assert_eq!(body["id_token_signing_alg_values_supported"], json!(["ES256"]));
    let all = login(&site.browser(), &[("scope", "openid profile email"), ("nonce", "n")]).await;
    let request = http::Request::get("/oauth/userinfo")
        .header("authorization", format!("Bearer {}", text(&all, "access_token")));
    let told = site.send(request.body(axum::body::Body::empty()).unwrap()).await.json();
    let mut had: Vec<String> = claims(text(&all, "id_token")).as_object().unwrap().keys().cloned().collect();
    had.extend(told.as_object().unwrap().keys().cloned());
    let listed: Vec<&str> =
        body["claims_supported"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for name in &had {
        assert!(listed.contains(&name.as_str()), "{name} is told and not listed");
    }
    for name in listed {
        assert!(had.iter().any(|held| held == name), "{name} is listed and not told");
    }
    // RFC 8414 §2: with `private_key_jwt` the algorithms of assertions are listed, at each endpoint.
    for endpoint in ["token", "revocation", "introspection"] {
        let name = format!("{endpoint}_endpoint_auth_signing_alg_values_supported");
        assert!(body[&name].as_array().is_some_and(|list| !list.is_empty()), "{name}");
    }
}

#[tokio::test]
async fn a_client_that_wants_another_signature_than_ours_is_not_registered() {
    let site = Site::with(json!({"dcrEnabled": true})).await;
    let register = |alg: &'static str| {
        let body = json!({"redirect_uris": ["https://n.example/cb"], "id_token_signed_response_alg": alg});
        let request = http::Request::post("/oauth/register").header("content-type", "application/json");
        site.send(request.body(axum::body::Body::from(body.to_string())).unwrap())
    };
    assert_eq!(register("ES256").await.status, 201);
    for alg in ["RS256", "none", "HS256"] {
        assert_eq!(register(alg).await.error(), "invalid_client_metadata", "{alg}");
    }
}

#[tokio::test]
async fn userinfo_of_a_bound_token_needs_the_proof_of_its_key() {
    let site = Site::new().await;
    let (key, stranger) =
        (Jwk::generate(Algorithm::ES256).unwrap(), Jwk::generate(Algorithm::ES256).unwrap());
    let code = site.code(&[OPENID]).await;
    let pairs = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("client_id", "app"),
        ("code_verifier", VERIFIER),
    ];
    let body = with_proof(&site, &pairs, &proof(&key, site.now_s(), json!({}), json!({}))).await.json();
    let token = text(&body, "access_token");
    let fits = json!({"htm": "GET", "htu": format!("{ISSUER}/oauth/userinfo"), "ath": ath(token)});
    let ask = async |scheme: &str, proof: Option<String>| {
        let mut request =
            http::Request::get("/oauth/userinfo").header("authorization", format!("{scheme} {token}"));
        if let Some(proof) = proof {
            request = request.header("dpop", proof);
        }
        site.send(request.body(axum::body::Body::empty()).unwrap()).await
    };
    let make = |key: &Jwk, claims: &Value| Some(proof(key, site.now_s(), claims.clone(), json!({})));
    let told = ask("DPoP", make(&key, &fits)).await;
    assert_eq!((told.status.as_u16(), &told.json()["sub"]), (200, &json!("user:alice")));
    let mut elsewhere = fits.clone();
    elsewhere["htu"] = json!(format!("{ISSUER}/mcp"));
    let mut other = fits.clone();
    other["ath"] = json!(ath("another token"));
    for (what, scheme, shown) in [
        ("as a bearer token", "Bearer", make(&key, &fits)),
        ("no proof", "DPoP", None),
        ("another key", "DPoP", make(&stranger, &fits)),
        ("another address", "DPoP", make(&key, &elsewhere)),
        ("another token", "DPoP", make(&key, &other)),
    ] {
        let refused = ask(scheme, shown).await;
        assert_eq!(refused.status, 401, "{what}: {}", refused.text);
        assert!(!refused.header("www-authenticate").is_empty(), "{what}");
    }
}
