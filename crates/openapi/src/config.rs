//! Settings of an app made of an OpenAPI document.

mod auth;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use gatewright_core::{HOP_BY_HOP, InvalidField, Secret};
use http::{HeaderMap, HeaderName, HeaderValue};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

pub use self::auth::{ApiAuth, ApiKeyPlace, ClientCredentials, Credential, UserAuthorization};
use crate::{Location, certificate::ClientCertificate, document::Selector};

/// Place of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentPlace {
    /// A file.
    File(PathBuf),
    /// A URL.
    Url(Url),
}

/// A request that tells the health of an API.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HealthCheck {
    /// Path below the address of the API, such as `/health`. It is asked with `GET`, `headers` and the client certificate, without other
    /// credentials, and has to answer with a status of success (2xx) within 10 s.
    pub path: String,
    /// Time between two checks, at least 1 s. Default 15 s.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub interval: Duration,
}

impl Default for HealthCheck {
    fn default() -> Self {
        Self { path: String::new(), interval: Duration::from_secs(15) }
    }
}

/// An app made of an OpenAPI document.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OpenapiConfig {
    /// An OpenAPI document: a file, relative to the configuration, or an `https` address. Each operation in it becomes a tool.
    pub openapi: String,
    /// Address of the API, which replaces all servers of the document, those of paths and operations included. Requests and credentials
    /// then go to its origin only, and so do those for tokens, unless `auth` names another endpoint. Needed where the document is a file
    /// that names no server, or a relative one.
    pub base_url: Option<String>,
    /// Values of variables in the servers of the document. Default: the document's own.
    pub server_variables: BTreeMap<String, String>,
    /// Operations to offer: `GET /users/*`, `tag:users`, or an `operationId`, in which `*` stands for any text. Default: all.
    pub include: Vec<String>,
    /// Operations to leave out, in the same form; they are left out even if `include` names them.
    pub exclude: Vec<String>,
    /// Credentials of the gateway at the API.
    pub auth: Option<ApiAuth>,
    /// Headers of every request.
    pub headers: IndexMap<String, Secret>,
    /// Allows an API, a token endpoint and a document on private and loopback addresses, and plain HTTP there. Default false.
    pub allow_private: bool,
    /// Longest time of one call, retries included. Default 60 s.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub timeout: Duration,
    /// Longest time to connect, and to read a document behind a URL. Default 30 s.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub connect_timeout: Duration,
    /// Longest answer, in bytes. It may have one key or value for each 32 of these bytes, and never fewer than 10,000. A longer one fails its
    /// call and is not read on. Default 10 MiB.
    pub max_response_bytes: usize,
    /// Longest document, in bytes. Default 32 MiB.
    pub max_document_bytes: usize,
    /// Calls open at the API at one time, at least 1. Default 64. More wait.
    pub max_concurrency: usize,
    /// Checks the health of the API from time to time. An app whose check fails twice in a row is down, and its tools are gone, until one
    /// succeeds. Without it, an app is down once three calls in a row and a request to the address of the API got no answer at all, until there is
    /// an answer.
    pub health: Option<HealthCheck>,
    /// Times that a request is sent again: after 429 and 503 if its method is idempotent, and after a failed connection. 0 to 10. Default 2.
    #[schemars(range(min = 0, max = 10))]
    pub max_retries: u32,
    /// Time between two looks at a document behind a URL, at least 1 s. The last good one stays in use. Default 5 min. A file is read again
    /// when it changes.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "String")]
    pub refresh: Duration,
}

impl Default for OpenapiConfig {
    fn default() -> Self {
        Self {
            openapi: String::new(),
            base_url: None,
            server_variables: BTreeMap::new(),
            include: Vec::new(),
            exclude: Vec::new(),
            auth: None,
            headers: IndexMap::new(),
            allow_private: false,
            timeout: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(30),
            max_response_bytes: 10 * 1024 * 1024,
            max_document_bytes: 32 * 1024 * 1024,
            max_concurrency: 64,
            health: None,
            max_retries: 2,
            refresh: Duration::from_secs(5 * 60),
        }
    }
}

impl OpenapiConfig {
    /// The document at a path or URL, with the default settings.
    pub fn new(openapi: impl Into<String>) -> Self {
        Self { openapi: openapi.into(), ..Self::default() }
    }

    /// The place of the document.
    pub fn place(&self) -> DocumentPlace {
        match Url::parse(&self.openapi) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => DocumentPlace::Url(url),
            _ => DocumentPlace::File(PathBuf::from(&self.openapi)),
        }
    }

    /// The file of the document, if it is one.
    pub fn file(&self) -> Option<PathBuf> {
        match self.place() {
            DocumentPlace::File(path) => Some(path),
            DocumentPlace::Url(_) => None,
        }
    }

    /// Takes a relative path as relative to `folder`.
    pub fn relative_to(&mut self, folder: &Path) {
        if let DocumentPlace::File(path) = self.place()
            && path.is_relative()
            && !self.openapi.is_empty()
        {
            self.openapi = folder.join(path).to_string_lossy().into_owned();
        }
    }

    /// Fields that cannot be used, beyond what a schema says.
    pub fn problems(&self) -> Vec<InvalidField> {
        let mut problems = self.out_of_range();
        if self.openapi.trim().is_empty() {
            problems.push(InvalidField::new("openapi", "`openapi` must be a file or an `https` address"));
        }
        if let DocumentPlace::Url(url) = self.place()
            && (!url.username().is_empty() || url.password().is_some())
        {
            problems.push(InvalidField::new(
                "openapi",
                "the address must not have a user name or password; see `headers`",
            ));
        }
        problems.extend(self.base().err());
        problems.extend(self.request_headers().err());
        for (key, selectors) in [("include", &self.include), ("exclude", &self.exclude)] {
            for (at, selector) in selectors.iter().enumerate() {
                if let Err(problem) = selector.parse::<Selector>() {
                    problems.push(InvalidField::new(format!("{key}.{at}"), problem));
                }
            }
        }
        for (scheme, credential) in self.auth.iter().flat_map(ApiAuth::all) {
            if let Some((field, problem)) = credential.problem() {
                let scheme = scheme.map(|scheme| format!("{scheme}.")).unwrap_or_default();
                problems.push(InvalidField::new(format!("auth.{scheme}{field}"), problem));
            }
        }
        let of_kind = |is_it: fn(&Credential) -> bool| {
            self.auth.iter().flat_map(ApiAuth::all).filter(|(_, credential)| is_it(credential)).count()
        };
        if of_kind(|credential| matches!(credential, Credential::Oauth(_))) > 1 {
            problems.push(InvalidField::new("auth", "has two credentials of type `oauth`; keep one"));
        }
        if of_kind(|credential| matches!(credential, Credential::Mtls { .. })) > 1 {
            problems.push(InvalidField::new("auth", "has two client certificates; keep one"));
        }
        problems
    }

    fn out_of_range(&self) -> Vec<InvalidField> {
        let second = Duration::from_secs(1);
        let most_calls = tokio::sync::Semaphore::MAX_PERMITS;
        let checks = [
            (
                "timeout",
                !self.timeout.is_zero() && !self.connect_timeout.is_zero(),
                "`timeout` and `connectTimeout` must be longer than nothing, like `60s`",
            ),
            ("maxResponseBytes", self.max_response_bytes >= 1024, "`maxResponseBytes` must be at least 1024"),
            ("maxDocumentBytes", self.max_document_bytes >= 1024, "`maxDocumentBytes` must be at least 1024"),
            (
                "maxConcurrency",
                (1..=most_calls).contains(&self.max_concurrency),
                "`maxConcurrency` must be at least 1",
            ),
            ("maxRetries", self.max_retries <= 10, "`maxRetries` must be 0 to 10"),
            ("refresh", self.refresh >= second, "`refresh` must be at least 1s"),
            (
                "health.interval",
                self.health.as_ref().is_none_or(|health| health.interval >= second),
                "`interval` must be at least 1s",
            ),
            (
                "health.path",
                self.health.as_ref().is_none_or(|health| {
                    health.path.starts_with('/') && !health.path.contains(['?', '#', '\\', '{'])
                }),
                "`path` must begin with `/` and have no query",
            ),
        ];
        let bad = checks.into_iter().filter(|(_, fits, _)| !fits);
        bad.map(|(path, _, problem)| InvalidField::new(path, problem)).collect()
    }

    /// The address of the API.
    pub(crate) fn base(&self) -> Result<Option<Url>, InvalidField> {
        let Some(text) = &self.base_url else { return Ok(None) };
        let wrong = |problem: &str| InvalidField::new("baseUrl", problem.to_owned());
        let url =
            Url::parse(text).map_err(|_| wrong("`baseUrl` must be an address like `https://host/v2`"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(wrong("`baseUrl` must be an address like `https://host/v2`"));
        }
        if url.query().is_some()
            || url.fragment().is_some()
            || !url.username().is_empty()
            || url.password().is_some()
        {
            return Err(wrong(
                "`baseUrl` must not have a user, a password, a query or a fragment; see `auth` and `headers`",
            ));
        }
        Ok(Some(url))
    }

    /// Parameters of requests that the configuration sets: places and names, those of headers in lower case.
    pub(crate) fn sent(&self) -> Vec<(Location, String)> {
        let headers = self.headers.keys().map(|name| (Location::Header, name.to_ascii_lowercase()));
        let keys = self.auth.iter().flat_map(ApiAuth::all).filter_map(|(_, credential)| match credential {
            Credential::ApiKey { name: Some(name), place, .. } => {
                Some(match place.unwrap_or(ApiKeyPlace::Header) {
                    ApiKeyPlace::Header => (Location::Header, name.to_ascii_lowercase()),
                    ApiKeyPlace::Query => (Location::Query, name.clone()),
                    ApiKeyPlace::Cookie => (Location::Cookie, name.clone()),
                })
            }
            _ => None,
        });
        headers.chain(keys).collect()
    }

    pub(crate) fn request_headers(&self) -> Result<HeaderMap, InvalidField> {
        let wrong = |problem: String| InvalidField::new("headers", problem);
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let key = HeaderName::try_from(name.as_str());
            let key = key.map_err(|_| wrong(format!("header `{name}` is not a valid name")))?;
            let is_own = ["host", "cookie", "content-type", "accept-encoding"].contains(&key.as_str());
            if is_own || HOP_BY_HOP.contains(&key.as_str()) {
                return Err(wrong(format!("header `{name}` is set by the gateway; take it out")));
            }
            let value = HeaderValue::try_from(value.expose());
            let mut value = value.map_err(|_| {
                wrong(format!("the value of header `{name}` holds characters no header may hold"))
            })?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        Ok(headers)
    }

    /// The client certificate.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn certificate(&self) -> Result<Option<ClientCertificate>, InvalidField> {
        for (_, credential) in self.auth.iter().flat_map(ApiAuth::all) {
            let certificate = credential.certificate();
            let wrong = |problem| InvalidField::new("auth.cert", problem);
            if let Some(certificate) = certificate.map_err(wrong)? {
                return Ok(Some(certificate));
            }
        }
        Ok(None)
    }

    /// Every secret of the configuration, and what is sent of it.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let mut secrets: Vec<Secret> = self.headers.values().cloned().collect();
        let credentials = self.auth.iter().flat_map(ApiAuth::all);
        secrets.extend(credentials.flat_map(|(_, credential)| credential.secrets()));
        secrets
    }

    /// Credentials within those secrets. Among data it may be an ordinary word; in errors it is left out.
    pub(crate) fn parts_of_secrets(&self) -> Vec<Secret> {
        let headers = self.headers.iter().flat_map(|(name, value)| value.with_parts(name));
        let credentials = self.auth.iter().flat_map(ApiAuth::all);
        let credentials = credentials.flat_map(|(_, credential)| credential.secrets());
        headers.chain(credentials.flat_map(|secret| secret.with_parts(""))).collect()
    }

    /// Selectors of the operations that are offered, and of those that are left out. Ones that cannot be read are in [`Self::problems`].
    pub(crate) fn selectors(&self) -> [Vec<Selector>; 2] {
        [&self.include, &self.exclude].map(|all| all.iter().filter_map(|one| one.parse().ok()).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn problems(config: Value) -> Vec<String> {
        let config: OpenapiConfig = serde_json::from_value(config).unwrap();
        config.problems().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn fields_that_cannot_be_used_are_named() {
        assert_eq!(problems(json!({"openapi": "a.yaml", "baseUrl": "https://a.example/v2"})), [""; 0]);
        let bad = problems(json!({
            "openapi": "https://me:pw@a.example/x",
            "baseUrl": "ftp://a.example",
            "include": ["GET users", "GET /users"],
            "exclude": [""],
            "headers": {"Host": "a"},
            "auth": {"key": {"type": "apiKey", "value": "a\nb"}},
            "maxRetries": 11,
            "refresh": "0s",
            "health": {"path": "up?key=1", "interval": "0s"},
        }));
        let paths: Vec<&str> = bad.iter().map(|problem| problem.split(": ").next().unwrap()).collect();
        assert_eq!(
            paths,
            [
                "maxRetries",
                "refresh",
                "health.interval",
                "health.path",
                "openapi",
                "baseUrl",
                "headers",
                "include.0",
                "exclude.0",
                "auth.key.value"
            ]
        );
    }

    #[test]
    fn a_relative_file_is_relative_to_the_folder_of_the_configuration() {
        let placed = |openapi: &str| {
            let mut config = OpenapiConfig::new(openapi);
            config.relative_to(Path::new("/etc/gatewright"));
            config.openapi
        };
        assert_eq!(placed("./a.yaml"), "/etc/gatewright/./a.yaml");
        assert_eq!(placed("/srv/a.yaml"), "/srv/a.yaml");
        assert_eq!(placed("https://a.example/a.yaml"), "https://a.example/a.yaml");
    }
}
