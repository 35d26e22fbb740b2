//! `gatewright login` and `gatewright logout`.

use std::process::ExitCode;

use crate::{
    args::{LoginArgs, LogoutArgs},
    exit,
    login::{self, Wanted},
    output::{errln, outln},
};

/// Signs in at a gateway, and keeps the tokens for other commands.
pub async fn run(args: LoginArgs) -> anyhow::Result<ExitCode> {
    let url = login::endpoint(&args.url)?;
    let wanted =
        Wanted { url, client_id: args.client_id, scopes: args.scope, open_browser: !args.no_browser };
    let granted = login::sign_in(&wanted).await?;
    let scopes =
        granted.filter(|scopes| !scopes.is_empty()).map_or_else(String::new, |scopes| format!(" ({scopes})"));
    outln!("signed in at {}{scopes}; `gatewright tools --url {}` uses it", wanted.url, wanted.url)?;
    Ok(ExitCode::SUCCESS)
}

/// Forgets and revokes the tokens for a gateway.
pub async fn out(args: LogoutArgs) -> anyhow::Result<ExitCode> {
    let url = login::endpoint(&args.url)?;
    if !login::sign_out(&url).await? {
        errln!("nobody is signed in at {url}");
        return Ok(ExitCode::from(exit::FAILED));
    }
    outln!("signed out at {url}")?;
    Ok(ExitCode::SUCCESS)
}
