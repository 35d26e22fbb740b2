//! `auth.type: remote` with the real binary: people log in at an OpenID provider, which the test kit's issuer plays.

use gatewright_testing::{
    Endpoint, Fault, MockOAuthServer, MockOAuthServerOptions, MockTestUser, TokenFactory,
};
use reqwest::Url;
use serde_json::{Value, json};

use crate::gate::{Answer, CALLBACK, Gate, Person, Site, config, parameter};

const SECRET: &str = "s3cret-of-ours-at-the-provider";

async fn provider() -> MockOAuthServer {
    let user = MockTestUser {
        name: Some("Una".into()),
        email: Some("una@example.com".into()),
        ..MockTestUser::new("una-1")
    };
    let options = MockOAuthServerOptions {
        auto_approve: true,
        test_user: Some(user),
        client_id: Some("us".into()),
        client_secret: Some(SECRET.into()),
        ..MockOAuthServerOptions::default()
    };
    let mut provider = MockOAuthServer::new(TokenFactory::default(), options);
    provider.start().await.unwrap();
    provider
}

fn site(provider: &MockOAuthServer) -> Site {
    // Every refresh asks the provider: nothing was confirmed a moment ago.
    let auth = json!({"type": "remote", "local": {}, "provider": {"allowPrivate": true}, "refresh": {"skewSeconds": 0}});
    let variables = [
        ("IDP_PROVIDER_URL", provider.info().issuer.clone()),
        ("IDP_CLIENT_ID", "us".to_owned()),
        ("IDP_CLIENT_SECRET", SECRET.to_owned()),
    ];
    Site::launch("json", &config(auth).to_string(), &variables, &[])
}

/// Goes to the provider and back; gives the address that leads back to us.
async fn at_the_provider(gate: &Gate, person: &mut Person, scope: &str) -> Url {
    let away = person.authorize(gate, &gate.ask("app", CALLBACK, scope)).await;
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let answer = client.get(away).send().await.unwrap();
    let back = Url::parse(answer.headers()["location"].to_str().unwrap()).unwrap();
    assert!(back.as_str().starts_with(&gate.public), "{back}");
    back
}

async fn log_in(gate: &Gate, person: &mut Person, scope: &str) -> Value {
    let back = at_the_provider(gate, person, scope).await;
    let answer = person.open(gate, back.as_str()).await;
    let callback = person.finish(gate, answer).await;
    let tokens = gate.redeem("app", CALLBACK, &parameter(&callback, "code")).await;
    assert_eq!(tokens.status, 200, "{}", tokens.body);
    tokens.json()
}

async fn refresh(gate: &Gate, tokens: &Value) -> Answer {
    let held = tokens["refresh_token"].as_str().unwrap();
    gate.token(&[("grant_type", "refresh_token"), ("refresh_token", held)]).await
}

#[tokio::test]
async fn people_log_in_at_the_provider_use_tools_and_refresh() {
    let provider = provider().await;
    let site = site(&provider);
    let gate = site.gate();
    let mut person = Person::default();
    let tokens = log_in(&gate, &mut person, "crm:read openid profile email").await;
    let token = tokens["access_token"].as_str();
    assert!(gate.tools(token).await.contains(&"crm:users_list".to_owned()));
    let told = TokenFactory::unverified_claims(tokens["id_token"].as_str().unwrap());
    let sub = format!("idp:{}#una-1", provider.info().issuer);
    assert_eq!((&told["sub"], &told["aud"], &told["iss"]), (&json!(sub), &json!("app"), &json!(gate.public)));
    let bearer = format!("Bearer {}", token.unwrap());
    let info = gate
        .send(reqwest::Method::GET, "/oauth/userinfo", &[("authorization", &bearer)], String::new())
        .await
        .json();
    assert_eq!(info, json!({"sub": sub, "name": "Una", "email": "una@example.com"}));
    let asked = || provider.requests().iter().filter(|line| *line == "POST /oauth/token").count();
    assert_eq!(asked(), 1);
    let mut tokens = tokens;
    for turn in 2..4 {
        let answer = refresh(&gate, &tokens).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        tokens = answer.json();
        assert_eq!(asked(), turn, "the provider, which uses each refresh token once, was asked");
        assert_eq!(gate.mcp(tokens["access_token"].as_str(), "tools/list", json!({})).await.status, 200);
    }
    let logged = site.log.text();
    assert!(!logged.contains(SECRET));
}

#[tokio::test]
async fn an_answer_with_another_nonce_or_issuer_lets_nobody_in() {
    let provider = provider().await;
    let site = site(&provider);
    let gate = site.gate();
    let endings =
        [Fault::WrongNonce, Fault::WrongIssuer("https://evil.example".into()), Fault::ExpiredTokens];
    for fault in endings {
        let mut person = Person::default();
        let back = at_the_provider(&gate, &mut person, "crm:read").await;
        provider.inject_fault(Endpoint::Token, fault.clone(), None);
        let refused = person.open(&gate, back.as_str()).await;
        provider.clear_faults();
        assert_eq!(refused.status, 400, "{fault:?}: {}", refused.body);
        assert!(refused.body.contains("did not confirm who you are"), "{}", refused.body);
    }
    // The issuer that the browser brings back counts, too (RFC 9207).
    provider.inject_fault(Endpoint::Authorize, Fault::WrongIssuer("https://evil.example".into()), None);
    let mut person = Person::default();
    let back = at_the_provider(&gate, &mut person, "crm:read").await;
    provider.clear_faults();
    let refused = person.open(&gate, back.as_str()).await;
    assert_eq!(refused.status, 400);
    assert!(refused.body.contains("from another sign-in service"), "{}", refused.body);
    log_in(&gate, &mut Person::default(), "crm:read").await;
}

#[tokio::test]
async fn while_the_provider_is_down_there_is_a_clear_page_and_nothing_is_lost() {
    let provider = provider().await;
    let site = site(&provider);
    let gate = site.gate();
    let is_down = |answer: &Answer| {
        assert_eq!(answer.status, 503, "{}", answer.body);
        assert!(
            answer.body.contains("The sign-in service is not available at the moment"),
            "{}",
            answer.body
        );
        assert!(!answer.header("retry-after").is_empty());
    };
    provider.inject_fault(Endpoint::Metadata, Fault::Status(503), None);
    is_down(&Person::default().open(&gate, &gate.ask("app", CALLBACK, "crm:read")).await);
    provider.clear_faults();
    let mut person = Person::default();
    let back = at_the_provider(&gate, &mut person, "crm:read").await;
    provider.inject_fault(Endpoint::Token, Fault::Status(502), Some(1));
    is_down(&person.open(&gate, back.as_str()).await);

    let tokens = log_in(&gate, &mut Person::default(), "crm:read").await;
    provider.inject_fault(Endpoint::Token, Fault::Status(500), Some(1));
    let answer = refresh(&gate, &tokens).await;
    assert_eq!((answer.status, answer.json()["error"].clone()), (503, json!("temporarily_unavailable")));
    assert_eq!(gate.mcp(tokens["access_token"].as_str(), "tools/list", json!({})).await.status, 200);
    let answer = refresh(&gate, &tokens).await;
    assert_eq!(answer.status, 200, "the same refresh token: {}", answer.body);
}

#[tokio::test]
async fn whom_the_provider_knows_no_more_has_to_log_in_again() {
    let provider = provider().await;
    let site = site(&provider);
    let gate = site.gate();
    let mut person = Person::default();
    let tokens = log_in(&gate, &mut person, "crm:read").await;
    // Signed in here: another authorization does not go to the provider.
    let again = person.authorize(&gate, &gate.ask("app", CALLBACK, "crm:read")).await;
    assert!(again.as_str().starts_with(CALLBACK), "{again}");
    provider.clear_stored_tokens();
    assert_eq!(refresh(&gate, &tokens).await.json()["error"], "invalid_grant");
    assert_eq!(gate.mcp(tokens["access_token"].as_str(), "tools/list", json!({})).await.status, 401);
    let away = person.authorize(&gate, &gate.ask("app", CALLBACK, "crm:read")).await;
    assert!(away.as_str().starts_with(&provider.info().issuer), "{away}");
    log_in(&gate, &mut person, "crm:read").await;
}

#[tokio::test]
async fn keys_that_the_provider_rotated_are_taken_up_and_unpublished_ones_are_not() {
    let provider = provider().await;
    let site = site(&provider);
    let gate = site.gate();
    // A login whose ID token is signed with the key that comes after the one of this moment.
    let mut person = Person::default();
    let back = at_the_provider(&gate, &mut person, "crm:read").await;
    provider.rotate_keys(true);
    let answer = person.open(&gate, back.as_str()).await;
    let callback = person.finish(&gate, answer).await;
    assert!(callback.as_str().starts_with(CALLBACK));
    // And after a rotation that left nothing of the old keys.
    provider.rotate_keys(false);
    log_in(&gate, &mut Person::default(), "crm:read").await;
    // A key that nobody published proves nothing, and is a clear page.
    provider.sign_with_unpublished_key();
    let mut stranger = Person::default();
    let back = at_the_provider(&gate, &mut stranger, "crm:read").await;
    let refused = stranger.open(&gate, back.as_str()).await;
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert!(refused.body.contains("did not confirm who you are"));
}
