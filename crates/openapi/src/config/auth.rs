//! Credentials of the gateway, and of its users, at an API.

use std::{borrow::Cow, collections::BTreeMap};

use base64::Engine as _;
use gatewright_core::Secret;
use http::{HeaderName, HeaderValue};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;
use url::Url;

use crate::{ApiKeyLocation, certificate::ClientCertificate};

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
    /// The token endpoint. Default: that of the document's `clientCredentials` flow, if it has the origin of `baseUrl` or, without
    /// `baseUrl`, is `https` or on loopback.
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
    /// Our client identifier at the authorization server, where our redirect URI has to be registered. Default: the gateway registers itself,
    /// if the server's metadata offers that: with a client ID metadata document, if `publicUrl` is `https`, or by RFC 7591.
    #[serde(default)]
    pub client_id: Option<String>,
    /// Our secret there, for a confidential client. Needs `clientId`.
    #[serde(default)]
    pub client_secret: Option<Secret>,
    /// The authorization endpoint. Default: that of the document's `authorizationCode` flow, if it has the origin of `baseUrl` or, without
    /// `baseUrl`, is `https` or on loopback.
    #[serde(default)]
    pub authorization_url: Option<String>,
    /// The token endpoint. Default: that of the document's `authorizationCode` flow, under the same condition.
    #[serde(default)]
    pub token_url: Option<String>,
    /// The authorization server, whose metadata has its endpoints unless they are known. Default: that of the document's OpenID Connect
    /// scheme, under the same condition.
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
        match (&self.client_id, &self.client_secret) {
            (Some(id), _) if id.is_empty() => return Some(("clientId", "is empty".to_owned())),
            (None, Some(_)) => {
                return Some(("clientId", "is missing: `clientSecret` is that of a client".to_owned()));
            }
            _ => {}
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
    /// A client certificate (mutual TLS), beside credentials of other schemes where `auth` has one for each.
    Mtls {
        /// The certificate and those that lead to its authority, as PEM: `${file:client.pem}`.
        cert: String,
        /// Its private key, as PEM.
        key: Secret,
    },
    /// OAuth 2.0 on behalf of each user: the gateway gets an access token with the consent of the user, and keeps and refreshes it. The first
    /// use answers with an address to open. Needs `auth.mode: orchestrated`. One for each app.
    Oauth(UserAuthorization),
}

impl Credential {
    /// Its secret, and what is sent of it.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        let secret = match self {
            Self::None {} => None,
            Self::Bearer { token: secret }
            | Self::Basic { password: secret, .. }
            | Self::ApiKey { value: secret, .. } => Some(secret),
            // A key is never sent, and its lines are in no answer.
            Self::Mtls { .. } => None,
            Self::ClientCredentials(client) => Some(&client.client_secret),
            Self::Oauth(user) => user.client_secret.as_ref(),
        };
        let mut secrets: Vec<Secret> = secret.cloned().into_iter().collect();
        if let Self::Basic { username, password } = self {
            let pair = format!("{username}:{}", password.expose());
            secrets.push(Secret::new(base64::engine::general_purpose::STANDARD.encode(pair)));
        }
        secrets
    }

    /// The client certificate, if it is one.
    ///
    /// # Errors
    /// It and its key cannot be read.
    pub(crate) fn certificate(&self) -> Result<Option<ClientCertificate>, String> {
        let Self::Mtls { cert, key } = self else { return Ok(None) };
        let certificate = ClientCertificate::from_pem(cert, key.expose());
        certificate.map(Some).ok_or_else(|| "is no certificate in PEM that belongs to `key`".to_owned())
    }

    pub(super) fn problem(&self) -> Option<(&'static str, String)> {
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
            Self::Mtls { .. } => self.certificate().err().map(|problem| ("cert", problem)),
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

fn is_http(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.host().is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
}
