//! `gatewright consent`: what users allowed applications.

use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::json;

use crate::{
    args::{ConsentArgs, ConsentCommand, StoreArgs},
    auth,
    exit::BadConfig,
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
    let server = auth::shared(store).await?;
    let subject = user.map(auth::subject);
    let consents =
        server.consents(subject.as_deref(), most).await.context("the consents cannot be listed")?;
    if store.json {
        println!("{:#}", serde_json::to_value(&consents)?);
        return Ok(());
    }
    println!("{:<24} {:<40} {:<12} SCOPES", "USER", "CLIENT", "UNIX TIME");
    for consent in consents {
        let (at, scopes) = (consent.at_ms / 1000, consent.scopes.join(" "));
        println!("{:<24} {:<40} {at:<12} {scopes}", consent.subject, consent.client);
    }
    Ok(())
}

async fn withdraw(user: &str, client: &str, store: &StoreArgs) -> anyhow::Result<()> {
    let server = auth::shared(store).await?;
    let subject = auth::subject(user);
    if subject != user && !server.knows_user(user) {
        return Err(BadConfig(format!(
            "there is no `{user}` under `auth.local.users`; for somebody who is not configured write the subject, such as `user:{user}`"
        ))
        .into());
    }
    server.withdraw_consent(&subject, client).await.context("nothing was withdrawn")?;
    match store.json {
        true => println!("{}", json!({"withdrawn": {"subject": subject, "client": client}})),
        false => {
            println!("what {subject} allowed {client} is withdrawn, and its tokens for that user have ended")
        }
    }
    Ok(())
}
