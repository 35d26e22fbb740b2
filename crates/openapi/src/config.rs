//! Settings of an app made of an OpenAPI document.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use base64::Engine as _;
use gatewright_core::{HOP_BY_HOP, InvalidField, Secret};
use http::{HeaderMap, HeaderName, HeaderValue};
use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;
use url::Url;

use crate::{ApiKeyLocation, document::Selector};

/// Place of an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApiKeyPlace {
    /// A header.
    Header,
    /// A field of the query.
    Query,
    /// A field of the header `Cookie`.
    Cookie,
}

impl ApiKeyPlace {
    pub(crate) fn location(self) -> ApiKeyLocation {
        match self {
            Self::Header => ApiKeyLocation::Header,
            Self::Query => ApiKeyLocation::Query,
            Self::Cookie => ApiKeyLocation::Cookie,
        }
    }
}

/// The gateway as an OAuth client of an API.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClientCredentials {
    /// Our client identifier at the authorization server.
    pub client_id: String,
    /// Our secret there.
    pub client_secret: Secret,
    /// The token endpoint. Default: that of the document's `clientCredentials` flow.
    #[serde(default)]
    pub token_url: Option<String>,
    /// Scopes to ask for. Default: those that the operation requires.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// `audience` of the token request, which some authorization servers need.
    #[serde(default)]
    pub audience: Option<String>,
    /// `true` sends identifier and secret in the body (`client_secret_post`). Default false: in `Authorization`.
    #[serde(default)]
    pub in_body: bool,
}

/// The gateway as an OAuth client of an API on behalf of each user: authorization code with PKCE (RFC 6749 §4.1, RFC 7636).
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UserAuthorization {
    /// Our client identifier at the authorization server, where our redirect URI has to be registered.
    pub client_id: String,
    /// Our secret there, for a confidential client.
    #[serde(default)]
    pub client_secret: Option<Secret>,
    /// The authorization endpoint. Default: that of the document's `authorizationCode` flow.
    #[serde(default)]
    pub authorization_url: Option<String>,
    /// The token endpoint. Default: that of the document's `authorizationCode` flow.
    #[serde(default)]
    pub token_url: Option<String>,
    /// The authorization server, whose metadata has its endpoints unless they are known. Default: that of the document's OpenID Connect scheme.
    #[serde(default)]
    pub issuer: Option<String>,
    /// Scopes to ask for. Default: those that the operation requires, and those that the user allowed before.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Further parameters of the authorization request, such as `access_type: offline`.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// `true` sends identifier and secret in the body (`client_secret_post`). Default false: in `Authorization`.
    #[serde(default)]
    pub in_body: bool,
}

/// Parameters of an authorization request that the gateway sets itself.
const OWN_PARAMETERS: [&str; 11] = [
    "response_type",
    "response_mode",
    "client_id",
    "client_secret",
    "redirect_uri",
    "state",
    "scope",
    "code_challenge",
    "code_challenge_method",
    "request",
    "request_uri",
];

impl UserAuthorization {
    fn problem(&self) -> Option<(&'static str, String)> {
        let urls = [
            ("authorizationUrl", &self.authorization_url),
            ("tokenUrl", &self.token_url),
            ("issuer", &self.issuer),
        ];
        let bad = urls.into_iter().find(|(_, url)| url.as_deref().is_some_and(|url| !is_http(url)));
        if let Some((field, _)) = bad {
            return Some((field, "must be an address like `https://host/authorize`".to_owned()));
        }
        if self.client_id.is_empty() {
            return Some(("clientId", "is empty".to_owned()));
        }
        let own = self.parameters.keys().find(|name| OWN_PARAMETERS.contains(&name.as_str()))?;
        Some(("parameters", format!("`{own}` is set by the gateway; take it out")))
    }
}

/// One credential of the gateway at an API.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", deny_unknown_fields)]
pub enum Credential {
    /// None.
    None {},
    /// `Authorization: Bearer <token>`.
    Bearer {
        /// The token.
        token: Secret,
    },
    /// `Authorization: Basic …`.
    Basic {
        /// The user name.
        username: String,
        /// The password.
        password: Secret,
    },
    /// An API key.
    ApiKey {
        /// The key.
        value: Secret,
        /// Name of the header, the query field or the cookie. Default: as the document says.
        #[serde(default)]
        name: Option<String>,
        /// `header`, `query` or `cookie`. Default: as the document says, else `header`.
        #[serde(default, rename = "in")]
        place: Option<ApiKeyPlace>,
    },
    /// OAuth 2.0 client credentials (RFC 6749 §4.4): the gateway gets an access token for itself, and keeps it until it expires.
    ClientCredentials(ClientCredentials),
    /// OAuth 2.0 on behalf of each user: the gateway gets an access token with the consent of the user, and keeps and refreshes it. The first
    /// use answers with an address to open. Needs `auth.mode: orchestrated`. One for each app.
    Oauth(UserAuthorization),
}

impl Credential {
    fn secret(&self) -> Option<&Secret> {
        match self {
            Self::None {} => None,
            Self::Bearer { token: secret }
            | Self::Basic { password: secret, .. }
            | Self::ApiKey { value: secret, .. } => Some(secret),
            Self::ClientCredentials(client) => Some(&client.client_secret),
            Self::Oauth(user) => user.client_secret.as_ref(),
        }
    }

    fn problem(&self) -> Option<(&'static str, String)> {
        let is_sendable = |secret: &Secret| HeaderValue::try_from(secret.expose()).is_ok();
        match self {
            Self::None {} | Self::Basic { .. } => None,
            Self::Bearer { token } => (!is_sendable(token) || token.expose().is_empty())
                .then(|| ("token", "is empty, or has characters that cannot be sent".to_owned())),
            Self::ApiKey { value, name, place } => {
                let is_header = matches!(place, None | Some(ApiKeyPlace::Header));
                if !is_sendable(value) || value.expose().is_empty() {
                    return Some(("value", "is empty, or has characters that cannot be sent".to_owned()));
                }
                let is_bad =
                    name.as_deref().is_some_and(|name| is_header && HeaderName::try_from(name).is_err());
                is_bad.then(|| ("name", "is no name of a header".to_owned()))
            }
            Self::Oauth(user) => user.problem(),
            Self::ClientCredentials(client) => {
                let is_bad = client.token_url.as_deref().is_some_and(|url| !is_http(url));
                is_bad.then(|| ("tokenUrl", "must be an address like `https://host/token`".to_owned()))
            }
        }
    }
}

/// Credentials of the gateway at an API: one for all schemes of the document, or one for each by name.
#[derive(Debug, Clone, PartialEq)]
pub enum ApiAuth {
    /// One for every operation that needs credentials.
    Every(Credential),
    /// By the names of the document's security schemes.
    Schemes(BTreeMap<String, Credential>),
}

impl<'de> Deserialize<'de> for ApiAuth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let Value::Object(fields) = value else {
            return Err(D::Error::custom(
                "must be an object with `type`, or one with a credential for each security scheme",
            ));
        };
        if fields.get("type").is_some_and(Value::is_string) {
            return Credential::deserialize(Value::Object(fields)).map(Self::Every).map_err(D::Error::custom);
        }
        let read = |(name, value): (String, Value)| match Credential::deserialize(value) {
            Ok(credential) => Ok((name, credential)),
            Err(error) => Err(D::Error::custom(format!("`{name}`: {error}"))),
        };
        fields.into_iter().map(read).collect::<Result<_, _>>().map(Self::Schemes)
    }
}

impl JsonSchema for ApiAuth {
    fn schema_name() -> Cow<'static, str> {
        "ApiAuth".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let credential = generator.subschema_for::<Credential>();
        json_schema!({
            "description": "One credential for all operations that need one, or one for each security scheme by its name.",
            "type": "object",
            "if": {"required": ["type"], "properties": {"type": {"type": "string"}}},
            "then": credential,
            "else": {"additionalProperties": credential}
        })
    }
}

impl ApiAuth {
    /// Returns `true` if the API is called on behalf of users.
    pub fn is_of_users(&self) -> bool {
        self.all().iter().any(|(_, credential)| matches!(credential, Credential::Oauth(_)))
    }

    /// The credentials, each with the name of its scheme if it has one.
    pub(crate) fn all(&self) -> Vec<(Option<&str>, &Credential)> {
        match self {
            Self::Every(credential) => vec![(None, credential)],
            Self::Schemes(schemes) => {
                schemes.iter().map(|(name, credential)| (Some(&**name), credential)).collect()
            }
        }
    }
}

/// Place of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DocumentPlace {
    /// A file.
    File(PathBuf),
    /// A URL.
    Url(Url),
}

/// An app made of an OpenAPI document.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OpenapiConfig {
    /// An OpenAPI document: a file, relative to the configuration, or an `https` address. Each operation in it becomes a tool.
    pub openapi: String,
    /// Address of the API, which replaces the servers of the document; credentials then go to its origin only. Needed where the document
    /// is a file that names no server, or a relative one.
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
    /// Longest time to connect. Default 30 s.
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
        let users = self.auth.iter().flat_map(ApiAuth::all);
        if users.filter(|(_, credential)| matches!(credential, Credential::Oauth(_))).count() > 1 {
            problems.push(InvalidField::new("auth", "has two credentials of type `oauth`; keep one"));
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

    /// Every secret of the configuration, and what is sent of it.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let mut secrets: Vec<Secret> = self.headers.values().cloned().collect();
        for (_, credential) in self.auth.iter().flat_map(ApiAuth::all) {
            secrets.extend(credential.secret().cloned());
            if let Credential::Basic { username, password } = credential {
                let pair = format!("{username}:{}", password.expose());
                secrets.push(Secret::new(base64::engine::general_purpose::STANDARD.encode(pair)));
            }
        }
        secrets
    }

    /// Selectors of the operations that are offered, and of those that are left out. Ones that cannot be read are in [`Self::problems`].
    pub(crate) fn selectors(&self) -> [Vec<Selector>; 2] {
        [&self.include, &self.exclude].map(|all| all.iter().filter_map(|one| one.parse().ok()).collect())
    }
}

fn is_http(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.host().is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(config: Value) -> Vec<String> {
        let config: OpenapiConfig = serde_json::from_value(config).unwrap();
        config.problems().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn auth_is_one_credential_or_one_for_each_scheme() {
        let auth = |value: Value| serde_json::from_value::<ApiAuth>(value);
        assert!(matches!(
            auth(json!({"type": "bearer", "token": "t"})).unwrap(),
            ApiAuth::Every(Credential::Bearer { .. })
        ));
        let schemes =
            auth(json!({"type": {"type": "none"}, "key": {"type": "apiKey", "value": "k", "in": "query"}}))
                .unwrap();
        assert!(matches!(schemes, ApiAuth::Schemes(schemes) if schemes.len() == 2));
        let error = auth(json!({"key": {"type": "apiKey", "token": "hush"}})).unwrap_err().to_string();
        assert!(error.starts_with("`key`: unknown field `token`") && !error.contains("hush"), "{error}");
        assert!(auth(json!({"type": "magic"})).is_err() && auth(json!("t")).is_err());
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
        }));
        let paths: Vec<&str> = bad.iter().map(|problem| problem.split(": ").next().unwrap()).collect();
        assert_eq!(
            paths,
            [
                "maxRetries",
                "refresh",
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
