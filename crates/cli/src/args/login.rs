//! Arguments of `login` and `logout`.

use clap::Args;

/// `gatewright login`.
///
/// With the device flow where the authorization server offers it, else in a browser. If that is on another machine, paste the address of
/// the page at which it ends. The tokens are kept in
/// `gatewright/tokens.json` in the user's configuration folder, which only its owner can read, and refreshed.
#[derive(Debug, Args)]
pub struct LoginArgs {
    /// MCP endpoint of the gateway, such as https://mcp.example.com/mcp.
    pub url: String,
    /// OAuth client that the authorization server knows. Default: one is registered.
    #[arg(long, value_name = "ID")]
    pub client_id: Option<String>,
    /// Scope to ask for; can be repeated. Default: those that the server names.
    #[arg(long, value_name = "SCOPE")]
    pub scope: Vec<String>,
    /// Print the address to open, and start no browser.
    #[arg(long)]
    pub no_browser: bool,
}

/// `gatewright logout`.
#[derive(Debug, Args)]
pub struct LogoutArgs {
    /// MCP endpoint of the gateway, as it was given to `login`.
    pub url: String,
}
