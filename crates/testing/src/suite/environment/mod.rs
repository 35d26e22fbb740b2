//! The environment of a suite's tests: the server, the issuer of tokens, and the HTTP mocks.

mod cassettes;
mod http_mocks;
mod secrets;
mod server;
mod users;

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use secrets::Secrets;
pub(super) use server::resolve_path;
use server::{builder, config_file};
pub(super) use users::Caller;

use super::{
    file::Suite,
    format::{AuthSection, Step, TestEntry},
    options::RunOptions,
    summary::summarized,
    upstreams::Upstreams,
    variables::Variables,
};
use crate::{
    base::lock,
    cassette::RecordMode,
    client::{Mcp, McpBuilder, Tape},
    http_mock::{self, HttpMock, HttpMockHandle},
    matchers::KeptFiles,
    mock_oauth::MockOAuthServer,
    protocol::ClientError,
    server::{Server, Transport},
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
    /// Snapshots and baselines of the suite.
    pub(super) files: Arc<KeptFiles>,
    /// True for a server over standard input and output, whose process the clients share.
    is_stdio: bool,
    /// Protocol violations while the server started.
    notes: Mutex<Vec<String>>,
    /// Issuer, audience and address of the keys, for `${auth.NAME}`.
    auth_values: Value,
    /// A token of each user, for `${tokens.NAME}`; null without an issuer.
    tokens: Value,
    /// Values that the server must not show.
    pub(super) secrets: Secrets,
    /// Headers of every HTTP request of clients.
    headers: Vec<(String, String)>,
    /// The mode of all cassettes.
    record: Option<RecordMode>,
    /// Unmatched HTTP calls that a failure has named, by their number.
    told: Mutex<BTreeSet<usize>>,
}

/// The number of HTTP calls of the server before a test.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HttpMark {
    pub(super) calls: usize,
    pub(super) unmatched: usize,
    pub(super) unreachable: usize,
}

impl Environment {
    /// Starts everything, for all tests or for one that gets a process of its `own`. The error names what does not start, and the
    /// reason.
    pub(super) async fn start(
        suite: &Suite,
        options: &RunOptions,
        variables: &Variables,
        own: Option<&TestEntry>,
    ) -> Result<Self, String> {
        let file = &suite.file;
        let mut section = file.server.clone();
        if options.command.is_some() || options.url.is_some() {
            (section.command, section.url, section.base_url) =
                (options.command.clone(), options.url.clone(), None);
        }
        if options.url.is_some() && section.transport == Transport::Stdio {
            section.transport = Transport::StreamableHttp;
        }
        let is_stdio = section.transport == Transport::Stdio && section.command.is_some();
        let upstreams = Upstreams::start(&file.upstreams, variables).await?;
        let mut variables = variables.clone();
        variables.known.insert("upstreams".into(), upstreams.addresses());
        let (auth, issuer) = Self::auth(&file.auth, suite.dir.as_deref(), &variables).await?;
        let has_issuer = !matches!(file.auth, AuthSection::Mock(false));
        let tokens = if has_issuer { users::tokens(&auth, suite, &variables) } else { Value::Null };
        let jwks_url = issuer.as_ref().map(|issuer| issuer.info().jwks_url.clone());
        let auth_values =
            json!({"issuer": auth.get_issuer(), "audience": auth.get_audience(), "jwksUrl": jwks_url});
        if has_issuer {
            variables.known.insert("auth".into(), auth_values.clone());
            variables.known.insert("tokens".into(), tokens.clone());
        }
        let variables = &variables;
        let secrets = Secrets::new(&file.secrets, variables)?;
        let config = section.config.as_ref().map(|config| config_file(config, variables)).transpose()?;
        if let Some(program) = section.command.as_ref().and_then(|command| options.programs.get(command)) {
            section.command = Some(program.display().to_string());
        }
        let path = config.as_ref().map(|file| file.path().display().to_string()).unwrap_or_default();
        let mut builder = builder(&section, suite.dir.as_deref(), variables, &path)?;
        if let Some(issuer) = &issuer {
            builder = builder
                .env("IDP_PROVIDER_URL", &issuer.info().base_url)
                .env("IDP_EXPECTED_AUDIENCE", auth.get_audience());
        }
        // The suite's own variables override the issuer's.
        let more = own.iter().flat_map(|test| &test.env);
        for (name, value) in section.env.iter().chain(more) {
            builder = builder.env(name, variables.text(value)?);
        }
        let (mut http, mut required) = (None, Vec::new());
        let own_mocks = file.tests.iter().any(|test| !test.http_mocks.is_empty());
        if !file.http_mocks.is_empty() || file.record_http.is_some() || own_mocks {
            let mock = http_mock::interceptor().map_err(|error| format!("the HTTP mock: {error}"))?;
            mock.advise("add one to `httpMocks`");
            for entry in &file.http_mocks {
                let handle = mock.mock(entry.options(variables)?);
                if entry.required {
                    required.push((handle, entry.times.unwrap_or(1) as usize));
                }
            }
            if let Some(cassette) = &file.record_http {
                let (file, record) = cassettes::options(suite, options.record, cassette, variables)?;
                mock.record_with(file, record).map_err(|error| error.to_string())?;
                mock.manage_cassette();
            }
            // Without mocks of the suite, tests that have none are not cut off from the network.
            mock.allow_passthrough(file.http_mocks.is_empty() && file.record_http.is_none());
            builder = builder.http_mock(&mock);
            http = Some(mock);
        }
        let server = builder.start().await.map_err(|error| error.to_string())?;
        let protocol_version = section.protocol_version.clone();
        let headers = section.headers.iter().map(|(name, value)| Ok((name.clone(), variables.text(value)?)));
        let headers = headers.collect::<Result<_, String>>()?;
        Ok(Self {
            server,
            http,
            auth,
            _issuer: issuer,
            upstreams,
            _config: config,
            required,
            protocol_version,
            files: KeptFiles::beside(suite.dir.as_ref().map(|_| Path::new(&suite.path)), options.update),
            is_stdio,
            auth_values,
            tokens,
            secrets,
            notes: Mutex::default(),
            headers,
            record: options.record,
            told: Mutex::default(),
        })
    }

    /// Starts the process of a stdio server and waits until it has answered the handshake.
    pub(super) async fn open(&self, suite: &Suite, variables: &Variables) -> Result<(), String> {
        if !self.is_stdio {
            return Ok(());
        }
        let caller = self.caller(suite, suite.file.user.as_ref(), variables)?;
        // Each client checks the answer itself, by its own rules.
        let client = self.client(&caller, None, Some(&Strict::from(false))).await;
        let client = client.map_err(|error| format!("the client does not connect: {error}"))?;
        lock(&self.notes).extend(client.logs().violations());
        client.disconnect().await;
        Ok(())
    }

    /// Protocol violations while the server started, once.
    pub(super) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.notes))
    }

    /// The number of HTTP calls so far.
    pub(super) fn http_mark(&self) -> HttpMark {
        let Some(http) = &self.http else { return HttpMark::default() };
        HttpMark {
            calls: http.calls().len(),
            unmatched: http.unmatched().len(),
            unreachable: http.unreachable().len(),
        }
    }

    /// Variables such as `${server.baseUrl}` and `${auth.issuer}`.
    pub(super) fn variables(&self) -> Vec<(String, Value)> {
        let info = self.server.info();
        let server = json!({"baseUrl": info.base_url, "port": info.port, "pid": info.pid});
        vec![
            ("server".into(), server),
            ("auth".into(), self.auth_values.clone()),
            ("tokens".into(), self.tokens.clone()),
            ("upstreams".into(), self.upstreams.addresses()),
        ]
    }

    pub(super) fn protocol_version(&self) -> Option<&str> {
        self.protocol_version.as_deref()
    }

    /// True if no step of a test, nor what surrounds it, uses its client. Over standard input and output the handshake starts the
    /// server.
    pub(super) fn needs_no_client(&self, suite: &Suite, test: &TestEntry) -> bool {
        let around = suite.file.before_each.iter().chain(&suite.file.after_each);
        let mut all = around.chain(&test.steps);
        !self.is_stdio && !test.steps.is_empty() && test.record.is_none() && all.all(Step::needs_no_client)
    }

    /// Creates a client, connected unless the server rejects it.
    pub(super) async fn client(
        &self,
        caller: &Caller,
        cassette: Option<Tape>,
        strict: Option<&Strict>,
    ) -> Result<Mcp, ClientError> {
        self.client_builder(caller, cassette, strict).connect_or_refused().await
    }

    /// Creates a client that is not connected.
    pub(super) fn client_builder(
        &self,
        caller: &Caller,
        cassette: Option<Tape>,
        strict: Option<&Strict>,
    ) -> McpBuilder {
        let mut client = self.server.shared_client();
        if let Some(strict) = strict {
            client = client.strict(strict.clone());
        }
        if let Some(cassette) = cassette {
            client = client.tape(cassette);
        }
        if let Some(version) = &self.protocol_version {
            client = client.protocol_version(version);
        }
        for (name, value) in self.headers(caller) {
            client = client.header(name, value);
        }
        if let Some(token) = &caller.token {
            client = client.token(token);
        }
        if caller.is_anonymous {
            client = client.without_credentials();
        }
        client
    }

    /// The unmatched HTTP calls from a number on, for the failure of a test: the suite does not fail for them once more.
    pub(super) fn tell_unmatched(&self, since: usize) -> Vec<String> {
        let Some(http) = &self.http else { return Vec::new() };
        let mut calls = http.unmatched_with_nearest();
        lock(&self.told).extend(since..calls.len());
        summarized(calls.split_off(since.min(calls.len())))
            .into_iter()
            .map(|call| format!("no HTTP mock wants: {call}"))
            .collect()
    }

    /// Required HTTP mocks and answers of upstreams that were not used, and unmatched calls that no test has failed for. Required ones
    /// are checked only if all tests ran (`complete`).
    pub(super) fn mock_problems(&self, complete: bool) -> Option<String> {
        let mut lines = Vec::new();
        for (handle, times) in self.required.iter().filter(|_| complete) {
            let used = handle.call_count();
            if used < *times {
                lines.push(format!("not used: {handle} (used {used} of {times} times)"));
            }
        }
        let told = lock(&self.told).clone();
        let unmatched = self.http.iter().flat_map(HttpMock::unmatched_with_nearest).enumerate();
        let untold = unmatched.filter(|(number, _)| !told.contains(number)).map(|(_, call)| call).collect();
        lines.extend(summarized(untold).into_iter().map(|call| format!("no HTTP mock wants: {call}")));
        lines.extend(self.upstreams.problems(complete));
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}
