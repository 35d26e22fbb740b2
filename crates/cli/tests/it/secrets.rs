//! No secret that was issued or shown is in anything that is written down.

use reqwest::Method;
use serde_json::{Value, json};

use crate::gate::{CALLBACK, PASSWORD, Person, Site, VERIFIER, config, parameter, secret};

/// Pieces of a token that would be enough to use or guess it: the whole, and the signature of a JWT.
fn pieces(token: &str) -> Vec<String> {
    let signature = token.rsplit_once('.').map(|(_, signature)| signature.to_owned());
    [Some(token.to_owned()), signature].into_iter().flatten().collect()
}

#[tokio::test]
async fn no_secret_is_in_a_log_line_an_audit_line_or_the_metrics_even_when_everything_is_traced() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit.jsonl");
    let text = config(
        json!({"dcrEnabled": true, "auditFile": audit, "encryptionKey": "an-encryption-key-of-the-test"}),
    )
    .to_string();
    let variables = [("RUST_LOG", "trace".to_owned())];
    let site = Site::launch("json", &text, &variables, &[]);
    let gate = site.gate();
    let mut secrets: Vec<String> = vec![
        PASSWORD.into(),
        VERIFIER.into(),
        secret("robot"),
        "an-encryption-key-of-the-test".into(),
        "a-wrong-password".into(),
    ];

    let metadata = json!({"client_name": "N", "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "client_secret_post",
        "grant_types": ["authorization_code", "refresh_token"]});
    let registered = gate
        .send(Method::POST, "/oauth/register", &[("content-type", "application/json")], metadata.to_string())
        .await
        .json();
    for field in ["client_secret", "registration_access_token"] {
        secrets.push(registered[field].as_str().unwrap().to_owned());
    }

    let mut person = Person::default();
    let callback = person.authorize(&gate, &gate.ask("app", CALLBACK, "crm:read")).await;
    let code = parameter(&callback, "code");
    let tokens = gate.redeem("app", CALLBACK, &code).await.json();
    let held =
        |tokens: &Value, name: &str| tokens[name].as_str().unwrap_or_else(|| panic!("{tokens}")).to_owned();
    let refresh = held(&tokens, "refresh_token");
    let fields = [("grant_type", "refresh_token"), ("refresh_token", refresh.as_str())];
    let refreshed = gate.token(&fields).await.json();
    let machine = gate.machine_token("robot", "crm:read").await;
    secrets.extend(person.cookies.values().cloned());
    secrets.extend(person.hidden.iter().cloned());
    secrets.extend([code.clone(), refresh, held(&refreshed, "refresh_token")]);
    for token in [&held(&tokens, "access_token"), &held(&refreshed, "access_token"), &machine] {
        secrets.extend(pieces(token));
    }

    // What succeeds, and what fails, with secrets in hand.
    let access = held(&refreshed, "access_token");
    gate.call(
        Some(&access),
        "codecall:execute",
        json!({"script": "return (await callTool('crm:users_list', {})).total"}),
    )
    .await;
    assert_eq!(gate.mcp(Some(&format!("{access}x")), "tools/list", json!({})).await.status, 401);
    let bearer = format!("Bearer {access}");
    gate.send(Method::GET, "/oauth/userinfo", &[("authorization", &bearer)], String::new()).await;
    let robot = [("client_id", "robot"), ("client_secret", &secret("robot"))];
    gate.post_form("/oauth/introspect", &[], &[&robot[..], &[("token", access.as_str())]].concat()).await;
    gate.post_form("/oauth/revoke", &[], &[("client_id", "app"), ("token", &access)]).await;
    assert_eq!(gate.redeem("app", CALLBACK, &code).await.json()["error"], "invalid_grant");
    let mut stranger = Person::default();
    let page = stranger.open(&gate, &gate.ask("app", CALLBACK, "crm:read")).await;
    let page = match page.header("location") {
        "" => page,
        location => stranger.open(&gate, location).await,
    };
    let wrong = stranger
        .submit(
            &gate,
            &page.body.replace("name=\"password\"", "name=\"password_\" value=\"a-wrong-password\""),
        )
        .await;
    assert!(wrong.status >= 400, "{}", wrong.status);
    secrets.extend(stranger.cookies.values().cloned());

    let metrics = gate.get("/metrics").await.body;
    let logged = site.log.text();
    let audited = std::fs::read_to_string(&audit).unwrap();
    assert!(logged.contains("TRACE") && audited.contains("token.issued"), "both say something");
    secrets.retain(|secret| secret.len() >= 8);
    assert!(secrets.len() > 15, "{}", secrets.len());
    for (place, text) in [("log", &logged), ("audit", &audited), ("metrics", &metrics)] {
        for secret in &secrets {
            let hit = text.lines().find(|line| line.contains(secret.as_str()));
            assert!(hit.is_none(), "the {place} holds {secret}: {}", hit.unwrap_or_default());
        }
    }
}
