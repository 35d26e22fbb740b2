//! Configuration of one upstream server: a command, or a URL.

use std::{collections::HashMap, path::PathBuf, time::Duration};

use gatewright_core::Secret;
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
    /// Longest time of one call, waiting for a free place (`maxConcurrency`) included. Default 60 s.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub timeout: Duration,
    /// Longest time to start, shake hands and read the lists. Default 30 s.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub connect_timeout: Duration,
    /// Calls open at the server at one time, at least 1. Default 64. More wait.
    pub max_concurrency: usize,
    /// Retries of a failed upstream.
    pub restart: RestartConfig,
    /// The callers that share a connection to the server, and its process: `shared` (all; a server started by a command that remembers
    /// things shows them to everybody), `per_principal` or `per_session`. Default `shared`; `per_principal` with `auth.type: oauth`. A
    /// server of several sessions is asked for more log messages than `info` while one of them wants more (`logging/setLevel`), and each
    /// session receives those of its own level.
    pub sessions: Option<Sessions>,
    /// Connections at one time, 1 to 10000, unless `sessions` is `shared`. Beyond it the one that is idle for longest is ended; when
    /// all are in use, new callers are refused. Default 64; 256 with `auth.type: oauth`.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_sessions: Option<usize>,
    /// Time that an unused connection stays, unless `sessions` is `shared`: at least 1 s. Default 15 min.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub session_idle: Duration,
    /// Longest message accepted from the server, in bytes. Default 16 MiB. A longer answer fails its call. Plain JSON
    /// answers over Streamable HTTP are cut off at 16 MiB whatever this says.
    pub max_message_bytes: usize,
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
            connect_timeout: Duration::from_secs(30),
            max_concurrency: 64,
            restart: RestartConfig::default(),
            sessions: None,
            max_sessions: None,
            session_idle: Duration::from_secs(15 * 60),
            max_message_bytes: 16 * 1024 * 1024,
        }
    }
}

/// A configuration that cannot work. Display names the key and says what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadUpstream(pub(crate) String);

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

    /// Checks what no schema says: that the keys fit together.
    ///
    /// # Errors
    /// Both or neither of `command` and `url`, a key of the other kind, a value out of range, a URL or header that is none.
    pub fn check(&self) -> Result<(), BadUpstream> {
        let bad = |problem: String| Err(BadUpstream(problem));
        let both = |given: &[(&str, bool)]| {
            given
                .iter()
                .filter(|(_, given)| *given)
                .map(|(key, _)| format!("`{key}`"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        match (&self.command, &self.url) {
            (None, None) => {
                return bad("an app needs `command` (a program to run) or `url` (a server's address)".into());
            }
            (Some(_), Some(_)) => return bad("an app has `command` or `url`, not both".into()),
            (Some(command), None) => {
                if command.trim().is_empty() {
                    return bad("`command` is empty".into());
                }
                if !matches!(self.transport, None | Some(TransportType::Stdio)) {
                    return bad("`type` of an app with `command` is `stdio`, or left out".into());
                }
                let wrong = both(&[("headers", !self.headers.is_empty()), ("auth", self.auth.is_some())]);
                if !wrong.is_empty() {
                    return bad(format!("{wrong} belongs to an app with `url`; this one has `command`"));
                }
            }
            (None, Some(url)) => {
                if self.transport == Some(TransportType::Stdio) {
                    return bad("`type: stdio` needs `command`, not `url`".into());
                }
                let wrong = both(&[
                    ("args", !self.args.is_empty()),
                    ("env", !self.env.is_empty()),
                    ("cwd", self.cwd.is_some()),
                ]);
                if !wrong.is_empty() {
                    return bad(format!("{wrong} belongs to an app with `command`; this one has `url`"));
                }
                match url::Url::parse(url) {
                    Ok(parsed) if matches!(parsed.scheme(), "http" | "https") => {}
                    _ => return bad("`url` must be an address like `https://host/mcp`".into()),
                }
                self.request_headers()?;
                if let Some(UpstreamAuth::Oauth(oauth)) = &self.auth {
                    self.check_oauth(oauth)?;
                }
            }
        }
        if self.timeout.is_zero() || self.connect_timeout.is_zero() {
            return bad("`timeout` and `connectTimeout` must be longer than nothing, like `60s`".into());
        }
        if self.max_concurrency == 0 || self.max_concurrency > tokio::sync::Semaphore::MAX_PERMITS {
            return bad("`maxConcurrency` must be at least 1".into());
        }
        if self.is_of_users() && self.sessions == Some(Sessions::Shared) {
            return bad("`auth.type: oauth` calls the server as each user, which cannot share a connection; take `sessions: shared` out".into());
        }
        if self.max_sessions.is_some_and(|most| !(1..=10_000).contains(&most)) {
            return bad("`maxSessions` must be 1 to 10000".into());
        }
        if self.session_idle < Duration::from_secs(1) {
            return bad("`sessionIdle` must be at least 1s".into());
        }
        if self.max_message_bytes < 1024 {
            return bad("`maxMessageBytes` must be at least 1024".into());
        }
        if !(0.0..=1.0).contains(&self.restart.jitter) {
            return bad("`restart.jitter` must be between 0 and 1".into());
        }
        if self.restart.initial.is_zero() || self.restart.max < self.restart.initial {
            return bad("`restart.initial` must be longer than nothing and at most `restart.max`".into());
        }
        Ok(())
    }

    fn check_oauth(&self, oauth: &OauthClient) -> Result<(), BadUpstream> {
        let bad = |problem: &str| Err(BadUpstream(problem.to_owned()));
        if self.transport() != TransportType::Http {
            return bad("`auth.type: oauth` needs Streamable HTTP; take `type: sse` out");
        }
        if self.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) {
            return bad("`headers.authorization` and `auth.type: oauth` both say who calls; keep one");
        }
        if oauth.client_secret.is_some() && oauth.client_id.is_none() {
            return bad("`auth.clientSecret` needs `auth.clientId`");
        }
        match oauth.issuer.as_deref().map(url::Url::parse) {
            None => Ok(()),
            Some(Ok(issuer)) if matches!(issuer.scheme(), "http" | "https") => Ok(()),
            Some(_) => bad("`auth.issuer` must be an address like `https://login.example.com`"),
        }
    }

    /// Every header of `headers` and `auth`, marked as sensitive.
    pub(crate) fn request_headers(
        &self,
    ) -> Result<HashMap<http::HeaderName, http::HeaderValue>, BadUpstream> {
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
            let key = parsed.map_err(|_| BadUpstream(format!("header `{name}` is not a valid name")))?;
            const RESERVED: [&str; 4] = ["accept", "mcp-session-id", "mcp-protocol-version", "last-event-id"];
            if RESERVED.contains(&key.as_str()) {
                return Err(BadUpstream(format!("header `{name}` is set by the protocol; take it out")));
            }
            let mut value = http::HeaderValue::try_from(value).map_err(|_| {
                BadUpstream(format!("the value of header `{name}` holds characters no header may hold"))
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
        let mut secrets: Vec<Secret> = self.env.values().chain(self.headers.values()).cloned().collect();
        match &self.auth {
            Some(UpstreamAuth::Bearer { token: value } | UpstreamAuth::Header { value, .. }) => {
                secrets.push(value.clone());
            }
            Some(UpstreamAuth::Oauth(oauth)) => secrets.extend(oauth.client_secret.clone()),
            None => {}
        }
        if let Some(url) = self.url.as_deref().and_then(|url| url::Url::parse(url).ok()) {
            secrets.extend(url.query().map(Secret::new));
            secrets.extend(url.password().map(Secret::new));
        }
        Redactor::new(secrets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<UpstreamConfig, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn a_command_needs_nothing_else_and_a_misspelt_key_is_refused() {
        let config = read(r#"{"command": "server", "timeout": "5s"}"#).unwrap();
        assert_eq!(config.check(), Ok(()));
        assert_eq!((config.timeout.as_secs(), config.max_concurrency), (5, 64));
        assert!(read(r#"{"comand": "server"}"#).unwrap_err().to_string().contains("comand"));
    }

    #[test]
    fn keys_that_do_not_fit_together_are_named() {
        for (json, named) in [
            ("{}", "`command`"),
            (r#"{"command": "a", "url": "http://x"}"#, "not both"),
            (r#"{"url": "ftp://x"}"#, "`url`"),
            (r#"{"url": "http://x", "args": ["a"]}"#, "`args`"),
            (r#"{"command": "a", "headers": {"a": "b"}}"#, "`headers`"),
            (r#"{"command": "a", "type": "sse"}"#, "`type`"),
            (r#"{"command": "a", "maxConcurrency": 0}"#, "`maxConcurrency`"),
            (r#"{"command": "a", "maxSessions": 0}"#, "`maxSessions`"),
            (r#"{"command": "a", "sessionIdle": "10ms"}"#, "`sessionIdle`"),
            (r#"{"url": "http://x", "auth": {"type": "oauth"}, "sessions": "shared"}"#, "`sessions: shared`"),
            (r#"{"url": "http://x", "headers": {"Accept": "b"}}"#, "`Accept`"),
            (r#"{"url": "http://x", "type": "sse", "auth": {"type": "oauth"}}"#, "`type: sse`"),
            (r#"{"url": "http://x", "auth": {"type": "oauth", "clientSecret": "s"}}"#, "`auth.clientId`"),
            (r#"{"url": "http://x", "auth": {"type": "oauth", "issuer": "x"}}"#, "`auth.issuer`"),
            (r#"{"command": "a", "restart": {"jitter": 2}}"#, "`restart.jitter`"),
        ] {
            let problem = read(json).unwrap().check().unwrap_err().to_string();
            assert!(problem.contains(named), "{json}: {problem}");
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        let config = read(
            r#"{"url": "http://x/mcp", "headers": {"k": "hush-one"}, "env": {"E": "hush-two"},
                "auth": {"type": "bearer", "token": "hush-three"}}"#,
        );
        assert!(!format!("{config:?}").contains("hush"));
    }

    #[test]
    fn a_command_inherits_only_what_the_list_names() {
        let parent = HashMap::from([
            ("PATH".to_owned(), "/bin".to_owned()),
            ("AWS_SECRET_ACCESS_KEY".to_owned(), "x".to_owned()),
        ]);
        let config = read(r#"{"command": "a", "env": {"A": "1"}}"#).unwrap();
        let expected = [("PATH".to_owned(), "/bin".to_owned()), ("A".to_owned(), "1".to_owned())];
        assert_eq!(config.environment(&parent), expected);
    }
}
