//! The environment of a suite's tests: the server, the issuer of tokens, and the HTTP mocks.

mod http_mocks;
mod server;
mod users;

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::NamedTempFile;

pub(super) use server::resolve_path;
use server::{builder, config_file};

use super::{file::Suite, options::RunOptions, upstreams::Upstreams, variables::Variables};
use crate::{
    client::Mcp,
    http_mock::{self, HttpMock, HttpMockHandle},
    mock_oauth::MockOAuthServer,
    protocol::ClientError,
    server::Server,
    shapes::Strict,
    token::Auth,
};

pub(super) struct Environment {
    pub(super) server: Server,
    pub(super) http: Option<HttpMock>,
    auth: Auth,
    _issuer: Option<MockOAuthServer>,
    upstreams: Upstreams,
    _config: Option<NamedTempFile>,
    /// Mocks that must be used, with the required number of uses.
    required: Vec<(HttpMockHandle, usize)>,
    protocol_version: Option<String>,
}

impl Environment {
    /// Starts everything. The error names what does not start, and the reason.
    pub(super) async fn start(
        suite: &Suite,
        options: &RunOptions,
        variables: &Variables,
    ) -> Result<Self, String> {
        let file = &suite.file;
        let mut section = file.server.clone();
        if options.command.is_some() || options.url.is_some() {
            (section.command, section.url, section.base_url) =
                (options.command.clone(), options.url.clone(), None);
        }
        let upstreams = Upstreams::start(&file.upstreams, variables).await?;
        let mut variables = variables.clone();
        variables.known.insert("upstreams".into(), upstreams.addresses());
        let variables = &variables;
        let config = section.config.as_ref().map(|config| config_file(config, variables)).transpose()?;
        if let Some(program) = section.command.as_ref().and_then(|command| options.programs.get(command)) {
            section.command = Some(program.display().to_string());
        }
        let path = config.as_ref().map(|file| file.path().display().to_string()).unwrap_or_default();
        let mut builder = builder(&section, suite.dir.as_deref(), variables, &path)?;
        let (auth, issuer) = Self::auth(&file.auth, suite.dir.as_deref(), variables).await?;
        if let Some(issuer) = &issuer {
            builder = builder
                .env("IDP_PROVIDER_URL", &issuer.info().base_url)
                .env("IDP_EXPECTED_AUDIENCE", auth.get_audience());
        }
        // The suite's own variables override the issuer's.
        for (name, value) in &section.env {
            builder = builder.env(name, variables.text(value)?);
        }
        let (mut http, mut required) = (None, Vec::new());
        if !file.http_mocks.is_empty() || file.record_http.is_some() {
            let mock = http_mock::interceptor().map_err(|error| format!("the HTTP mock: {error}"))?;
            for entry in &file.http_mocks {
                let handle = mock.mock(entry.options(variables)?);
                if entry.required {
                    required.push((handle, entry.times.unwrap_or(1) as usize));
                }
            }
            if let Some(cassette) = &file.record_http {
                let cassette = resolve_path(suite.dir.as_deref(), &variables.text(cassette)?);
                mock.record(cassette).map_err(|error| error.to_string())?;
            }
            builder = builder.http_mock(&mock);
            http = Some(mock);
        }
        let server = builder.start().await.map_err(|error| error.to_string())?;
        let protocol_version = section.protocol_version.clone();
        Ok(Self {
            server,
            http,
            auth,
            _issuer: issuer,
            upstreams,
            _config: config,
            required,
            protocol_version,
        })
    }

    /// Variables such as `${server.baseUrl}` and `${auth.issuer}`.
    pub(super) fn variables(&self) -> Vec<(String, Value)> {
        let info = self.server.info();
        let server = json!({"baseUrl": info.base_url, "port": info.port, "pid": info.pid});
        let auth = json!({"issuer": self.auth.get_issuer(), "audience": self.auth.get_audience()});
        vec![
            ("server".into(), server),
            ("auth".into(), auth),
            ("upstreams".into(), self.upstreams.addresses()),
        ]
    }

    /// Creates a client, connected unless the server rejects it.
    pub(super) async fn client(
        &self,
        token: Option<String>,
        cassette: Option<PathBuf>,
        strict: Option<&Strict>,
    ) -> Result<Mcp, ClientError> {
        let mut client = self.server.client();
        if let Some(strict) = strict {
            client = client.strict(strict.clone());
        }
        if let Some(cassette) = cassette {
            client = client.record(cassette);
        }
        if let Some(version) = &self.protocol_version {
            client = client.protocol_version(version);
        }
        if let Some(token) = token {
            client = client.token(token);
        }
        client.connect_or_refused().await
    }

    /// Required HTTP mocks and answers of upstreams that were not used, and unmatched calls. Required ones are checked only if all tests ran (`complete`).
    pub(super) fn mock_problems(&self, complete: bool) -> Option<String> {
        let mut lines = Vec::new();
        for (handle, times) in self.required.iter().filter(|_| complete) {
            let used = handle.call_count();
            if used < *times {
                lines.push(format!("not used: {handle} (used {used} of {times} times)"));
            }
        }
        let unmatched = self.http.iter().flat_map(HttpMock::unmatched);
        lines.extend(unmatched.map(|call| format!("no HTTP mock wants: {call}")));
        lines.extend(self.upstreams.problems(complete));
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}
