//! Parts of a sign-in that do not depend on how the user is asked.

use std::{io::IsTerminal as _, process::Stdio};

use anyhow::Context as _;
use reqwest::Url;

use super::{
    client::Client,
    discovery::Discovered,
    http::{Http, TokenResponse},
};
use crate::output::errln;

/// A sign-in that the user wants.
pub struct Wanted {
    /// The MCP endpoint.
    pub url: Url,
    /// A client that is known to the server. Default: one that is registered for this.
    pub client_id: Option<String>,
    /// Scopes. Default: those that the server names.
    pub scopes: Vec<String>,
    /// Starts the user's browser.
    pub open_browser: bool,
}

/// The outcome of a grant: tokens, and the client that they are for.
pub struct Answer {
    pub tokens: TokenResponse,
    pub client: Client,
}

/// Asks for tokens with `fields` and those that every request has.
pub async fn redeem(
    http: &Http,
    server: &Discovered,
    client: Client,
    fields: &[(&str, &str)],
) -> anyhow::Result<Answer> {
    let own = [("client_id", client.id.as_str()), ("resource", server.resource.as_str())];
    let fields = [fields, &own].concat();
    let answer =
        http.tokens(&server.metadata.token_endpoint, &fields).await.context("no token was issued")?;
    let tokens = answer.map_err(|error| error.because("no token was issued"))?;
    Ok(Answer { tokens, client })
}

/// Shows an address to the user, and opens it in the browser unless that is not wanted or nobody sits there.
pub fn show(address: &str, open: bool) {
    errln!("Open this address in a browser to sign in:\n\n  {address}\n");
    if !open || !std::io::stderr().is_terminal() {
        return;
    }
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    // Nothing depends on it: the address is on the screen.
    let started = tokio::process::Command::new(program)
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    drop(started);
}
