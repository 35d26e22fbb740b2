//! `gatewright consent`: consents that users gave to applications.

use std::process::ExitCode;

use anyhow::Context as _;
use gatewright_findings::printable;
use serde_json::json;

use crate::{
    args::{ConsentArgs, ConsentCommand, StoreArgs},
    exit,
    output::{self, errln, outln},
    wire::auth_store::{self, Access},
};

/// Lists consents, or withdraws one.
pub async fn run(args: &ConsentArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        ConsentCommand::List { user, most, store } => {
            list(user.as_deref(), *most as usize, store).await?;
            Ok(ExitCode::SUCCESS)
        }
        ConsentCommand::Withdraw { user, client, store } => withdraw(user, client, store).await,
    }
}

/// A name on one line of the table, whatever an identity provider or a client put into it.
fn cell(text: &str) -> String {
    printable(text, 1_000)
}

async fn list(user: Option<&str>, most: usize, store: &StoreArgs) -> anyhow::Result<()> {
    let server = auth_store::open_shared(store, Access::Read).await?;
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
        outln!("{:<24} {:<40} {at:<12} {scopes}", cell(&consent.subject), cell(&consent.client))?;
    }
    Ok(())
}

/// The most consents of one user that are looked through.
const MOST: usize = 10_000;

/// Withdraws a consent. Without one, tokens that were granted in another way are revoked all the same, and the exit code is 1.
async fn withdraw(user: &str, client: &str, store: &StoreArgs) -> anyhow::Result<ExitCode> {
    let server = auth_store::open_shared(store, Access::Change).await?;
    let subject = auth_store::known_subject(&server, user)?;
    let consents = server.consents(Some(&subject), MOST).await.context("the consents cannot be listed")?;
    let is_known = consents.iter().any(|consent| consent.client == client);
    server.withdraw_consent(&subject, client).await.context("the consent was not withdrawn")?;
    if !is_known {
        errln!(
            "no consent of {subject} for {client} is recorded; `gatewright consent list` prints all; tokens of that client for that user, if there are any, are revoked"
        );
        return Ok(ExitCode::from(exit::FAILED));
    }
    match store.json {
        true => output::json(&json!({"withdrawn": {"subject": subject, "client": client}}))?,
        false => outln!(
            "the consent of {subject} for {client} is withdrawn, and its tokens for that user are revoked"
        )?,
    }
    Ok(ExitCode::SUCCESS)
}
