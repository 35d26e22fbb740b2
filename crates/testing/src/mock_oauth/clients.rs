//! Clients of the authorization server: configured, registered, or described by a metadata document, which is fetched.

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode, header};
use gatewright_core::read_unique;
use serde_json::{Map, Value};
use url::Url;

use super::state::{Issuer, SharedIssuer};
use crate::base::{lock, net::root_cause};

/// Largest metadata document, in bytes.
const MOST_BYTES: usize = 16 * 1024;
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// Grants that clients may register or describe. `client_credentials` is refused with a reason of its own.
const GRANTS: [&str; 3] = ["authorization_code", "refresh_token", "client_credentials"];

/// A client of a [`MockOAuthServer`](super::MockOAuthServer). In JSON the keys are in camel case, and only `clientId` is required.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MockOAuthClient {
    /// The id.
    pub client_id: String,
    /// The secret. Without one the client is public, unless it has keys.
    pub client_secret: Option<String>,
    /// Redirect URIs, compared exactly; the port of an http URI of this machine is free (RFC 8252 §7.3).
    #[serde(default)]
    pub redirect_uris: Vec<String>,
    /// Client authentication: `none`, `client_secret_basic`, `client_secret_post` or `private_key_jwt`. Default: by what it has.
    pub token_endpoint_auth_method: Option<String>,
    /// Grant types. Default: `authorization_code` and `refresh_token`, with a secret also `client_credentials`.
    pub grant_types: Option<Vec<String>>,
    /// Public keys for `private_key_jwt`, a JWK set.
    pub jwks: Option<Value>,
    /// Requires DPoP for its tokens. Default false.
    #[serde(default)]
    pub dpop_bound_access_tokens: bool,
}

/// A client's way to authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuthMethod {
    None,
    Basic,
    Post,
    /// HTTP Basic or the body: of the client of the options, which names no method.
    AnySecret,
    Assertion,
    /// None is checked: of servers that accept any client.
    Any,
}

impl AuthMethod {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "none" => Self::None,
            "client_secret_basic" => Self::Basic,
            "client_secret_post" => Self::Post,
            "private_key_jwt" => Self::Assertion,
            _ => return None,
        })
    }
}

/// Redirect URIs of a client.
#[derive(Debug, Clone)]
pub(super) enum Redirects {
    /// Those of the server's options.
    OfServer,
    Own(Vec<String>),
}

/// A client that the server knows.
#[derive(Debug, Clone)]
pub(super) struct KnownClient {
    pub(super) id: String,
    pub(super) method: AuthMethod,
    pub(super) secret: Option<String>,
    pub(super) redirects: Redirects,
    pub(super) grants: Option<Vec<String>>,
    pub(super) jwks: Value,
    pub(super) dpop_bound: bool,
}

impl KnownClient {
    pub(super) fn is_public(&self) -> bool {
        matches!(self.method, AuthMethod::None | AuthMethod::Any)
    }

    pub(super) fn may(&self, grant: &str) -> bool {
        self.grants.as_ref().is_none_or(|grants| grants.iter().any(|one| one == grant))
    }

    /// The redirect URI of a request: that it names, or the only one of the client.
    pub(super) fn redirect_uri(&self, issuer: &Issuer, asked: Option<&str>) -> Option<String> {
        match (asked, &self.redirects) {
            (Some(asked), Redirects::OfServer) => {
                let url = Url::parse(asked).ok()?;
                issuer.may_redirect_to(asked, &url).then(|| asked.to_owned())
            }
            (Some(asked), Redirects::Own(own)) => {
                own.iter().any(|one| redirect_matches(one, asked)).then(|| asked.to_owned())
            }
            (None, Redirects::Own(own)) => match own.as_slice() {
                [only] => Some(only.clone()),
                _ => None,
            },
            (None, Redirects::OfServer) => None,
        }
    }

    /// A client with the metadata of a registration or a document. The error names the bad field.
    pub(super) fn from_metadata(
        id: &str,
        metadata: &Map<String, Value>,
        default: AuthMethod,
    ) -> Result<Self, String> {
        let texts = |name: &str| match metadata.get(name) {
            None => Ok(None),
            Some(Value::Array(items)) => {
                let texts =
                    items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
                texts.map(Some).ok_or_else(|| format!("`{name}` must hold texts"))
            }
            Some(_) => Err(format!("`{name}` must be an array")),
        };
        let method = match metadata.get("token_endpoint_auth_method") {
            None => default,
            Some(found) => found
                .as_str()
                .and_then(AuthMethod::parse)
                .ok_or_else(|| format!("`token_endpoint_auth_method` {found} is not supported"))?,
        };
        let redirects = texts("redirect_uris")?.unwrap_or_default();
        if let Some(bad) =
            redirects.iter().find(|uri| Url::parse(uri).map_or(true, |uri| uri.fragment().is_some()))
        {
            return Err(format!("`redirect_uris`: {bad:?} is no absolute URI without a fragment"));
        }
        let grants = texts("grant_types")?.unwrap_or_else(|| vec!["authorization_code".into()]);
        if let Some(unknown) = grants.iter().find(|grant| !GRANTS.contains(&grant.as_str())) {
            return Err(format!("`grant_types`: {unknown:?} is not supported"));
        }
        if texts("response_types")?.is_some_and(|types| types != ["code"]) {
            return Err("`response_types` must be [\"code\"]".into());
        }
        let is = |name: &str, fits: fn(&Value) -> bool| metadata.get(name).is_none_or(fits);
        if !is("client_name", Value::is_string) || !is("dpop_bound_access_tokens", Value::is_boolean) {
            return Err("`client_name` must be a text, and `dpop_bound_access_tokens` true or false".into());
        }
        if method == AuthMethod::Assertion && !metadata.contains_key("jwks") {
            return Err("`private_key_jwt` needs `jwks`".into());
        }
        Ok(Self {
            id: id.to_owned(),
            method,
            secret: metadata.get("client_secret").and_then(Value::as_str).map(str::to_owned),
            redirects: Redirects::Own(redirects),
            grants: Some(grants),
            jwks: metadata.get("jwks").cloned().unwrap_or_default(),
            dpop_bound: metadata.get("dpop_bound_access_tokens") == Some(&Value::Bool(true)),
        })
    }
}

impl From<&MockOAuthClient> for KnownClient {
    fn from(client: &MockOAuthClient) -> Self {
        let method = client.token_endpoint_auth_method.as_deref().and_then(AuthMethod::parse);
        let by_kind = match (&client.client_secret, &client.jwks) {
            (Some(_), _) => AuthMethod::Basic,
            (None, Some(_)) => AuthMethod::Assertion,
            (None, None) => AuthMethod::None,
        };
        let method = method.unwrap_or(by_kind);
        let mut grants = vec!["authorization_code".to_owned(), "refresh_token".to_owned()];
        if method != AuthMethod::None {
            grants.push("client_credentials".to_owned());
        }
        Self {
            id: client.client_id.clone(),
            method,
            secret: client.client_secret.clone(),
            redirects: Redirects::Own(client.redirect_uris.clone()),
            grants: Some(client.grant_types.clone().unwrap_or(grants)),
            jwks: client.jwks.clone().unwrap_or_default(),
            dpop_bound: client.dpop_bound_access_tokens,
        }
    }
}

/// The media type of a body, in lower case and without parameters; empty without one or with several.
pub(super) fn media_type(headers: &HeaderMap) -> String {
    let mut all = headers.get_all(header::CONTENT_TYPE).iter();
    let only = all.next().filter(|_| all.next().is_none());
    let text = only.and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Compares a redirect URI with a registered one: exactly, but for the port of an http URI of this machine (RFC 8252 §7.3).
fn redirect_matches(registered: &str, asked: &str) -> bool {
    let without_port = |uri: &str| {
        let mut url = Url::parse(uri).ok().filter(|url| url.scheme() == "http")?;
        let local = match url.host()? {
            url::Host::Domain(name) => name == "localhost",
            url::Host::Ipv4(address) => address.is_loopback(),
            url::Host::Ipv6(address) => address.is_loopback(),
        };
        url.set_port(None).ok()?;
        local.then(|| url.to_string())
    };
    registered == asked || without_port(registered).is_some_and(|one| Some(one) == without_port(asked))
}

impl Issuer {
    /// The client of this id, unless it has to be fetched.
    fn known_client(&self, id: &str) -> Option<KnownClient> {
        let options = &self.options;
        if options.client_id.as_deref() == Some(id) {
            return Some(KnownClient {
                id: id.to_owned(),
                method: if options.client_secret.is_some() {
                    AuthMethod::AnySecret
                } else {
                    AuthMethod::None
                },
                secret: options.client_secret.clone(),
                redirects: Redirects::OfServer,
                grants: None,
                jwks: Value::Null,
                dpop_bound: false,
            });
        }
        let configured = options.clients.iter().find(|client| client.client_id == id);
        configured.map(KnownClient::from).or_else(|| self.registered.get(id).cloned())
    }
}

/// Finds a client; one whose id is a URL is described by the document there. The error says why it is unknown.
pub(super) async fn find_client(issuer: &SharedIssuer, id: &str) -> Result<KnownClient, String> {
    let (trusted, accept_any) = {
        let issuer = lock(issuer);
        if let Some(known) = issuer.known_client(id) {
            return Ok(known);
        }
        (issuer.options.trusted_ca_pem.clone(), issuer.options.accept_any_client)
    };
    if id.starts_with("https://") || id.starts_with("http://") {
        return document(id, &trusted)
            .await
            .map_err(|problem| format!("the client metadata document: {problem}"));
    }
    match accept_any {
        true => Ok(KnownClient {
            id: id.to_owned(),
            method: AuthMethod::Any,
            secret: None,
            redirects: Redirects::OfServer,
            grants: None,
            jwks: Value::Null,
            dpop_bound: false,
        }),
        false => Err("this client is not known; register it, or configure it".into()),
    }
}

/// Fetches and checks a client ID metadata document.
async fn document(id: &str, trusted: &[String]) -> Result<KnownClient, String> {
    let url = Url::parse(id).map_err(|_| "its address is no URL")?;
    let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    if !plain || url.path() == "/" || url.as_str() != id {
        return Err("its address must have a path, no credentials, no fragment, and its usual form".into());
    }
    let mut client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(FETCH_TIMEOUT);
    for pem in trusted {
        let ca = reqwest::Certificate::from_pem(pem.as_bytes()).map_err(|error| root_cause(&error))?;
        client = client.tls_certs_merge([ca]);
    }
    let client = client.build().map_err(|error| root_cause(&error))?;
    let mut response = client.get(url).send().await.map_err(|error| root_cause(&error))?;
    if response.status() != StatusCode::OK {
        return Err(format!("it gave HTTP {}", response.status()));
    }
    let kind = media_type(response.headers());
    if kind != "application/json" && !kind.ends_with("+json") {
        return Err("it is not served as application/json".into());
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| root_cause(&error))? {
        body.extend_from_slice(&chunk);
        if body.len() > MOST_BYTES {
            return Err(format!("it is larger than {MOST_BYTES} bytes"));
        }
    }
    let Ok(Value::Object(metadata)) = read_unique(&body) else {
        return Err("it is no JSON object that names no member twice".into());
    };
    if metadata.get("client_id").and_then(Value::as_str) != Some(id) {
        return Err("its `client_id` is not its address".into());
    }
    if metadata.contains_key("client_secret") {
        return Err("it holds a `client_secret`, which anyone can read".into());
    }
    let client = KnownClient::from_metadata(id, &metadata, AuthMethod::None)?;
    if !matches!(client.method, AuthMethod::None | AuthMethod::Assertion) {
        return Err("its `token_endpoint_auth_method` must be `none` or `private_key_jwt`".into());
    }
    if client.may("client_credentials") {
        return Err("`client_credentials` is not open to clients that describe themselves".into());
    }
    if matches!(&client.redirects, Redirects::Own(own) if own.is_empty()) {
        return Err("it has no `redirect_uris`".into());
    }
    Ok(client)
}

#[cfg(test)]
mod tests {
    use super::redirect_matches;

    #[test]
    fn only_the_port_of_this_machine_is_free() {
        assert!(redirect_matches("http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb"));
        assert!(redirect_matches("http://localhost/cb", "http://localhost:3000/cb"));
        for (registered, asked) in [
            ("https://a.example/cb", "https://a.example/cb2"),
            ("https://a.example:1/cb", "https://a.example:2/cb"),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:1/other"),
            ("http://127.0.0.1:1/cb", "http://localhost:1/cb"),
        ] {
            assert!(!redirect_matches(registered, asked), "{asked}");
        }
    }
}
