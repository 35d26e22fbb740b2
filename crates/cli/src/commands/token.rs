//! `gatewright token`: signed tokens for tests.

use std::process::ExitCode;

use gatewright_testing::{CreateTokenOptions, TokenFactory, TokenFactoryOptions, Users};
use serde_json::json;

use crate::{
    args::{TokenArgs, TokenUser},
    exit::BadConfig,
};

/// Prints one token.
pub fn run(args: &TokenArgs) -> anyhow::Result<ExitCode> {
    let factory = TokenFactory::new(TokenFactoryOptions {
        issuer: args.issuer.clone(),
        audience: args.audience.clone(),
        expires_in_seconds: args.expires_in,
    });
    let factory = match &args.key {
        Some(file) => factory.key_file(file).map_err(|error| BadConfig(error.to_string()))?,
        None => factory,
    };
    if args.jwks {
        println!("{:#}", factory.get_public_jwks());
        return Ok(ExitCode::SUCCESS);
    }
    let options = options(args);
    let token = match (args.expired, args.invalid_signature) {
        (true, _) => factory.create_expired_token(&options),
        (_, true) => factory.create_token_with_invalid_signature(&options),
        (false, false) => factory.create_test_token(&options),
    };
    if args.json {
        let claims = TokenFactory::unverified_claims(&token);
        println!("{:#}", json!({"token": token, "claims": claims, "jwks": factory.get_public_jwks()}));
        return Ok(ExitCode::SUCCESS);
    }
    if args.key.is_none() {
        eprintln!(
            "note: the key of this token is gone now, so nothing can verify it; keep it with --key FILE, or print its \
             public half with --json"
        );
    }
    println!("{token}");
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
