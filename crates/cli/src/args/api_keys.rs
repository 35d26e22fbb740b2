//! Arguments of `gatewright api-key`.

use clap::{Args, Subcommand};
use gatewright_core::{MAIN_ENDPOINT, check_endpoint_name};

use super::StoreArgs;

/// `gatewright api-key`.
#[derive(Debug, Args)]
pub struct ApiKeyArgs {
    #[command(subcommand)]
    pub command: ApiKeyCommand,
}

/// Commands for API keys. The keys that sign tokens are those of `gatewright key`.
#[derive(Debug, Subcommand)]
pub enum ApiKeyCommand {
    /// Make a key for the configuration: print the key and the entry of `auth.apiKeys`, which holds its hash.
    ///
    /// The key is printed once and kept nowhere. The machine sends it as `Authorization: Bearer gwk_…`.
    Generate {
        /// Name of the key: 1 to 64 letters, digits, `.`, `_` and `-`. Its caller is `key:` and this name.
        name: String,
        #[command(flatten)]
        grant: KeyGrantArgs,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Make a key in the store of running servers, which accept it at once, and print it.
    ///
    /// The key is printed once; the store has only its SHA-256. The machine sends it as `Authorization: Bearer gwk_…`.
    Create {
        /// Name of the key: 1 to 64 letters, digits, `.`, `_` and `-`. Its caller is `key:` and this name.
        name: String,
        #[command(flatten)]
        grant: KeyGrantArgs,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// List the keys of the configuration and of the store: names, scopes and times, never the keys themselves.
    List {
        /// Number of stored keys to list, at most.
        #[arg(long, value_name = "NUMBER", default_value_t = 1_000)]
        most: u32,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Revoke a key of the store: every server refuses it at once, and its streams end.
    ///
    /// A key of the configuration is revoked by removing it there; running servers follow without a restart.
    Revoke {
        /// Name of the key.
        name: String,
        #[command(flatten)]
        store: StoreArgs,
    },
}

// Scopes and lifetime of a new key. A doc comment here would replace that of each command.
#[derive(Debug, Args)]
pub struct KeyGrantArgs {
    /// Scope of `auth.scopes` that the key grants; can be repeated. Without any it opens what requires no scope.
    #[arg(long = "scope", value_name = "SCOPE")]
    pub scopes: Vec<String>,
    /// Endpoint that the key opens, by its name in `endpoints`, or `main`; can be repeated. Default: the main one, and those with `audience: shared`.
    #[arg(long = "endpoint", value_name = "NAME", value_parser = endpoint)]
    pub endpoints: Vec<String>,
    /// Days for which the key is accepted.
    #[arg(long, value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..=3_650))]
    pub days: u64,
    /// Let the key never expire.
    #[arg(long, conflicts_with = "days")]
    pub no_expiry: bool,
}

fn endpoint(text: &str) -> Result<String, &'static str> {
    match text {
        MAIN_ENDPOINT => Ok(text.to_owned()),
        text => check_endpoint_name(text).map(|()| text.to_owned()),
    }
}
