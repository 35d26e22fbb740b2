//! The `gatewright` command. Only this crate handles configuration files, the environment and exit codes.
//!
//! `args` describes the command line, `config` reads a configuration, `wire` builds the parts that run, `reload` applies changes to
//! them, and `commands` has one file per command. It is a library only for the fuzz targets, not an interface.
#![forbid(unsafe_code)]
#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "`output` escapes what it prints, and does not panic when its reader is gone"
)]

mod args;
mod ask;
mod clients;
mod commands;
mod config;
mod environment;
mod exit;
#[doc(hidden)]
pub mod fuzz;
mod help;
mod logging;
mod login;
mod names;
mod output;
mod pins;
mod reference;
mod reload;
mod rpc;
mod signals;
mod wire;
mod write;

use std::{process::ExitCode, time::Duration};

use args::{Cli, Command};
use clap::FromArgMatches as _;

/// Longest wait for threads that are still at work when a command has ended.
const BLOCKED: Duration = Duration::from_secs(2);

/// Time for which a thread for long work waits for more of it. Each keeps memory of what it did.
const KEPT_ALIVE: Duration = Duration::from_millis(500);

/// Runs the command line of this process. Its threads call `collect` before they wait: memory that is free may be given back then.
pub fn main(collect: impl Fn() + Send + Sync + 'static) -> ExitCode {
    // Before anything else, so that the process of a worker contains nothing that a script must not see.
    if gatewright::is_worker() {
        return gatewright::worker_main();
    }
    let cli = match Cli::from_arg_matches(&help::grouped().get_matches()) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    if let Err(error) = logging::start(&cli.log) {
        return exit::report(&error);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .on_thread_park(collect)
        .thread_keep_alive(KEPT_ALIVE)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            return exit::report(&anyhow::Error::new(error).context("the async runtime cannot be started"));
        }
    };
    let ended = runtime.block_on(run(cli.command));
    // A thread that reads from a file system that hangs never ends.
    runtime.shutdown_timeout(BLOCKED);
    match ended {
        Ok(code) => code,
        Err(error) => exit::report(&error),
    }
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Demo(args) => commands::demo::run(args).await,
        Command::Serve(args) => commands::serve::run(args).await,
        Command::Init(args) => commands::init::run(&args),
        Command::Add(args) => commands::add::run(&args),
        Command::Connect(args) => commands::connect::connect(&args),
        Command::Disconnect(args) => commands::connect::disconnect(&args),
        Command::Audit(args) => commands::audit::run(&args),
        Command::Check(args) => commands::check::run(&args).await,
        Command::Key(args) => commands::key::run(args).await,
        Command::ApiKey(args) => commands::api_key::run(&args).await,
        Command::User(args) => commands::user::run(&args).await,
        Command::Client(args) => commands::client::run(&args).await,
        Command::Consent(args) => commands::consent::run(&args).await,
        Command::Executions(args) => commands::executions::run(&args).await,
        Command::Pins(args) => commands::pins::run(&args).await,
        Command::Health(args) => commands::health::run(args).await,
        Command::Tools(args) => commands::tools::run(args).await,
        Command::Policy(args) => commands::policy::run(args).await,
        Command::Login(args) => commands::login::run(args).await,
        Command::Logout(args) => commands::login::out(args).await,
        Command::Eval(args) => commands::eval::run(args).await,
        Command::Test(args) => commands::test::run(*args).await,
        Command::Mock(args) => commands::mock::run(args).await,
        Command::Token(args) => commands::token::run(&args).await,
        Command::Schema { suite } => commands::schema::run(suite),
        Command::Man(args) => commands::man::run(&args),
        Command::Reference { page } => commands::reference::run(page),
        Command::Completions { shell } => commands::completions::run(shell),
    }
}
