//! Signing in and out, and the access token between the two.

use std::time::Duration;

use anyhow::bail;
use reqwest::Url;

use super::{
    browser, device, discovery,
    grant::Wanted,
    http::Http,
    store::{Store, Tokens},
};
use crate::{exit::BadConfig, output::errln};

/// Time before its end in which an access token is refreshed.
const SKEW: Duration = Duration::from_secs(60);

/// Reads the address of an MCP endpoint.
///
/// # Errors
/// It is not one, or would send tokens in the clear.
pub fn endpoint(text: &str) -> anyhow::Result<Url> {
    let problem = || {
        BadConfig(format!(
            "`{text}` is not the address of an MCP endpoint, such as https://mcp.example.com/mcp"
        ))
    };
    let mut url = Url::parse(text).map_err(|_| problem())?;
    if url.host_str().is_none() || !matches!(url.scheme(), "http" | "https") {
        return Err(problem().into());
    }
    url.set_fragment(None);
    Ok(url)
}

/// Signs in, and keeps the tokens. Returns the scopes that were granted, if the server named them.
pub async fn sign_in(wanted: &Wanted) -> anyhow::Result<Option<String>> {
    let http = Http::new()?;
    let server = discovery::discover(&http, &wanted.url).await?;
    let scope = match wanted.scopes.as_slice() {
        [] => server.scopes.clone(),
        scopes => scopes.join(" "),
    };
    let store = Store::open()?;
    let answer = match &server.metadata.device_authorization_endpoint {
        Some(endpoint) => device::ask(&http, &server, endpoint, wanted, &scope).await,
        None => browser::ask(&http, &server, wanted, &scope).await,
    }?;
    let granted = answer.tokens.scope.clone();
    store.lock()?.put(&wanted.url, Tokens::new(&server, answer))?;
    Ok(granted)
}

/// The access token for `url`, refreshed if it is about to expire; `None` if nobody signed in there.
pub async fn access_token(url: &str) -> anyhow::Result<Option<String>> {
    let Ok(url) = endpoint(url) else { return Ok(None) };
    let store = Store::open()?;
    if !store.exists() {
        return Ok(None);
    }
    // Held while it is refreshed: a refresh token that two processes send counts as stolen.
    let mut kept = tokio::task::spawn_blocking(move || store.lock()).await??;
    let Some(mut tokens) = kept.get(&url)? else { return Ok(None) };
    if tokens.is_due(SKEW) {
        let Some(refresh) = tokens.refresh_token.clone() else { bail!(again(&url)) };
        let http = Http::new()?;
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.as_str()),
            ("client_id", &tokens.client_id),
            ("resource", &tokens.resource),
        ];
        match http.tokens(&tokens.token_endpoint, &fields).await? {
            Ok(new) => tokens.renew(new),
            Err(refused) if refused.error == "invalid_grant" => {
                kept.remove(&url)?;
                bail!(again(&url));
            }
            Err(refused) => bail!("the token for {url} cannot be refreshed: {refused}"),
        }
        kept.put(&url, tokens.clone())?;
    }
    Ok(Some(tokens.access_token))
}

fn again(url: &Url) -> String {
    format!("the sign-in at {url} has ended; sign in again with `gatewright login {url}`")
}

/// Forgets the tokens for `url`, and revokes them. Returns false if there are none.
pub async fn sign_out(url: &Url) -> anyhow::Result<bool> {
    let store = Store::open()?;
    if !store.exists() {
        return Ok(false);
    }
    let Some(tokens) = store.lock()?.remove(url)? else { return Ok(false) };
    if let (Some(endpoint), Some(refresh)) = (&tokens.revocation_endpoint, &tokens.refresh_token) {
        let fields = [("token", refresh.as_str()), ("client_id", &tokens.client_id)];
        if let Err(error) = Http::new()?.form(endpoint, &fields).await {
            errln!("the tokens are forgotten here, and could not be revoked at the server: {error:#}");
        }
    }
    Ok(true)
}
