//! `gatewright consent`: consents that users gave to applications.

use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::json;

use crate::{
    args::{ConsentArgs, ConsentCommand, StoreArgs},
    output::{self, outln},
    wire::auth_store,
};

/// Lists consents, or withdraws one.
pub async fn run(args: &ConsentArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        ConsentCommand::List { user, most, store } => list(user.as_deref(), *most as usize, store).await?,
        ConsentCommand::Withdraw { user, client, store } => withdraw(user, client, store).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(user: Option<&str>, most: usize, store: &StoreArgs) -> anyhow::Result<()> {
    let server = auth_store::open_shared(store).await?;
    let subject = user.map(auth_store::subject);
    let consents =
        server.consents(subject.as_deref(), most).await.context("the consents cannot be listed")?;
    if store.json {
        output::pretty_json(&serde_json::to_value(&consents)?)?;
        return Ok(());
    }
    outln!("{:<24} {:<40} {:<12} SCOPES", "USER", "CLIENT", "UNIX TIME")?;
    for consent in consents {
        let (at, scopes) = (consent.at_ms / 1000, consent.scopes.join(" "));
        outln!("{:<24} {:<40} {at:<12} {scopes}", consent.subject, consent.client)?;
    }
    Ok(())
}

async fn withdraw(user: &str, client: &str, store: &StoreArgs) -> anyhow::Result<()> {
    let server = auth_store::open_shared(store).await?;
    let subject = auth_store::known_subject(&server, user)?;
    server.withdraw_consent(&subject, client).await.context("the consent was not withdrawn")?;
    match store.json {
        true => output::json(&json!({"withdrawn": {"subject": subject, "client": client}}))?,
        false => outln!(
            "the consent of {subject} for {client} is withdrawn, and its tokens for that user are revoked"
        )?,
    }
    Ok(())
}
