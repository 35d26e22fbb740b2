//! The guard of a configuration, its errors, and the first login.

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
        GuardError::Listen { address, source } => anyhow::anyhow!(
            "cannot listen on {address}: {source}; choose another port with `--port` or `http.port`, or another address with `--host` or \
             `http.host`"
        ),
        other => explain(other),
    })?;
    if let Some(first) = server.authorization_server().and_then(|auth| auth.first_user()) {
        print_first_user(first);
    }
    Ok(server)
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
