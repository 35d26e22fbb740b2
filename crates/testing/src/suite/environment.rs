//! The environment of a suite's tests: the server, the issuer of tokens, and the HTTP mocks.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Map, Value, json};
use tempfile::NamedTempFile;

use super::{
    check::USERS,
    file::Suite,
    format::{AuthSection, HttpMockEntry, IssuerSection, ServerSection, User, UserSection},
    options::RunOptions,
    upstreams::Upstreams,
    variables::Variables,
};
use crate::{
    client::Mcp,
    http_mock::{self, HttpMock, HttpMockHandle, HttpMockOptions, http_response},
    matchers::text,
    mock_oauth::{MockOAuthServer, MockOAuthServerOptions},
    protocol::ClientError,
    server::{Server, ServerBuilder},
    token::{Auth, TokenFactory, TokenFactoryOptions, TokenOptions},
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

    async fn auth(
        section: &AuthSection,
        dir: Option<&Path>,
        variables: &Variables,
    ) -> Result<(Auth, Option<MockOAuthServer>), String> {
        let issuer = match section {
            AuthSection::Mock(false) => return Ok((Auth::default(), None)),
            AuthSection::Mock(true) => &IssuerSection::default(),
            AuthSection::Issuer(issuer) => issuer,
        };
        let mut options = TokenFactoryOptions::default();
        if let Some(audience) = &issuer.audience {
            options.audience = variables.text(audience)?;
        }
        if let Some(url) = &issuer.issuer {
            options.issuer = variables.text(url)?;
        }
        let mut factory = TokenFactory::new(options);
        if let Some(key) = &issuer.key {
            let path = resolve_path(dir, &variables.text(key)?);
            factory = factory.key_file(path).map_err(|error| error.to_string())?;
        }
        if issuer.issuer.is_some() {
            return Ok((Auth::new(factory), None));
        }
        let options = MockOAuthServerOptions { auto_approve: true, ..MockOAuthServerOptions::default() };
        let mut mock = MockOAuthServer::new(factory, options);
        mock.start().await.map_err(|error| format!("the mock OAuth server: {error}"))?;
        Ok((Auth::new(mock.get_token_factory()), Some(mock)))
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
    ) -> Result<Mcp, ClientError> {
        let mut client = self.server.client();
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

    /// Creates the token of a user.
    pub(super) fn token(&self, suite: &Suite, user: &User, variables: &Variables) -> Result<String, String> {
        let described = match user {
            User::Token(one) => return variables.text(&one.token),
            User::Described(user) => user,
            User::Named(name) => {
                let name = variables.text(name)?;
                if let Some(user) = suite.file.users.get(&name) {
                    return self.signed(user, variables);
                }
                let users = &self.auth.users;
                let user = match name.as_str() {
                    "admin" => users.admin.clone(),
                    "user" => users.user.clone(),
                    "readOnly" => users.read_only.clone(),
                    "anonymous" => TokenOptions::new("anonymous"),
                    _ => {
                        let known = USERS.into_iter().chain(suite.file.users.keys().map(String::as_str));
                        return Err(format!(
                            "`{name}`: {}",
                            gatewright_findings::unknown("user", &name, known)
                        ));
                    }
                };
                return Ok(self.auth.create_token(&user));
            }
        };
        self.signed(described, variables)
    }

    fn signed(&self, user: &UserSection, variables: &Variables) -> Result<String, String> {
        let mut options = TokenOptions::new(variables.text(&user.sub)?).scopes(&user.scopes);
        options.email.clone_from(&user.email);
        options.name.clone_from(&user.name);
        options.expires_in = user.expires_in;
        for (name, value) in &user.claims {
            options = options.claim(name, variables.fill(value)?);
        }
        Ok(match (user.expired, user.invalid_signature) {
            (true, _) => self.auth.create_expired_token(&options),
            (_, true) => self.auth.create_invalid_token(&options),
            (false, false) => self.auth.create_token(&options),
        })
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

/// Resolves a path relative to the suite's directory.
pub(super) fn resolve_path(dir: Option<&Path>, name: &str) -> PathBuf {
    dir.map_or_else(|| PathBuf::from(name), |dir| dir.join(name))
}

/// A file with the configuration of the server, which ends with this.
fn config_file(config: &Map<String, Value>, variables: &Variables) -> Result<NamedTempFile, String> {
    let failed = |error: std::io::Error| format!("the file of `server.config`: {error}");
    let filled = variables.fill(&Value::Object(config.clone()))?;
    let mut file = tempfile::Builder::new().suffix(".json").tempfile().map_err(failed)?;
    file.write_all(filled.to_string().as_bytes()).map_err(failed)?;
    Ok(file)
}

fn builder(
    section: &ServerSection,
    dir: Option<&Path>,
    variables: &Variables,
    config: &str,
) -> Result<ServerBuilder, String> {
    let command = variables.text(section.command.as_deref().unwrap_or_default())?;
    // A file in the suite's directory takes precedence over anything else of the same name.
    let file = resolve_path(dir, &command);
    let command = match !command.is_empty() && file.is_file() {
        true => std::path::absolute(&file).unwrap_or(file).display().to_string(),
        false => command,
    };
    let mut builder = Server::builder(command).transport(section.transport);
    for arg in &section.args {
        builder = builder.arg(variables.text(arg)?.replace("{config}", config));
    }
    if let Some(cwd) = &section.cwd {
        builder = builder.current_dir(resolve_path(dir, &variables.text(cwd)?));
    } else if let Some(dir) = dir.filter(|dir| !dir.as_os_str().is_empty()) {
        builder = builder.current_dir(dir);
    }
    if let Some(port) = section.port {
        builder = builder.port(port);
    }
    if let Some(path) = &section.path {
        builder = builder.path(path);
    }
    if let Some(path) = &section.ready_path {
        builder = builder.ready_path(path);
    }
    if let Some(level) = section.log_level {
        builder = builder.log_level(level.name());
    }
    if let Some(url) = &section.base_url {
        builder = builder.base_url(variables.text(url)?);
    }
    if let Some(url) = &section.url {
        let url = variables.text(url)?;
        let parsed = url::Url::parse(&url).map_err(|error| format!("`{url}` is no URL: {error}"))?;
        let path = parsed[url::Position::BeforePath..].to_owned();
        builder = builder.base_url(&parsed[..url::Position::BeforePath]);
        if path.len() > 1 && section.path.is_none() {
            builder = builder.path(path);
        }
    }
    if let Some(ms) = section.startup_timeout_ms {
        builder = builder.startup_timeout(Duration::from_millis(ms));
    }
    Ok(builder)
}

impl HttpMockEntry {
    fn options(&self, variables: &Variables) -> Result<HttpMockOptions, String> {
        let mut response = match (&self.json, &self.text) {
            (Some(json), _) => http_response::json(variables.fill(json)?),
            (None, Some(text)) => http_response::text(variables.text(text)?),
            (None, None) => http_response::text(""),
        };
        response = response.status(self.status.unwrap_or(200));
        response = response.delay(Duration::from_millis(self.delay_ms.unwrap_or(0)));
        for (name, value) in &self.headers {
            response = response.header(name, variables.text(value)?);
        }
        let mut options = match (&self.url, &self.url_regex) {
            (_, Some(regex)) => {
                let regex = regex::Regex::new(regex).map_err(|error| error.to_string())?;
                HttpMockOptions::new(regex, response)
            }
            (url, None) => {
                HttpMockOptions::new(variables.text(url.as_deref().unwrap_or_default())?, response)
            }
        };
        if let Some(method) = &self.method {
            options = options.method(method);
        }
        for (name, value) in &self.request_headers {
            options = options.header(name, variables.text(value)?);
        }
        if let Some(json) = &self.request_json {
            options = options.body_json(variables.fill(json)?);
        }
        if let Some(part) = &self.request_text {
            options = options.body_text(text(&variables.fill(&part.as_str().into())?));
        }
        if let Some(times) = self.times {
            options = options.times(times);
        }
        Ok(options)
    }
}
