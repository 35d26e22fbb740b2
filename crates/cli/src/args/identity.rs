//! Arguments of the commands that work on the store of running servers: users, clients, consents, tokens, keys and executions.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// `gatewright key`.
#[derive(Debug, Args)]
pub struct KeyArgs {
    #[command(subcommand)]
    pub command: KeyCommand,
}

/// Commands for signing keys.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Print a new private signing key (JWK) for `auth.local.signKey` or JWT_SIGNING_KEY.
    Generate {
        /// Algorithm of the key.
        #[arg(long, default_value = "RS256", ignore_case = true)]
        algorithm: KeyAlgorithm,
        /// Write the key to this new file, readable only by its owner, and print its `kid` instead.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// List the keys that sign and verify tokens, as the servers of this configuration see them.
    List {
        /// Configuration of the servers.
        #[arg(short, long, value_name = "FILE", default_value = "gatewright.yaml")]
        config: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove a key at once: tokens that it signed become invalid, and clients refresh them.
    ///
    /// For keys that the servers generated and keep in their store. Running servers follow within 30 seconds. If it is the key that signs,
    /// another one takes its place.
    Retire {
        /// The `kid` of the key, as `gatewright key list` prints it.
        kid: String,
        /// Configuration of the servers.
        #[arg(short, long, value_name = "FILE", default_value = "gatewright.yaml")]
        config: PathBuf,
        /// Print JSON with the remaining keys.
        #[arg(long)]
        json: bool,
    },
    /// Sign with a new key from now on; old keys still verify until the tokens that they signed expire.
    ///
    /// For keys that the servers generated and keep in their store. Running servers follow within 30 seconds.
    Rotate {
        /// Configuration of the servers.
        #[arg(short, long, value_name = "FILE", default_value = "gatewright.yaml")]
        config: PathBuf,
    },
}

/// Algorithms of signing keys.
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

/// Commands for users.
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Print the argon2id hash of a password, for `auth.local.users[].passwordHash`.
    ///
    /// The password is read from the terminal, or from the first line of standard input. It is never an argument, which other users of the
    /// machine could read.
    Hash,
    /// Print a one-time link with which a user of `auth.local.users` adds a passkey without signing in first.
    ///
    /// For users without a `passwordHash`, and for users who lost every passkey. The link gives access to the account: hand it over like a
    /// password. Needs `auth.local.passkeys.enabled: true` and a store that the servers share (`sqlite` or `redis`).
    Enrol {
        /// The `username`.
        name: String,
        /// Configuration of the servers.
        #[arg(short, long, value_name = "FILE", default_value = "gatewright.yaml")]
        config: PathBuf,
        /// Lifetime of the link.
        #[arg(long, value_name = "MINUTES", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=10_080))]
        minutes: u64,
    },
    /// Sign a user out everywhere: end every browser session, and revoke every token that applications hold for the user.
    SignOut {
        /// The `username`, or the subject as the audit names it (`user:ada`, `idp:…`).
        name: String,
        #[command(flatten)]
        store: StoreArgs,
    },
}

// The store that a command works on. A doc comment here would replace that of each command.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// Configuration of the servers, which must share a store (`sqlite` or `redis`).
    #[arg(short, long, value_name = "FILE", default_value = "gatewright.yaml")]
    pub config: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Commands for tokens of running servers.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Revoke an access or refresh token, and all others of the same authorization, at every server at once.
    ///
    /// The token is the first line of standard input. It is never an argument, which other users of the machine could read. Exit code 1 if
    /// the token is not one of these servers, has expired, or was revoked before.
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

/// Commands for OAuth clients.
#[derive(Debug, Subcommand)]
pub enum ClientCommand {
    /// List the clients of the configuration and those that registered themselves.
    List {
        /// Number of registered clients to show, at most.
        #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        most: u32,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Remove a client that registered itself, and revoke everything granted to it.
    ///
    /// Remove a client of the configuration there. Block a client with a metadata document by `auth.cimd.denyHosts`.
    Remove {
        /// The `client_id`.
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

/// Commands for consents.
#[derive(Debug, Subcommand)]
pub enum ConsentCommand {
    /// List the consents that users gave.
    List {
        /// Only consents of this user: a `username`, or a subject.
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
        /// Number of consents to examine, at most.
        #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        most: u32,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Withdraw a consent: revoke the tokens of the application for that user, and ask the user again next time.
    Withdraw {
        /// The `username`, or the subject as `gatewright consent list` prints it.
        user: String,
        /// The `client_id`.
        client: String,
        #[command(flatten)]
        store: StoreArgs,
    },
}

/// `gatewright executions`.
#[derive(Debug, Args)]
pub struct ExecutionsArgs {
    #[command(subcommand)]
    pub command: ExecutionsCommand,
}

/// Commands for executions.
#[derive(Debug, Subcommand)]
pub enum ExecutionsCommand {
    /// List executions: those that wait first, then those that run, then the latest that ended.
    List {
        /// Only executions in this state.
        #[arg(long)]
        state: Option<ExecutionState>,
        /// Number of executions, at most.
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=2_000))]
        most: u32,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Show one execution.
    Show {
        /// Its id, such as `exe_…`.
        id: String,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// End an execution that runs or waits. A call that is under way is not undone.
    Cancel {
        /// Its id, such as `exe_…`.
        id: String,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Run the script of an execution against its journal, and compare. No tool is called.
    ///
    /// Exit code 1 if the replay differs from the journal.
    Replay {
        /// Its id, such as `exe_…`.
        id: String,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Make a test suite or a saved plan of an execution.
    Export(ExportArgs),
}

/// `gatewright executions export`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("form").required(true).args(["suite", "plan"]))]
pub struct ExportArgs {
    /// Its id, such as `exe_…`.
    pub id: String,
    /// A suite for `gatewright test`: the script, its calls as mocks, and the expected result.
    #[arg(long)]
    pub suite: bool,
    /// A saved plan: the script with a header. Its input is what the execution had as context.
    #[arg(long)]
    pub plan: bool,
    /// File to write, which must not exist. Default: standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Name of the plan. Default: the name of the file without its extension, or one made of the id.
    #[arg(long, conflicts_with = "suite")]
    pub name: Option<String>,
    /// Description of the plan, by which agents find it. Default: the calls that it makes.
    #[arg(long, conflicts_with = "suite", value_name = "TEXT")]
    pub description: Option<String>,
    /// Configuration of the servers, which must share a store (`sqlite` or `redis`).
    #[arg(short, long, value_name = "FILE", default_value = "gatewright.yaml")]
    pub config: PathBuf,
}

/// States of executions.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum ExecutionState {
    Running,
    Waiting,
    Ended,
}
