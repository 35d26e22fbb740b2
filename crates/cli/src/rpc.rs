//! MCP client for commands, of a gateway in this process or at a URL.

use std::{collections::HashMap, error::Error, sync::Arc};

use gatewright_core::{Gateway, Principal, memory_transport};
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::{
    RoleClient, ServiceExt,
    model::{CallToolRequestParams, CallToolResult, JsonObject, Tool},
    service::{ClientInitializeError, RunningService, ServiceError},
    transport::{
        DynamicTransportError, StreamableHttpClientTransport,
        common::client_side_sse::FixedInterval,
        streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError},
    },
};

use crate::{exit::BadConfig, logging};

/// Attempts to read on in an answer that broke off, one a second. Afterwards the server is taken to be gone, and the call fails.
const RECONNECTS: usize = 3;

/// Parses a header of the command line. Errors do not repeat its value, which may be a secret.
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
    /// Connects to a gateway in this process, as the user who runs the command.
    pub async fn local(gateway: &Gateway) -> anyhow::Result<Self> {
        let (client_end, server_end) = memory_transport();
        let server = gateway.session_of(Principal::local());
        tokio::spawn(async move {
            if let Ok(running) = server.serve(server_end).await {
                let _ = running.waiting().await;
            }
        });
        Ok(Self { client: ().serve(client_end).await? })
    }

    /// Connects to an MCP endpoint, with an optional bearer token and headers (`Name: value`).
    pub async fn remote(url: &str, token: Option<&str>, headers: &[String]) -> anyhow::Result<Self> {
        logging::without_client_library();
        let mut config = StreamableHttpClientTransportConfig::with_uri(url);
        let mut retries = FixedInterval::default();
        retries.max_times = Some(RECONNECTS);
        config.retry_config = Arc::new(retries);
        if let Some(token) = token.map(str::trim).filter(|token| !token.is_empty()) {
            if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
                let problem =
                    "the token has characters that are not allowed in tokens; pass only the access token";
                return Err(BadConfig(problem.to_owned()).into());
            }
            config = config.auth_header(token);
        }
        let headers = headers.iter().map(|text| header(text)).collect::<anyhow::Result<HashMap<_, _>>>()?;
        let transport = StreamableHttpClientTransport::from_config(config.custom_headers(headers));
        let client = ().serve(transport).await;
        let client = client.map_err(|error| anyhow::anyhow!(not_connected(url, token.is_some(), &error)))?;
        Ok(Self { client })
    }

    /// All tools the server lists.
    pub async fn tools(&self) -> anyhow::Result<Vec<Tool>> {
        self.client.peer().list_all_tools().await.map_err(broken)
    }

    /// Calls a tool.
    pub async fn call(&self, name: &str, arguments: JsonObject) -> anyhow::Result<CallToolResult> {
        let params = CallToolRequestParams::new(name.to_owned()).with_arguments(arguments);
        self.client.peer().call_tool(params).await.map_err(broken)
    }

    /// Closes the connection.
    pub async fn close(self) {
        let _ = self.client.cancel().await;
    }
}

/// The reason why there is no connection, with advice.
fn not_connected(url: &str, with_token: bool, error: &ClientInitializeError) -> String {
    const WHICH: &str = "is that the address of its MCP endpoint, such as http://127.0.0.1:3000/mcp?";
    match error {
        // The library's error has it as a field, not as its source.
        ClientInitializeError::TransportError { error, .. } => {
            match error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
                Some(StreamableHttpError::AuthRequired(_)) if with_token => format!(
                    "{url} does not accept the access token: it may have expired, or be for another server; sign in with `gatewright login {url}`"
                ),
                Some(StreamableHttpError::AuthRequired(_)) => {
                    format!(
                        "{url} requires an access token: sign in with `gatewright login {url}`, or pass a token with --token or GATEWRIGHT_TOKEN"
                    )
                }
                Some(StreamableHttpError::Client(cause)) if cause.is_connect() => format!(
                    "no MCP server responds at {url}: {}; start it, or correct the host and port",
                    reason(error)
                ),
                Some(StreamableHttpError::UnexpectedContentType(kind)) => format!(
                    "no MCP server responds at {url}: the response is {}; {WHICH}",
                    kind.as_deref().unwrap_or("without a content type")
                ),
                _ => format!("no MCP server responds at {url}: {}; {WHICH}", reason(error)),
            }
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            not_connected(url, with_token, fallback)
        }
        ClientInitializeError::JsonRpcError(error) => {
            format!("the MCP server at {url} refuses the connection: {} ({})", error.message, error.code.0)
        }
        ClientInitializeError::ExpectedInitResponse(_) | ClientInitializeError::ExpectedInitResult(_) => {
            format!("{url} responds to `initialize` with something other than its result; {WHICH}")
        }
        error => format!("no MCP server responds at {url}: {}; {WHICH}", last_cause(error)),
    }
}

/// A request that failed once there was a connection.
fn broken(error: ServiceError) -> anyhow::Error {
    match error {
        ServiceError::TransportSend(error) => {
            anyhow::anyhow!("the connection to the MCP server broke: {}", reason(&error))
        }
        ServiceError::TransportClosed => {
            anyhow::anyhow!("the connection to the MCP server broke before it answered; is it still running?")
        }
        error => error.into(),
    }
}

/// The cause, without the names of the library's types.
fn reason(error: &DynamicTransportError) -> String {
    match error.error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        // The library's error has it as a field, not as its source.
        Some(StreamableHttpError::Client(cause)) => last_cause(cause),
        _ => last_cause(&*error.error),
    }
}

/// The innermost cause: the outer errors only state that something failed.
fn last_cause(error: &(dyn Error + 'static)) -> String {
    let last = std::iter::successors(Some(error), |error| (*error).source()).last();
    last.unwrap_or(error).to_string()
}

#[cfg(test)]
mod tests {
    use rmcp::model::ErrorData;

    use super::*;

    #[test]
    fn a_broken_connection_is_reported_without_the_types_of_the_library() {
        let cause = std::io::Error::other("reset by the peer");
        let broke = ServiceError::TransportSend(DynamicTransportError::from_parts(
            "a::Type<b::Type>",
            std::any::TypeId::of::<()>(),
            anyhow::Error::new(cause).context("sending").into(),
        ));
        let text = format!("{:#}", broken(broke));
        assert_eq!(text, "the connection to the MCP server broke: reset by the peer");
        let refused = ServiceError::McpError(ErrorData::invalid_params("no such tool", None));
        assert!(broken(refused).is::<ServiceError>());
    }

    fn message(error: Box<dyn Error + Send + Sync>) -> String {
        let error =
            DynamicTransportError::from_parts("a::Type<b::Type>", std::any::TypeId::of::<()>(), error);
        let error =
            ClientInitializeError::TransportError { error, context: "send initialize request".into() };
        not_connected("http://a.example/mcp", false, &error)
    }

    #[test]
    fn the_innermost_cause_is_reported_whatever_its_text() {
        let cause = "read [1] error: gone, when it was late";
        let text = message(anyhow::anyhow!(cause).context("outer] error: inner, when it was sent").into());
        assert!(
            text.starts_with(&format!("no MCP server responds at http://a.example/mcp: {cause}; is that")),
            "{text}"
        );
        type Http = StreamableHttpError<reqwest::Error>;
        let text = message(Box::new(Http::UnexpectedContentType(Some("text/html, when it failed".into()))));
        assert!(text.contains("text/html, when it failed") && !text.contains("Type"), "{text}");
    }

    #[test]
    fn a_refusal_by_the_server_is_reported_as_such() {
        let error = ErrorData::invalid_request("Unsupported protocol version", None);
        let text = not_connected("http://a.example/mcp", true, &ClientInitializeError::JsonRpcError(error));
        assert_eq!(
            text,
            "the MCP server at http://a.example/mcp refuses the connection: Unsupported protocol version (-32600)"
        );
    }
}
