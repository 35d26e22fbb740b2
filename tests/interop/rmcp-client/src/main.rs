//! The Rust SDK's client with its `auth` feature: discovery, registration, code, tools, refresh.
//!
//! `rmcp-client URL REDIRECT [CLIENT_ID [SECRET]]` prints `authorize ADDRESS`, reads the address that the browser was sent back to, uses
//! tools, refreshes, prints `tokens JSON`, and, told to go on, prints whether one more refresh is `refreshed` or `refused`.

use std::error::Error;

use rmcp::{
    ServiceExt as _,
    model::CallToolRequestParams,
    transport::{
        AuthClient, StreamableHttpClientTransport,
        auth::{AuthorizationRequest, OAuthState},
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (url, redirect) = (arguments.next().ok_or("a URL")?, arguments.next().ok_or("a redirect")?);
    let mut request = AuthorizationRequest::new(redirect).with_client_name("rmcp");
    request = request.with_scopes(["crm:read", "offline_access"]);
    if let Some(id) = arguments.next() {
        request = request.with_preregistered_client(id);
    }
    if let Some(secret) = arguments.next() {
        request = request.with_client_secret(secret);
    }
    let mut lines = BufReader::new(tokio::io::stdin()).lines();

    let mut state = OAuthState::new(&url, None).await?;
    state.start_authorization(request).await?;
    println!("authorize {}", state.get_authorization_url().await?);
    let callback = lines.next_line().await?.ok_or("no callback")?;
    state.handle_callback_url(&callback).await?;
    let manager = state.into_authorization_manager().ok_or("not authorized")?;

    let client = AuthClient::new(reqwest::Client::new(), manager);
    let manager = client.auth_manager.clone();
    let config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
    let mcp = ().serve(StreamableHttpClientTransport::with_client(client, config)).await?;
    let script = "return (await callTool('crm:users_list', { limit: 2 })).items.length;";
    let input = json!({"script": script}).as_object().cloned().unwrap_or_default();
    let call = CallToolRequestParams::new("codecall:execute").with_arguments(input);
    println!("result {}", json!(mcp.peer().call_tool(call.clone()).await?.structured_content));
    manager.lock().await.refresh_token().await?;
    println!("result {}", json!(mcp.peer().call_tool(call).await?.structured_content));
    let (client_id, tokens) = manager.lock().await.get_credentials().await?;
    println!("tokens {}", json!({"client_id": client_id, "tokens": tokens}));

    lines.next_line().await?;
    match manager.lock().await.refresh_token().await {
        Ok(_) => println!("refreshed"),
        Err(error) => println!("refused {error}"),
    }
    Ok(())
}
