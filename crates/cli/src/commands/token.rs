//! `gatewright token`: signed tokens for tests, and revocation of real ones.

use std::{
    io::{BufRead as _, Read as _},
    process::ExitCode,
};

use anyhow::Context as _;

use gatewright_testing::{Algorithm, CreateTokenOptions, Defect, TokenFactory, TokenFactoryOptions, Users};
use serde_json::json;

use crate::{
    args::{StoreArgs, TokenArgs, TokenCommand, TokenUser},
    exit::{self, BadConfig},
    output::{self, errln, outln},
    wire::auth_store::{self, Access},
};

/// Prints one token, or revokes one.
pub async fn run(args: &TokenArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        Some(TokenCommand::Revoke { store }) => revoke(store).await,
        None => print(args),
    }
}

/// Longest first line of standard input, in bytes.
const MOST_BYTES: u64 = 64 * 1024;

async fn revoke(store: &StoreArgs) -> anyhow::Result<ExitCode> {
    let mut line = String::new();
    let input = std::io::stdin().lock().take(MOST_BYTES).read_line(&mut line);
    input.context("standard input is not text")?;
    let token = line.trim();
    if token.is_empty() {
        return Err(BadConfig("write the token to standard input".to_owned()).into());
    }
    let server = auth_store::open_shared(store, Access::Change).await?;
    let revoked = server.revoke_token(token).await.context("the token was not revoked")?;
    match (&revoked, store.json) {
        (Some(revoked), true) => {
            output::json(&json!({"revoked": true, "subject": revoked.subject, "client": revoked.client}))?;
        }
        (Some(revoked), false) => {
            outln!("the tokens that {} gave to {} are revoked", revoked.subject, revoked.client)?;
        }
        (None, true) => output::json(&json!({"revoked": false}))?,
        (None, false) => {
            errln!("the token is not one of these servers, has expired, or was revoked before");
        }
    }
    Ok(if revoked.is_some() { ExitCode::SUCCESS } else { ExitCode::from(exit::FAILED) })
}

fn print(args: &TokenArgs) -> anyhow::Result<ExitCode> {
    let factory = TokenFactory::new(TokenFactoryOptions {
        issuer: args.issuer.clone(),
        audience: args.audience.clone(),
        expires_in_seconds: args.expires_in,
    });
    let factory = match (&args.key, args.alg) {
        (Some(file), Some(algorithm)) => factory.key_file_for(file, algorithm),
        (Some(file), None) => factory.key_file(file),
        (None, algorithm) => Ok(factory.algorithm(algorithm.unwrap_or_default())),
    };
    let factory = factory.map_err(|error| BadConfig(error.to_string()))?;
    if args.jwks {
        output::pretty_json(&factory.get_public_jwks())?;
        return Ok(ExitCode::SUCCESS);
    }
    let options = options(args);
    let defect = match (args.expired, args.invalid_signature) {
        (true, _) => Some(Defect::Expired),
        (_, true) => Some(Defect::Signature),
        (false, false) => args.broken,
    };
    let token = match defect {
        Some(defect) => factory.create_broken_token(&options, defect),
        None => factory.create_test_token(&options),
    };
    if args.json {
        let claims = TokenFactory::unverified_claims(&token);
        output::pretty_json(&json!({"token": token, "claims": claims, "jwks": factory.get_public_jwks()}))?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.key.is_none() && args.alg != Some(Algorithm::None) {
        errln!(
            "note: the key of this token is not kept, so nothing can verify the token; keep the key with --key FILE, or print its \
             public part with --json"
        );
    }
    outln!("{token}")?;
    Ok(ExitCode::SUCCESS)
}

fn options(args: &TokenArgs) -> CreateTokenOptions {
    let Users { admin, user, read_only } = Users::default();
    let mut options = match args.user {
        TokenUser::Admin => admin,
        TokenUser::User => user,
        TokenUser::ReadOnly => read_only,
        TokenUser::Anonymous => CreateTokenOptions::new("anonymous"),
    };
    if let Some(sub) = &args.sub {
        options.sub.clone_from(sub);
    }
    if !args.scope.is_empty() {
        options.scopes =
            args.scope.iter().flat_map(|scopes| scopes.split_ascii_whitespace()).map(str::to_owned).collect();
    }
    options.email.clone_from(&args.email);
    options.name.clone_from(&args.name);
    for (name, value) in &args.claim {
        options = options.claim(name, value.clone());
    }
    options
}
