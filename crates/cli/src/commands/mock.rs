//! `gatewright mock`: the test kit's servers, for tests in other languages and by hand.

use std::{io::ErrorKind, path::Path, process::ExitCode};

use anyhow::Context as _;
use gatewright_testing::{
    MockCimdClientOptions, MockCimdServer, MockCimdServerOptions, MockOAuthClient, MockOAuthServer,
    MockOAuthServerInfo, MockOAuthServerOptions, MockTestUser, TokenFactory, TokenFactoryOptions, Users,
};
use serde_json::{Value, json};

use crate::{
    args::{MockArgs, MockCimdArgs, MockCommand, MockOAuthArgs},
    exit::BadConfig,
    output,
    signals::stop_signal,
};

/// Serves until stopped.
pub async fn run(args: MockArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        MockCommand::OAuth(args) => oauth(*args).await,
        MockCommand::Cimd(args) => cimd(args).await,
    }
}

async fn oauth(args: MockOAuthArgs) -> anyhow::Result<ExitCode> {
    let stop = stop_signal()?;
    let factory = TokenFactory::new(TokenFactoryOptions {
        audience: args.audience.clone(),
        expires_in_seconds: args.access_token_ttl,
        ..TokenFactoryOptions::default()
    });
    let factory = match (&args.key, args.alg) {
        (Some(file), Some(algorithm)) => factory.key_file_for(file, algorithm),
        (Some(file), None) => factory.key_file(file),
        (None, algorithm) => Ok(factory.algorithm(algorithm.unwrap_or_default())),
    };
    let factory = factory.map_err(|error| BadConfig(error.to_string()))?;
    let clients = match &args.clients {
        Some(file) => json_file::<Vec<MockOAuthClient>>(file, "clients")?,
        None => Vec::new(),
    };
    let trusted = args.trust.iter().map(|file| {
        std::fs::read_to_string(file)
            .map_err(|error| BadConfig(format!("{} cannot be read: {error}", file.display())))
    });
    let user = MockTestUser {
        sub: args.user.clone(),
        email: args.email,
        name: args.name,
        picture: args.picture,
        claims: args.claim.into_iter().collect(),
    };
    let options = MockOAuthServerOptions {
        port: Some(args.port),
        auto_approve: args.auto_approve,
        test_user: Some(user),
        client_id: args.client_id,
        client_secret: args.client_secret,
        clients,
        accept_any_client: args.any_client,
        valid_redirect_uris: args.redirect_uri,
        protected_resources: args.resource,
        access_token_ttl_seconds: args.access_token_ttl,
        refresh_token_ttl_seconds: args.refresh_token_ttl,
        https: args.https,
        trusted_ca_pem: trusted.collect::<Result<_, _>>()?,
        dpop_nonce: args.dpop_nonce,
        debug: args.debug,
    };
    let mut server = MockOAuthServer::new(factory, options);
    let info = server.start().await.map_err(|error| not_bound(args.port, error))?;
    if let (Some(file), Some(pem)) = (&args.ca, server.ca_pem()) {
        std::fs::write(file, pem).with_context(|| format!("{} cannot be written", file.display()))?;
    }
    for (endpoint, fault) in args.fault {
        server.inject_fault(endpoint, fault, None);
    }
    let factory = server.get_token_factory();
    let users = Users::default();
    let text = if args.json {
        json!({
            "baseUrl": info.base_url, "port": info.port, "issuer": info.issuer, "jwksUrl": info.jwks_url,
            "audience": args.audience,
            "tokens": {
                "admin": factory.create_test_token(&users.admin),
                "user": factory.create_test_token(&users.user),
                "readOnly": factory.create_test_token(&users.read_only),
                "anonymous": factory.create_anonymous_token(),
            },
        })
        .to_string()
    } else {
        oauth_tour(&info, &args.audience, &factory.create_test_token(&users.user))
    };
    print_line(&text);
    stop.cancelled().await;
    server.stop();
    Ok(ExitCode::SUCCESS)
}

fn oauth_tour(info: &MockOAuthServerInfo, audience: &str, token: &str) -> String {
    let base = &info.base_url;
    format!(
        "Mock authorization server. Anybody may log in: for tests only.

  issuer      {base}
  metadata    {base}/.well-known/oauth-authorization-server
  keys        {jwks}
  authorize   {base}/oauth/authorize
  token       {base}/oauth/token
  register    {base}/oauth/register
  revoke      {base}/oauth/revoke
  introspect  {base}/oauth/introspect
  user info   {base}/userinfo

  # Environment for a server that trusts it
  IDP_PROVIDER_URL={base} IDP_EXPECTED_AUDIENCE={audience}

  # A token of test-user with the scopes `read write`
  {token}

  # A token without a login
  curl -s {base}/oauth/token -d grant_type=anonymous

Ctrl-C stops it.",
        jwks = info.jwks_url,
    )
}

async fn cimd(args: MockCimdArgs) -> anyhow::Result<ExitCode> {
    let stop = stop_signal()?;
    let clients = clients(&args)?;
    let documents = args.document.iter().map(|(path, file)| {
        let text = std::fs::read_to_string(file).map_err(|error| {
            BadConfig(format!("--document {path}={file}: the file cannot be read: {error}"))
        })?;
        Ok((path, Value::String(text)))
    });
    let documents = documents.collect::<Result<Vec<_>, BadConfig>>()?;
    let options = MockCimdServerOptions { port: Some(args.port), debug: args.debug, https: args.https };
    let mut server = MockCimdServer::new(options);
    let info = server.start().await.map_err(|error| not_bound(args.port, error))?;
    if let (Some(file), Some(pem)) = (&args.ca, server.ca_pem()) {
        std::fs::write(file, pem).with_context(|| format!("{} cannot be written", file.display()))?;
    }
    let ids: Vec<(&str, String)> =
        clients.iter().map(|client| (client.name.as_str(), server.register_client(client))).collect();
    let mut others = Vec::new();
    for (path, document) in documents {
        others.push(server.register_invalid_document(path, &document));
    }
    for (path, status) in &args.error {
        others.push(server.register_fetch_error(path, *status, None));
    }
    let text = if args.json {
        let ids: serde_json::Map<String, Value> =
            ids.iter().map(|(name, id)| ((*name).to_owned(), json!(id))).collect();
        json!({"baseUrl": info.base_url, "port": info.port, "clientIds": ids, "documents": others})
            .to_string()
    } else {
        let mut lines =
            vec![format!("Mock server of client metadata documents at {}", info.base_url), String::new()];
        lines.extend(ids.iter().map(|(name, id)| format!("  {name}: client_id {id}")));
        lines.extend(others.iter().map(|url| format!("  bad on purpose: {url}")));
        lines.push("\nCtrl-C stops it.".to_owned());
        lines.join("\n")
    };
    print_line(&text);
    stop.cancelled().await;
    server.stop();
    Ok(ExitCode::SUCCESS)
}

/// The clients from the command line and from the file.
fn clients(args: &MockCimdArgs) -> anyhow::Result<Vec<MockCimdClientOptions>> {
    let named = args.client.iter().map(|name| {
        let mut client = MockCimdClientOptions::new(name);
        if !args.redirect_uri.is_empty() {
            client.redirect_uris.clone_from(&args.redirect_uri);
        }
        client
    });
    let mut clients: Vec<_> = named.collect();
    if let Some(file) = &args.clients {
        clients.extend(json_file::<Vec<MockCimdClientOptions>>(file, "clients")?);
    }
    if clients.is_empty() && args.document.is_empty() && args.error.is_empty() {
        return Err(BadConfig(
            "nothing to serve: name a client with --client NAME, a file of clients with --clients FILE, or bad documents with \
             --document and --error"
                .to_owned(),
        )
        .into());
    }
    Ok(clients)
}

/// Reads a JSON array of `what` from a file.
fn json_file<T: serde::de::DeserializeOwned>(file: &Path, what: &str) -> Result<T, BadConfig> {
    let path = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|error| BadConfig(format!("{path} cannot be read: {error}")))?;
    serde_json::from_str(&text)
        .map_err(|error| BadConfig(format!("{path} is no JSON array of {what}: {error}")))
}

fn not_bound(port: u16, error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::AddrInUse => {
            anyhow::anyhow!(
                "port {port} is taken; name another with --port, or leave it out to get a free one"
            )
        }
        ErrorKind::PermissionDenied => {
            anyhow::anyhow!("port {port} may not be used by this user; name one above 1023 with --port")
        }
        _ => anyhow::Error::new(error).context(format!("port {port} cannot be listened on")),
    }
}

/// Prints a line. The server continues if standard output is closed.
fn print_line(text: &str) {
    let _ = output::raw(format!("{text}\n").as_bytes());
}
