//! Arguments of the commands for those who look after users and keys: `key` and `user`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// `gatewright key`.
#[derive(Debug, Args)]
pub struct KeyArgs {
    #[command(subcommand)]
    pub command: KeyCommand,
}

/// What to do with signing keys.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Print a new private signing key (a JWK), for `auth.local.signKey` or JWT_SIGNING_KEY.
    Generate {
        /// Kind of key. RS256 has 2048 bits.
        #[arg(long, default_value = "RS256", ignore_case = true)]
        algorithm: KeyAlgorithm,
        /// Write it to this new file, which only its owner may read, and print its name (`kid`) instead.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// List the keys that tokens are signed and verified with, as the servers of this configuration see them.
    List {
        /// Configuration of the servers.
        #[arg(short, long, value_name = "FILE")]
        config: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Sign with a new key from now on; the old ones go on verifying until what they signed is expired.
    ///
    /// For keys that the servers made and keep in their store. Running servers follow within 30 seconds.
    Rotate {
        /// Configuration of the servers.
        #[arg(short, long, value_name = "FILE")]
        config: PathBuf,
    },
}

/// Kinds of signing keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "verbatim")]
pub enum KeyAlgorithm {
    /// RSA of 2048 bits.
    RS256,
    /// Elliptic curve P-256: smaller and faster.
    ES256,
    /// Ed25519.
    EdDSA,
}

/// `gatewright user`.
#[derive(Debug, Args)]
pub struct UserArgs {
    #[command(subcommand)]
    pub command: UserCommand,
}

/// What to make.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Print the argon2id hash of a password, for `auth.local.users[].passwordHash`.
    ///
    /// The password is asked for at the terminal, or is the first line of standard input; it is never an argument, where other users
    /// of the machine could see it.
    Hash,
    /// Print a link with which a user of `auth.local.users` adds a passkey without signing in first; it works once.
    ///
    /// For users without a `passwordHash`, and for those who lost every passkey. Whoever has the link has the account: hand it over as
    /// you would a password. Needs `auth.local.passkeys.enabled: true` and a store that the servers share (`sqlite` or `redis`).
    Enrol {
        /// The `username`.
        name: String,
        /// Configuration of the servers.
        #[arg(short, long, value_name = "FILE")]
        config: PathBuf,
        /// How long the link works.
        #[arg(long, value_name = "MINUTES", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=10_080))]
        minutes: u64,
    },
}
