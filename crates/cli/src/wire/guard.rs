//! The guard of a configuration, its errors, and the first login.

use std::net::{SocketAddr, TcpListener};

use gatewright::{
    Builder, Guard, GuardError, GuardedServer, Running, auth::FirstUser, operator::telemetry::OtlpConfig,
};

use crate::{config::Config, exit::BadConfig, output::errln};

/// Opens the guard of the configuration, and the builder of the gateway behind it.
///
/// # Errors
/// The configuration, a file or a store cannot be used.
pub async fn open(config: &Config, otlp: Option<OtlpConfig>) -> anyhow::Result<(Guard, Builder)> {
    Guard::open(config.guard(otlp)).await.map_err(explain)
}

/// Listens for clients and operators, and prints the first login where no user is configured.
///
/// # Errors
/// An address is taken, or the configuration, the token store or the certificate cannot be used.
pub async fn listen(guard: Guard, running: &Running) -> anyhow::Result<GuardedServer> {
    let server = guard.bind(running).await.map_err(|error| match error {
        GuardError::Listen { address, source } => cannot_listen(address, &source),
        other => explain(other),
    })?;
    if let Some(first) = server.authorization_server().and_then(|auth| auth.first_user()) {
        print_first_user(first);
    }
    Ok(server)
}

/// Checks that the address of the configuration can be listened on, before apps are started for nothing.
///
/// # Errors
/// It is taken, or is no address of this machine.
pub fn check_address(config: &Config) -> anyhow::Result<()> {
    let address = SocketAddr::new(config.http.host, config.http.port);
    TcpListener::bind(address).map(drop).map_err(|error| cannot_listen(address, &error))
}

fn cannot_listen(address: SocketAddr, why: &std::io::Error) -> anyhow::Error {
    anyhow::anyhow!(
        "cannot listen on {address}: {why}; choose another port with `--port` or `http.port`, or another address with `--host` or \
         `http.host`"
    )
}

/// Reports a bad configuration as one.
pub fn explain(error: GuardError) -> anyhow::Error {
    match error {
        GuardError::Config(problem) => BadConfig(problem).into(),
        other => other.into(),
    }
}

/// Prints the generated login to standard error. It stays out of the log, which others may read later.
fn print_first_user(first: &FirstUser) {
    errln!(
        "No user is configured (`auth.local.users`). Until there is one, sign in with a generated password, which stays valid as long as the \
         secret of the token store.\n\
         Sign in as `{}` with the password {}",
        first.username,
        first.expose_password()
    );
    tracing::warn!("no user is configured: list those who may sign in under `auth.local.users`");
}
