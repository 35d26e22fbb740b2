//! Sign-in with a browser on any machine: the device authorization grant (RFC 8628).

use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::Deserialize;
use tokio::time::Instant;

use super::{
    client::client,
    discovery::Discovered,
    grant::{Answer, Wanted, show},
    http::{Http, refusal, safe},
};
use crate::output::errln;

/// A device authorization response (RFC 8628 §3.2).
#[derive(Deserialize)]
struct DeviceResponse {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: u64,
    #[serde(default = "five")]
    interval: u64,
}

fn five() -> u64 {
    5
}

/// Shows the user an address and a code, and waits until they have used it.
pub async fn ask(
    http: &Http,
    server: &Discovered,
    endpoint: &str,
    wanted: &Wanted,
    scope: &str,
) -> anyhow::Result<Answer> {
    let client = client(http, server, wanted.client_id.as_deref(), None).await?;
    let mut fields = vec![("client_id", client.id.as_str()), ("resource", server.resource.as_str())];
    if !scope.is_empty() {
        fields.push(("scope", scope));
    }
    let (status, body) = http.form(endpoint, &fields).await?;
    if !status.is_success() {
        return Err(refusal(status, &body).because("the sign-in cannot begin"));
    }
    let device: DeviceResponse =
        serde_json::from_slice(&body).context("the code to sign in with cannot be read")?;
    let page = device.verification_uri_complete.as_ref().unwrap_or(&device.verification_uri);
    let page = safe(page).context("the authorization server names no page to sign in at")?;
    show(page.as_str(), wanted.open_browser);
    errln!("The code is {}", device.user_code);
    let fields = [
        ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
        ("device_code", device.device_code.as_str()),
        ("client_id", client.id.as_str()),
        ("resource", server.resource.as_str()),
    ];
    let end = Instant::now() + Duration::from_secs(device.expires_in.min(3_600));
    let mut interval = Duration::from_secs(device.interval.clamp(1, 60));
    loop {
        tokio::time::sleep(interval).await;
        match http.tokens(&server.metadata.token_endpoint, &fields).await? {
            Ok(tokens) => return Ok(Answer { tokens, client }),
            Err(error) if error.error == "authorization_pending" => {}
            Err(error) if error.error == "slow_down" => interval += Duration::from_secs(5),
            Err(error) => return Err(error.because("the sign-in was refused")),
        }
        if Instant::now() >= end {
            bail!("nobody signed in before the code expired");
        }
    }
}
