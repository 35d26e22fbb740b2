//! Configuration of one upstream server: a command, or a URL.

use std::{collections::HashMap, path::PathBuf, time::Duration};

use gatewright_core::{InvalidField, Secret};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::redactor::Redactor;

/// The transport of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TransportType {
    /// A command that speaks over its standard input and output.
    Stdio,
    /// Streamable HTTP. The default of a `url`.
    #[serde(alias = "streamable-http", alias = "streamableHttp", alias = "streamable_http")]
    Http,
    /// The older HTTP+SSE transport (MCP 2024-11-05).
    Sse,
}

/// Credentials of the gateway at an upstream over HTTP.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", deny_unknown_fields)]
pub enum UpstreamAuth {
    /// `Authorization: Bearer <token>`.
    Bearer {
        /// The token.
        token: Secret,
    },
    /// A header of another name.
    Header {
        /// Name of the header.
        name: String,
        /// Its value.
        value: Secret,
    },
    /// A token of each user, obtained from the server's authorization server with the user's consent (MCP, authorization). The first
    /// use answers with an address to open. Needs `auth.mode: orchestrated`, and Streamable HTTP.
    Oauth(OauthClient),
}

/// The gateway as an OAuth client of an upstream.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OauthClient {
    /// Our client identifier at the authorization server. Default: a client ID metadata document, or dynamic registration.
    pub client_id: Option<String>,
    /// Our secret there, for a confidential client.
    pub client_secret: Option<Secret>,
    /// Scopes to ask for. Default: those the server's metadata names, else none.
    pub scopes: Vec<String>,
    /// The authorization server. Default: the first that the server's metadata names (RFC 9728).
    pub issuer: Option<String>,
    /// Allows an authorization server on a private or loopback address, and plain HTTP there. Default false.
    pub allow_private: bool,
}

/// Time to wait before the next try after an upstream failed.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RestartConfig {
    /// The first wait; it doubles with each failure. Default 250 ms.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub initial: Duration,
    /// The longest wait. Default 30 s.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub max: Duration,
    /// The part of each wait that is random, 0 to 1. Default 0.5: between half of the wait and all of it.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub jitter: f64,
}

impl Default for RestartConfig {
    fn default() -> Self {
        Self { initial: Duration::from_millis(250), max: Duration::from_secs(30), jitter: 0.5 }
    }
}

/// The callers that share a connection to the server, and its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sessions {
    /// All callers share one, and with it whatever the server remembers. The default.
    Shared,
    /// Each subject and client has its own. With `auth.type: oauth`, which implies this, each subject has.
    PerPrincipal,
    /// Each MCP session has its own, which ends with the session. Clients of 2026-07-28 have no sessions over HTTP: they get one for
    /// each subject and client.
    PerSession,
}

/// Connections of one app at a time, by default.
const MOST_SESSIONS: usize = 64;
/// The same where users have connections with their own tokens.
const MOST_USERS: usize = 256;

/// Variables of the gateway's own environment that a command inherits by default.
pub const INHERITED: [&str; 9] =
    ["PATH", "HOME", "LANG", "LC_ALL", "LOGNAME", "SHELL", "TERM", "TMPDIR", "USER"];

/// One upstream: either `command` or `url`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct UpstreamConfig {
    /// `stdio`, `http` or `sse`. Default: `stdio` with `command`, `http` with `url`.
    #[serde(rename = "type")]
    pub transport: Option<TransportType>,
    /// The program to run.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, besides what `inheritEnv` lets through.
    pub env: IndexMap<String, Secret>,
    /// Its working directory. Default: the gateway's.
    pub cwd: Option<PathBuf>,
    /// Variables of the gateway's own environment that the command sees. Default `PATH`, `HOME`, `LANG`, `LC_ALL`,
    /// `LOGNAME`, `SHELL`, `TERM`, `TMPDIR` and `USER`; nothing else, so that the gateway's secrets stay its own.
    pub inherit_env: Vec<String>,
    /// The server's address, `http` or `https`.
    pub url: Option<String>,
    /// Headers of every HTTP request.
    pub headers: IndexMap<String, Secret>,
    /// Credentials of the gateway at the server.
    pub auth: Option<UpstreamAuth>,
    /// Longest time of one call, waiting for a free place (`maxConcurrency`) included. Default 60 s. A command that reads nothing of its
    /// standard input for this long and 30 s more, while messages wait for it, is restarted.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub timeout: Duration,
    /// Longest wait for the caller's answer to a question of the server (elicitation, sampling, roots): 1 s to 24 h. `timeout` does not run
    /// meanwhile. Default 10 min.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub question_timeout: Duration,
    /// Longest time to start, shake hands and read the lists. Default 30 s.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub connect_timeout: Duration,
    /// Calls open at the server at one time, at least 1, or at each connection to it unless `sessions` is `shared`. Default 64. More
    /// wait. Calls of one subject, or of one network without names, at all connections together, take three quarters of them at most, and at least one. A
    /// call that is cancelled counts for its caller until the server answers it, for 5 s or half of `timeout` at most: servers may go on with it.
    /// Cancelled calls of several callers together can be more than this number.
    pub max_concurrency: usize,
    /// Retries of a failed upstream.
    pub restart: RestartConfig,
    /// The callers that share a connection to the server, and its process: `shared` (all; a server started by a command that remembers
    /// things shows them to everybody; calls take turns for some time after one asked a question that could have been any caller's), `per_principal`
    /// or `per_session`. Default `shared`; `per_principal` with `auth.type: oauth`. A
    /// server of several sessions is asked for more log messages than `info` while one of them wants more (`logging/setLevel`), and each
    /// session receives those of its own level.
    pub sessions: Option<Sessions>,
    /// Connections at one time, 1 to 10000, unless `sessions` is `shared`. A caller (see `http.maxSessionsPerCaller`) may have as many as
    /// are free, alone half of all. Beyond that an idle one of its own is ended, and beyond `maxSessions` an idle one of the subject that
    /// has most; when all of them are in use, more are refused with `UPSTREAM_DOWN`. Default 64; 256 with `auth.type: oauth`.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_sessions: Option<usize>,
    /// Time that an unused connection stays, unless `sessions` is `shared`: at least 1 s. Default 15 min.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub session_idle: Duration,
    /// Longest message accepted from the server, in bytes. Default 16 MiB. A message may have one key or value for each 32 of these bytes:
    /// 524,288 by default, and never fewer than 10,000; a request or notification of the server 10,000. An answer over either limit fails its call, other messages are
    /// left out.
    pub max_message_bytes: usize,
    /// Longest lists accepted from the server, in bytes: tools, resources, templates and prompts, all pages together. Default 32 MiB. They
    /// may have one key or value for each 32 of these bytes, never fewer than 10,000; 100,000 items; and 1,000 pages each. A server whose
    /// lists are over a limit is down. Of its resource templates, the first 2,000 are offered. The connections of an app with `sessions` may have
    /// lists of 100,000 items together, and of 384 MiB in memory (those of all apps 768 MiB); one beyond that is closed unless idle ones can make room.
    pub max_catalog_bytes: usize,
}

impl Default for UpstreamConfig {
    fn default() -> Self {
        Self {
            transport: None,
            command: None,
            args: Vec::new(),
            env: IndexMap::new(),
            cwd: None,
            inherit_env: INHERITED.map(str::to_owned).to_vec(),
            url: None,
            headers: IndexMap::new(),
            auth: None,
            timeout: Duration::from_secs(60),
            question_timeout: Duration::from_secs(600),
            connect_timeout: Duration::from_secs(30),
            max_concurrency: 64,
            restart: RestartConfig::default(),
            sessions: None,
            max_sessions: None,
            session_idle: Duration::from_secs(15 * 60),
            max_message_bytes: 16 * 1024 * 1024,
            max_catalog_bytes: 32 * 1024 * 1024,
        }
    }
}

impl UpstreamConfig {
    /// A command without arguments.
    pub fn command(program: impl Into<String>) -> Self {
        Self { command: Some(program.into()), ..Self::default() }
    }

    /// A server over Streamable HTTP.
    pub fn url(url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..Self::default() }
    }

    /// The transport that the keys ask for.
    pub fn transport(&self) -> TransportType {
        self.transport.unwrap_or(if self.command.is_some() {
            TransportType::Stdio
        } else {
            TransportType::Http
        })
    }

    /// Returns `true` if callers share one connection.
    pub fn is_shared(&self) -> bool {
        !self.is_of_users() && matches!(self.sessions, None | Some(Sessions::Shared))
    }

    fn is_of_users(&self) -> bool {
        matches!(self.auth, Some(UpstreamAuth::Oauth(_)))
    }

    pub(crate) fn most_sessions(&self) -> usize {
        self.max_sessions.unwrap_or(if self.is_of_users() { MOST_USERS } else { MOST_SESSIONS })
    }

    /// Fields that cannot be used, beyond what a schema says: keys that do not fit together, values out of range, a URL or header
    /// that is none.
    pub fn problems(&self) -> Vec<InvalidField> {
        let mut problems = match (&self.command, &self.url) {
            (None, None) => {
                vec![whole("an app needs `command` (a program to run) or `url` (a server's address)")]
            }
            (Some(_), Some(_)) => vec![InvalidField::new("url", "an app has `command` or `url`, not both")],
            (Some(command), None) => self.problems_of_command(command),
            (None, Some(url)) => self.problems_of_url(url),
        };
        problems.extend(self.out_of_range());
        problems
    }

    fn problems_of_command(&self, command: &str) -> Vec<InvalidField> {
        let mut problems = Vec::new();
        if command.trim().is_empty() {
            problems.push(InvalidField::new("command", "`command` is empty"));
        }
        if !matches!(self.transport, None | Some(TransportType::Stdio)) {
            let problem = "`type` of an app with `command` is `stdio`, or left out";
            problems.push(InvalidField::new("type", problem));
        }
        let foreign = [("headers", !self.headers.is_empty()), ("auth", self.auth.is_some())];
        problems.extend(belong_to("url", "command", &foreign));
        problems
    }

    fn problems_of_url(&self, url: &str) -> Vec<InvalidField> {
        let mut problems = Vec::new();
        if self.transport == Some(TransportType::Stdio) {
            problems.push(InvalidField::new("type", "`type: stdio` needs `command`, not `url`"));
        }
        let foreign =
            [("args", !self.args.is_empty()), ("env", !self.env.is_empty()), ("cwd", self.cwd.is_some())];
        problems.extend(belong_to("command", "url", &foreign));
        if !is_http(url) {
            problems.push(InvalidField::new("url", "`url` must be an address like `https://host/mcp`"));
        }
        problems.extend(self.request_headers().err());
        if let Some(UpstreamAuth::Oauth(oauth)) = &self.auth {
            problems.extend(self.problems_of_oauth(oauth));
        }
        problems
    }

    fn out_of_range(&self) -> Vec<InvalidField> {
        let restart = &self.restart;
        let most_calls = tokio::sync::Semaphore::MAX_PERMITS;
        let checks = [
            (
                "timeout",
                !self.timeout.is_zero() && !self.connect_timeout.is_zero(),
                "`timeout` and `connectTimeout` must be longer than nothing, like `60s`",
            ),
            (
                "questionTimeout",
                (Duration::from_secs(1)..=Duration::from_secs(24 * 3600)).contains(&self.question_timeout),
                "`questionTimeout` must be 1s to 24h",
            ),
            (
                "maxConcurrency",
                (1..=most_calls).contains(&self.max_concurrency),
                "`maxConcurrency` must be at least 1",
            ),
            (
                "sessions",
                !(self.is_of_users() && self.sessions == Some(Sessions::Shared)),
                "`auth.type: oauth` calls the server as each user, which cannot share a connection; take `sessions: shared` out",
            ),
            (
                "maxSessions",
                self.max_sessions.is_none_or(|most| (1..=10_000).contains(&most)),
                "`maxSessions` must be 1 to 10000",
            ),
            ("sessionIdle", self.session_idle >= Duration::from_secs(1), "`sessionIdle` must be at least 1s"),
            ("maxMessageBytes", self.max_message_bytes >= 1024, "`maxMessageBytes` must be at least 1024"),
            ("maxCatalogBytes", self.max_catalog_bytes >= 1024, "`maxCatalogBytes` must be at least 1024"),
            (
                "restart.jitter",
                (0.0..=1.0).contains(&restart.jitter),
                "`restart.jitter` must be between 0 and 1",
            ),
            (
                "restart.initial",
                !restart.initial.is_zero() && restart.max >= restart.initial,
                "`restart.initial` must be longer than nothing and at most `restart.max`",
            ),
        ];
        let bad = checks.into_iter().filter(|(_, fits, _)| !fits);
        bad.map(|(path, _, problem)| InvalidField::new(path, problem)).collect()
    }

    fn problems_of_oauth(&self, oauth: &OauthClient) -> Vec<InvalidField> {
        let names_caller = |name: &String| name.eq_ignore_ascii_case("authorization");
        let checks = [
            (
                "auth.type",
                self.transport() == TransportType::Http,
                "`auth.type: oauth` needs Streamable HTTP; take `type: sse` out",
            ),
            (
                "headers",
                !self.headers.keys().any(names_caller),
                "`headers.authorization` and `auth.type: oauth` both say who calls; keep one",
            ),
            (
                "auth.clientSecret",
                oauth.client_secret.is_none() || oauth.client_id.is_some(),
                "`auth.clientSecret` needs `auth.clientId`",
            ),
            (
                "auth.issuer",
                oauth.issuer.as_deref().is_none_or(is_http),
                "`auth.issuer` must be an address like `https://login.example.com`",
            ),
        ];
        let bad = checks.into_iter().filter(|(_, fits, _)| !fits);
        bad.map(|(path, _, problem)| InvalidField::new(path, problem)).collect()
    }

    /// Every header of `headers` and `auth`, marked as sensitive.
    pub(crate) fn request_headers(
        &self,
    ) -> Result<HashMap<http::HeaderName, http::HeaderValue>, InvalidField> {
        let mut all: Vec<(String, String)> =
            self.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
        match &self.auth {
            Some(UpstreamAuth::Bearer { token }) => {
                all.push(("authorization".into(), format!("Bearer {}", token.expose())));
            }
            Some(UpstreamAuth::Header { name, value }) => all.push((name.clone(), value.expose().to_owned())),
            Some(UpstreamAuth::Oauth(_)) | None => {}
        }
        let mut headers = HashMap::new();
        for (name, value) in all {
            let parsed = http::HeaderName::try_from(name.as_str());
            let key = parsed.map_err(|_| bad_header(format!("header `{name}` is not a valid name")))?;
            const RESERVED: [&str; 4] = ["accept", "mcp-session-id", "mcp-protocol-version", "last-event-id"];
            if RESERVED.contains(&key.as_str()) {
                return Err(bad_header(format!("header `{name}` is set by the protocol; take it out")));
            }
            let mut value = http::HeaderValue::try_from(value).map_err(|_| {
                bad_header(format!("the value of header `{name}` holds characters no header may hold"))
            })?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        Ok(headers)
    }

    /// The environment of the command, from the gateway's own one.
    pub(crate) fn environment(&self, parent: &HashMap<String, String>) -> Vec<(String, String)> {
        let inherited = self
            .inherit_env
            .iter()
            .filter(|name| !self.env.contains_key(*name))
            .filter_map(|name| Some((name.clone(), parent.get(name)?.clone())));
        inherited
            .chain(self.env.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())))
            .collect()
    }

    /// Knows every secret of this configuration.
    pub(crate) fn redactor(&self) -> Redactor {
        let headers = self.headers.iter().flat_map(|(name, value)| value.with_parts(name));
        let variables = self.env.iter().filter(|(name, _)| names_credential(name));
        let mut secrets: Vec<Secret> =
            headers.chain(variables.flat_map(|(name, value)| value.with_parts(name))).collect();
        secrets.extend(credentials_of(&self.args));
        match &self.auth {
            Some(UpstreamAuth::Bearer { token }) => secrets.push(token.clone()),
            Some(UpstreamAuth::Header { name, value }) => secrets.extend(value.with_parts(name)),
            Some(UpstreamAuth::Oauth(oauth)) => secrets.extend(oauth.client_secret.clone()),
            None => {}
        }
        if let Some(url) = self.url.as_deref().and_then(|url| url::Url::parse(url).ok()) {
            secrets.extend(url.query().map(Secret::new));
            // As servers repeat it: a short value in it is not looked for by itself.
            secrets.extend(url.query().map(|query| Secret::new(format!("{}?{query}", url.path()))));
            secrets.extend(url.query_pairs().map(|(_, value)| Secret::new(value)));
            // Some servers have their key in the path.
            let parts = url.path_segments().into_iter().flatten();
            let is_key = |part: &&str| part.len() >= 12 && part.bytes().any(|byte| byte.is_ascii_digit());
            secrets.extend(parts.filter(is_key).map(Secret::new));
            secrets.extend(url.password().map(Secret::new));
        }
        Redactor::new(secrets, self.env.values().cloned())
    }
}

/// Values of the arguments of a command whose names say that they are credentials: `--api-key=VALUE`, or `--token VALUE`.
fn credentials_of(args: &[String]) -> Vec<Secret> {
    let name =
        |arg: &str| arg.starts_with('-') && names_credential(&arg.trim_start_matches('-').replace('-', "_"));
    let next = args.iter().skip(1).map(Some).chain([None]);
    let values = |(arg, next): (&String, Option<&String>)| match (arg.as_str(), arg.split_once('=')) {
        // `--header "Authorization: Bearer VALUE"`
        ("--header" | "-H", _) => next.map(|next| Secret::new(next).with_parts("")).unwrap_or_default(),
        // `-e API_KEY=VALUE`
        (_, Some((before, value))) if name(before) || names_credential(before) => vec![Secret::new(value)],
        (_, Some(_)) => Vec::new(),
        (_, None) => {
            next.filter(|next| name(arg) && !next.starts_with('-')).map(Secret::new).into_iter().collect()
        }
    };
    args.iter().zip(next).flat_map(values).collect()
}

/// Returns `true` if the value of a variable with this name is a credential, and not a word such as a log level.
pub fn names_credential(variable: &str) -> bool {
    let name = variable.to_ascii_lowercase();
    ["token", "secret", "key", "pass", "pwd", "credential", "auth", "cookie", "dsn", "url", "uri"]
        .iter()
        .any(|part| name.contains(part))
}

fn whole(problem: &str) -> InvalidField {
    InvalidField::new("", problem)
}

fn bad_header(problem: String) -> InvalidField {
    InvalidField::new("headers", problem)
}

fn is_http(url: &str) -> bool {
    url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

/// The problem of keys that are given and belong to an app with `other`, where this one has `own`.
fn belong_to(other: &str, own: &str, keys: &[(&'static str, bool)]) -> Option<InvalidField> {
    let given: Vec<&str> = keys.iter().filter(|(_, given)| *given).map(|(key, _)| *key).collect();
    let names: Vec<String> = given.iter().map(|key| format!("`{key}`")).collect();
    let problem = format!("{} belongs to an app with `{other}`; this one has `{own}`", names.join(", "));
    given.first().map(|first| InvalidField::new(*first, problem))
}

#[cfg(test)]
mod tests;
