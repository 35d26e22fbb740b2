//! Arguments of the commands for those who look after users, clients, tokens and keys.

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
    /// Remove a key at once: tokens it signed are refused, and clients refresh them.
    ///
    /// For keys that the servers made and keep in their store; running servers follow within 30 seconds. When it is the key that signs,
    /// another takes its place.
    Retire {
        /// Name of the key (`kid`), as `gatewright key list` prints it.
        kid: String,
        /// Configuration of the servers.
        #[arg(short, long, value_name = "FILE")]
        config: PathBuf,
        /// Print JSON: the keys that are left.
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
    /// Sign a user out everywhere: every browser session ends, and every token given to an application for the user.
    SignOut {
        /// The `username`, or the subject as it is in the audit (`user:ada`, `idp:…`).
        name: String,
        #[command(flatten)]
        store: StoreArgs,
    },
}

// The store that a command works on. No doc comment: it would take the place of each command's own.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// Configuration of the servers. Their store must be one that they share (`sqlite` or `redis`).
    #[arg(short, long, value_name = "FILE")]
    pub config: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to do with tokens of running servers.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Revoke an access or refresh token, and all that came of the same authorization, at every server at once.
    ///
    /// The token is the first line of standard input; it is never an argument, where other users of the machine could see it. Exit code 1
    /// when it is none of theirs, or was revoked or is expired already.
    Revoke {
        #[command(flatten)]
        store: StoreArgs,
    },
}

/// `gatewright client`.
#[derive(Debug, Args)]
pub struct ClientArgs {
    #[command(subcommand)]
    pub command: ClientCommand,
}

/// What to do with OAuth clients.
#[derive(Debug, Subcommand)]
pub enum ClientCommand {
    /// List the clients of the configuration, and those that registered themselves.
    List {
        /// Registered clients shown at most.
        #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        most: u32,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Remove a client that registered itself, and end everything granted to it.
    ///
    /// A client of the configuration is removed there; one that is known by the address of its document is refused with
    /// `auth.cimd.denyHosts`.
    Remove {
        /// Its `client_id`.
        id: String,
        #[command(flatten)]
        store: StoreArgs,
    },
}

/// `gatewright consent`.
#[derive(Debug, Args)]
pub struct ConsentArgs {
    #[command(subcommand)]
    pub command: ConsentCommand,
}

/// What to do with consents.
#[derive(Debug, Subcommand)]
pub enum ConsentCommand {
    /// List what users allowed applications.
    List {
        /// Consents of this user only: a `username`, or a subject.
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
        /// Consents looked at, at most.
        #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        most: u32,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Withdraw what a user allowed an application: its tokens for that user end, and the user is asked again.
    Withdraw {
        /// The `username`, or the subject as `gatewright consent list` prints it.
        user: String,
        /// The `client_id`.
        client: String,
        #[command(flatten)]
        store: StoreArgs,
    },
}
