//! Requests to authorization servers: bounded, without redirects, and over TLS unless the server is on this machine.

use std::{fmt, net::IpAddr, time::Duration};

use anyhow::{Context as _, bail};
use gatewright_findings::printable;
use reqwest::{RequestBuilder, Response, StatusCode, Url, redirect::Policy};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

/// Longest answer, in bytes.
const LONGEST: usize = 256 * 1024;
const TIMEOUT: Duration = Duration::from_secs(30);

/// The client.
pub struct Http(reqwest::Client);

/// A token response (RFC 6749 §5.1).
#[derive(Deserialize)]
pub struct TokenResponse {
    pub access_token: String,
    pub token_type: String,
    pub refresh_token: Option<String>,
    pub expires_in: Option<u64>,
    pub scope: Option<String>,
}

/// An error response (RFC 6749 §5.2).
#[derive(Debug, Deserialize)]
pub struct Refused {
    pub error: String,
    #[serde(default)]
    error_description: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", printable(&self.error, 100), printable(&self.error_description, 500))
    }
}

impl Refused {
    /// The error of a command.
    pub fn because(&self, what: &str) -> anyhow::Error {
        anyhow::anyhow!("{what}: {self}")
    }

    pub fn new(error: &str, description: &str) -> Self {
        Self { error: error.to_owned(), error_description: description.to_owned() }
    }
}

/// Returns the address if a secret may be sent there.
///
/// # Errors
/// It is neither `https` nor on this machine.
pub fn safe(address: &str) -> anyhow::Result<Url> {
    let url =
        Url::parse(address).with_context(|| format!("`{}` is not an address", printable(address, 200)))?;
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let local = host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if url.scheme() == "https" || (url.scheme() == "http" && local) {
        return Ok(url);
    }
    bail!("{} is not https, so no secret is sent there", printable(address, 200));
}

impl Http {
    pub fn new() -> anyhow::Result<Self> {
        let client = reqwest::Client::builder().timeout(TIMEOUT).redirect(Policy::none());
        Ok(Self(client.build().context("install `ca-certificates`, or name a file with SSL_CERT_FILE")?))
    }

    /// The JSON document at `address`; `None` if there is none.
    pub async fn document<T: DeserializeOwned>(&self, address: &str) -> anyhow::Result<Option<T>> {
        let request = self.0.get(safe(address)?).header("accept", "application/json");
        let (status, body) = send(request, address).await?;
        if status.is_client_error() {
            return Ok(None);
        }
        if !status.is_success() {
            bail!("{address} answers {status}");
        }
        Ok(Some(serde_json::from_slice(&body).with_context(|| format!("{address} cannot be read"))?))
    }

    /// The answer to a message without a token.
    pub async fn unauthorized(&self, url: &Url) -> anyhow::Result<Response> {
        let ping = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        let request =
            self.0.post(url.clone()).json(&ping).header("accept", "application/json, text/event-stream");
        request
            .send()
            .await
            .map_err(reqwest::Error::without_url)
            .with_context(|| format!("no server responds at {url}"))
    }

    /// Sends JSON, and gives the answer to it.
    pub async fn json(&self, address: &str, body: &Value) -> anyhow::Result<(StatusCode, Vec<u8>)> {
        send(self.0.post(safe(address)?).json(body), address).await
    }

    /// Sends a form, and gives the answer to it.
    pub async fn form(
        &self,
        address: &str,
        fields: &[(&str, &str)],
    ) -> anyhow::Result<(StatusCode, Vec<u8>)> {
        let mut form = Url::parse("form:")?;
        form.query_pairs_mut().extend_pairs(fields);
        let request = self.0.post(safe(address)?).header("accept", "application/json");
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        send(request.body(form.query().unwrap_or_default().to_owned()), address).await
    }

    /// Asks a token endpoint.
    pub async fn tokens(
        &self,
        address: &str,
        fields: &[(&str, &str)],
    ) -> anyhow::Result<Result<TokenResponse, Refused>> {
        let (status, body) = self.form(address, fields).await?;
        if !status.is_success() {
            return Ok(Err(refusal(status, &body)));
        }
        let tokens: TokenResponse =
            serde_json::from_slice(&body).map_err(|_| anyhow::anyhow!("{address} answers without tokens"))?;
        let visible = tokens.access_token.bytes().all(|byte| byte.is_ascii_graphic());
        if !tokens.token_type.eq_ignore_ascii_case("bearer") || tokens.access_token.is_empty() || !visible {
            bail!("{address} issues tokens of a kind that cannot be used here");
        }
        Ok(Ok(tokens))
    }
}

/// The error in a response.
pub fn refusal(status: StatusCode, body: &[u8]) -> Refused {
    serde_json::from_slice(body).unwrap_or_else(|_| Refused::new(&format!("HTTP {status}"), ""))
}

async fn send(request: RequestBuilder, address: &str) -> anyhow::Result<(StatusCode, Vec<u8>)> {
    // Addresses of requests may have secrets in their queries: ours is named without.
    let place = address.split('?').next().unwrap_or_default();
    let broken = |error: reqwest::Error| {
        anyhow::Error::new(error.without_url()).context(format!("{place} cannot be reached"))
    };
    let mut response = request.send().await.map_err(broken)?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        body.extend_from_slice(&chunk);
        if body.len() > LONGEST {
            bail!("{place} answers with more than {LONGEST} bytes");
        }
    }
    Ok((response.status(), body))
}
