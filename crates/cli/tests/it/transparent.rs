//! The binary in transparent mode takes the test kit's tokens, and only good ones: the kit's issuer is its provider.

use std::sync::Arc;

use gatewright_testing::{
    Auth, AuthOptions, BoxError, Endpoint, Fault, Mcp, MockOAuthServer, Server, expect, test_use,
};
use serde_json::json;

use crate::support::gatewright;

const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/transparent.yaml");

test_use! {
    server: gatewright().display().to_string(),
    args: ["serve", "--config", CONFIG, "--port", "{port}"],
    ready_path: "/healthz",
    auth: AuthOptions::default(),
}

async fn may(mcp: &Mcp) -> bool {
    mcp.tools().list().await.is_ok()
}

#[gatewright_testing::test]
async fn nobody_comes_in_without_a_token_and_is_told_where_to_get_one(mcp: Mcp) -> Result<(), BoxError> {
    assert!(!mcp.is_connected());
    let refused = mcp.tools().list().await.unwrap_err();
    assert_eq!(refused.status(), Some(401));
    assert!(refused.to_string().contains("resource_metadata="), "{refused}");
    Ok(())
}

#[gatewright_testing::test]
async fn every_user_of_the_kit_comes_in_and_may_do_what_the_scopes_say(
    mcp: Mcp,
    auth: Auth,
) -> Result<(), BoxError> {
    let script = "return (await callTool('crm:users_list', {limit: 1})).items.length";
    let reader = auth.users.read_only.clone().scopes(["crm:read"]);
    for (user, allowed) in [
        (&auth.users.admin, true),
        (&auth.users.user, false),
        (&auth.users.read_only, false),
        (&reader, true),
    ] {
        mcp.authenticate(auth.create_token(user)).await?;
        expect(&mcp.tools().list().await?).to_contain_tool("codecall:search");
        let result = mcp.tools().call("codecall:execute", json!({"script": script})).await?;
        expect(&result).to_match_json(&match allowed {
            true => json!({"status": "ok", "result": 1}),
            false => json!({"status": "tool_error", "error": {"code": "ACCESS_DENIED"}}),
        });
    }
    Ok(())
}

#[gatewright_testing::test]
async fn tokens_that_are_bad_in_one_way_are_refused(mcp: Mcp, auth: Auth) -> Result<(), BoxError> {
    let user = &auth.users.user;
    let bad = [
        ("expired", auth.create_expired_token(user)),
        ("another key's", auth.create_invalid_token(user)),
        ("another issuer's", auth.create_token(&user.clone().claim("iss", "https://other.example"))),
        ("another audience's", auth.create_token(&user.clone().claim("aud", "other"))),
        ("no token", "eyJ.eyJ.x".to_owned()),
    ];
    for (name, token) in bad {
        let refused = mcp.authenticate(token).await.unwrap_err();
        assert_eq!(refused.status(), Some(401), "{name}: {refused}");
        assert!(!may(&mcp).await, "{name}");
    }
    mcp.authenticate(auth.create_token(user)).await?;
    assert!(may(&mcp).await);
    Ok(())
}

#[gatewright_testing::test]
async fn both_keys_of_a_rotation_are_believed_and_one_that_nobody_published_is_not(
    mcp: Mcp,
    auth: Auth,
    oauth: Arc<MockOAuthServer>,
) -> Result<(), BoxError> {
    let user = &auth.users.user;
    let token = || oauth.get_token_factory().create_test_token(user);
    oauth.rotate_keys(true);
    mcp.authenticate(token()).await?;
    mcp.authenticate(auth.create_token(user)).await?;
    oauth.sign_with_unpublished_key();
    assert_eq!(mcp.authenticate(token()).await.unwrap_err().status(), Some(401));
    Ok(())
}

#[gatewright_testing::test]
async fn keys_that_rotate_after_the_first_fetch_are_fetched_again_but_not_for_every_token(
    mcp: Mcp,
    auth: Auth,
    oauth: Arc<MockOAuthServer>,
) -> Result<(), BoxError> {
    let user = &auth.users.user;
    let token = || oauth.get_token_factory().create_test_token(user);
    let fetches = || oauth.requests().iter().filter(|line| line.ends_with("/jwks.json")).count();
    mcp.authenticate(token()).await?;
    assert_eq!(fetches(), 1);
    // The old key is gone from the set; who asks with the new one is let in at once.
    oauth.rotate_keys(false);
    mcp.authenticate(token()).await?;
    assert_eq!(fetches(), 2);
    assert_eq!(
        mcp.authenticate(auth.create_token(user)).await.unwrap_err().status(),
        Some(401),
        "the old key"
    );
    // A second rotation within half a minute waits: whoever makes up keys must not make the gateway ask each time.
    oauth.rotate_keys(false);
    for _ in 0..20 {
        oauth.sign_with_unpublished_key();
        assert_eq!(mcp.authenticate(token()).await.unwrap_err().status(), Some(401));
    }
    assert_eq!(fetches(), 2);
    Ok(())
}

#[gatewright_testing::test]
async fn an_issuer_that_is_down_lets_nobody_in_and_is_not_the_callers_fault(
    server: Server,
    auth: Auth,
    oauth: Arc<MockOAuthServer>,
) -> Result<(), BoxError> {
    oauth.inject_fault(Endpoint::All, Fault::Status(503), None);
    let mcp = server.client().connect_or_refused().await?;
    let error = mcp.authenticate(auth.create_token(&auth.users.user)).await.unwrap_err();
    assert!(!error.is_refused() && error.to_string().contains("the caller cannot be checked"), "{error}");
    assert!(!may(&mcp).await);
    Ok(())
}
