//! A client of a gateway: in this process, or at a URL.

use std::collections::HashMap;

use gatewright_core::{Gateway, memory_transport};
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::{
    RoleClient, ServiceExt,
    model::{CallToolRequestParams, CallToolResult, JsonObject, Tool},
    service::RunningService,
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};

use crate::exit::BadConfig;

/// A header of the command line. Its value may be a secret and is in no message.
fn header(text: &str) -> anyhow::Result<(HeaderName, HeaderValue)> {
    let parsed = text.split_once(':').and_then(|(name, value)| {
        let mut value = HeaderValue::from_str(value.trim()).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(name.trim()).ok()?, value))
    });
    let problem = || BadConfig("--header takes `Name: value`, such as `X-Api-Key: 123`".to_owned());
    Ok(parsed.ok_or_else(problem)?)
}

/// A connected client.
pub struct Rpc {
    client: RunningService<RoleClient, ()>,
}

impl Rpc {
    /// Connects to a gateway of this process.
    pub async fn local(gateway: &Gateway) -> anyhow::Result<Self> {
        let (client_end, server_end) = memory_transport();
        let server = gateway.session();
        tokio::spawn(async move {
            if let Ok(running) = server.serve(server_end).await {
                let _ = running.waiting().await;
            }
        });
        Ok(Self { client: ().serve(client_end).await? })
    }

    /// Connects to an MCP endpoint, with a bearer token and headers (`Name: value`) if there are some.
    pub async fn remote(url: &str, token: Option<&str>, headers: &[String]) -> anyhow::Result<Self> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(url);
        if let Some(token) = token.map(str::trim).filter(|token| !token.is_empty()) {
            if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                let problem = "the token holds characters that no token has; pass the access token alone";
                return Err(BadConfig(problem.to_owned()).into());
            }
            config = config.auth_header(token);
        }
        let headers = headers.iter().map(|text| header(text)).collect::<anyhow::Result<HashMap<_, _>>>()?;
        let transport = StreamableHttpClientTransport::from_config(config.custom_headers(headers));
        match ().serve(transport).await {
            Ok(client) => Ok(Self { client }),
            // The reason is in the text alone: the transport's own type is erased.
            Err(error) if format!("{error:?}").contains("AuthRequired") => {
                let problem = match token {
                    None => "wants an access token: pass it with --token or GATEWRIGHT_TOKEN",
                    Some(_) => {
                        "does not accept the access token: it may have expired, or be for another server"
                    }
                };
                Err(anyhow::anyhow!("{url} {problem}"))
            }
            Err(error) => Err(anyhow::anyhow!(
                "no MCP server answers at {url}: {}; is it running, and is that its MCP endpoint?",
                plain(&error.to_string())
            )),
        }
    }

    /// All tools the server lists.
    pub async fn tools(&self) -> anyhow::Result<Vec<Tool>> {
        Ok(self.client.peer().list_all_tools().await?)
    }

    /// Calls a tool.
    pub async fn call(&self, name: &str, arguments: JsonObject) -> anyhow::Result<CallToolResult> {
        let params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        Ok(self.client.peer().call_tool(params).await?)
    }

    /// Ends the connection.
    pub async fn close(self) {
        let _ = self.client.cancel().await;
    }
}

/// What the client library says, without the names of its types around it.
fn plain(error: &str) -> &str {
    let error = error.rsplit_once("] error: ").map_or(error, |(_, inner)| inner);
    error.rsplit_once(", when ").map_or(error, |(problem, _)| problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_s_types_are_left_out_of_its_errors() {
        let error = "Send message error Transport [a::B<c::D>] error: Client error: refused, when send initialize request";
        assert_eq!(plain(error), "Client error: refused");
        assert_eq!(plain("connection closed"), "connection closed");
    }
}
