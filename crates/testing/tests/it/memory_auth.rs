//! A server in this process that requires tokens.

use gatewright_core::{
    Principal,
    rmcp::{
        ErrorData, RoleServer, ServerHandler,
        model::{CallToolRequestParams, CallToolResponse, ServerConfig},
        service::RequestContext,
    },
};
use gatewright_testing::{Auth, AuthOptions, BoxError, Mcp, Server, TokenOptions, expect, test_use};
use serde_json::json;

/// A server whose tools return their caller.
struct WhoAmI;

impl ServerHandler for WhoAmI {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::default();
        info.capabilities = serde_json::from_value(json!({"tools": {}})).unwrap();
        info
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = Principal::of(&context).unwrap();
        let may = |scope: &str| if caller.scopes.allows(scope) { "may" } else { "may not" };
        let text = format!("{} {} write", caller.subject, may("write"));
        let result = json!({"content": [{"type": "text", "text": text}]});
        Ok(CallToolResponse::Complete(serde_json::from_value(result).unwrap()))
    }
}

test_use! { app: || WhoAmI, auth: AuthOptions::default() }

#[gatewright_testing::test]
async fn nobody_comes_in_without_a_good_token(mcp: Mcp, auth: Auth) -> Result<(), BoxError> {
    assert!(!mcp.is_connected());
    let user = &auth.users.user;
    let other_issuer = user.clone().claim("iss", "https://other.example");
    let other_audience = user.clone().claim("aud", json!(["a", "b"]));
    for (token, why) in [
        (auth.create_expired_token(user), "the token is expired"),
        (auth.create_invalid_token(user), "the signature is not the issuer's"),
        (auth.create_token(&other_issuer), "the issuer is another"),
        (auth.create_token(&other_audience), "the audience is another"),
        ("no token".to_owned(), "the signature is not the issuer's"),
    ] {
        let refused = mcp.authenticate(token).await.unwrap_err();
        assert_eq!(refused.status(), Some(401));
        assert!(refused.to_string().contains(why), "{refused}");
    }
    mcp.authenticate(auth.create_token(user)).await?;
    expect(&mcp.tools().call("whoami", json!({})).await?).to_have_text_content("test-user may write");
    Ok(())
}

#[gatewright_testing::test]
async fn the_caller_changes_with_the_token(mcp: Mcp, auth: Auth) -> Result<(), BoxError> {
    mcp.authenticate(auth.create_token(&auth.users.admin)).await?;
    expect(&mcp.tools().call("whoami", json!({})).await?).to_have_text_content("test-admin may write");
    mcp.authenticate(auth.create_token(&auth.users.read_only)).await?;
    expect(&mcp.tools().call("whoami", json!({})).await?).to_have_text_content("test-readonly may not write");
    assert!(mcp.authenticate(auth.create_expired_token(&auth.users.admin)).await.is_err());
    assert!(mcp.tools().call("whoami", json!({})).await.unwrap_err().is_refused());
    Ok(())
}

#[gatewright_testing::test(auth = AuthOptions { user: Some(TokenOptions::new("ada")), audience: Some("crm".into()) })]
async fn the_option_names_the_caller(mcp: Mcp, auth: Auth) -> Result<(), BoxError> {
    assert_eq!(auth.get_audience(), "crm");
    expect(&mcp.tools().call("whoami", json!({})).await?).to_have_text_content("ada may not write");
    Ok(())
}

#[tokio::test]
async fn a_server_without_fixtures_accepts_tokens_too() {
    let auth = Auth::default();
    let server = Server::in_memory_with_auth(|| WhoAmI, &auth);
    assert_eq!(server.client().connect().await.unwrap_err().status(), Some(401));
    let mcp = server.client().token(auth.create_token(&auth.users.user)).connect().await.unwrap();
    assert_eq!(mcp.tools().call("x", json!({})).await.unwrap().text(), "test-user may write");
}
