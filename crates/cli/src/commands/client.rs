//! `gatewright client`: OAuth clients.

use std::process::ExitCode;

use anyhow::Context as _;
use gatewright_auth::RemovedClient;
use serde_json::json;

use crate::{
    args::{ClientArgs, ClientCommand, StoreArgs},
    exit::BadConfig,
    output::{self, outln},
    wire::auth_store::{self, Access},
};

/// Lists clients, or removes one.
pub async fn run(args: &ClientArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        ClientCommand::List { most, store } => list(*most as usize, store).await?,
        ClientCommand::Remove { id, store } => remove(id, store).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(most: usize, store: &StoreArgs) -> anyhow::Result<()> {
    let server = auth_store::open_shared(store, Access::Read).await?;
    let clients = server.clients(most).await.context("the clients cannot be listed")?;
    if store.json {
        output::pretty_json(&serde_json::to_value(&clients)?)?;
        return Ok(());
    }
    outln!("{:<40} {:<10} {:<20} NAME", "CLIENT", "ORIGIN", "AUTHENTICATION")?;
    for client in clients {
        outln!("{:<40} {:<10} {:<20} {}", client.id, client.origin, client.authentication, client.name)?;
    }
    Ok(())
}

async fn remove(id: &str, store: &StoreArgs) -> anyhow::Result<()> {
    let server = auth_store::open_shared(store, Access::Change).await?;
    let problem = match server.remove_client(id).await.context("the client was not removed")? {
        RemovedClient::Removed => {
            match store.json {
                true => output::json(&json!({"removed": id}))?,
                false => outln!("{id} is removed, and everything granted to it is revoked")?,
            }
            return Ok(());
        }
        RemovedClient::Configured => {
            format!("`{id}` is configured under `auth.clients`: remove it there and restart the servers")
        }
        RemovedClient::Unknown => {
            format!("there is no client `{id}`; `gatewright client list` prints all clients")
        }
    };
    Err(BadConfig(problem).into())
}
