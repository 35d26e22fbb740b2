//! Discovery of a server's authorization server: RFC 9728, then RFC 8414 or OpenID Connect Discovery.

use gatewright_core::read_json;
use serde::Deserialize;
use tokio::sync::Mutex;
use url::Url;

use super::vault::{OauthEndpoints, Provider};
use crate::{
    context::Context,
    endpoint::EndpointUrl,
    fetch::{FetchError, Fetcher},
};

const MAX_BYTES: usize = 256 * 1024;
/// Most issuers that a server with known endpoints may have.
const MOST_ISSUERS: usize = 4;
/// Time for which metadata is used before it is fetched again, in milliseconds.
const FRESH_MS: u64 = 600_000;

/// The metadata of a protected resource (RFC 9728 §2), as far as it is used.
#[derive(Debug, Clone, Deserialize)]
struct ResourceMetadata {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// The metadata of an authorization server (RFC 8414 §2), as far as it is used.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ServerMetadata {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: EndpointUrl,
    pub(super) token_endpoint: EndpointUrl,
    pub(super) registration_endpoint: Option<EndpointUrl>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
    #[serde(default)]
    pub(super) client_id_metadata_document_supported: bool,
    /// Scopes of the resource.
    #[serde(skip)]
    pub(super) scopes: Vec<String>,
    /// The endpoint for refresh tokens, where it is another one.
    #[serde(skip)]
    pub(super) refresh_endpoint: Option<EndpointUrl>,
    /// It is not known what the server calls itself: `issuer` is its token endpoint.
    #[serde(skip)]
    pub(super) is_unnamed: bool,
}

/// Cached metadata, with the time at which it was fetched.
#[derive(Default)]
pub(super) struct Discovery(Mutex<Option<(ServerMetadata, u64)>>);

impl Provider {
    /// Returns the metadata of the authorization server.
    pub(super) async fn server(&self, ctx: &Context) -> Result<ServerMetadata, String> {
        let mut cached = self.discovery.0.lock().await;
        let now = ctx.clock.now_ms();
        if let Some((server, read_ms)) = &*cached
            && now < read_ms + FRESH_MS
        {
            return Ok(server.clone());
        }
        let server = self.discover(ctx).await?;
        *cached = Some((server.clone(), now));
        Ok(server)
    }

    async fn discover(&self, ctx: &Context) -> Result<ServerMetadata, String> {
        let settings = &self.settings;
        if let Some(endpoints) = &settings.endpoints {
            let known = self.configured(endpoints).await?;
            return match settings.client_id {
                Some(_) => Ok(known),
                None => self.registering(ctx, known).await,
            };
        }
        let resource = match settings.is_mcp {
            true => resource(&self.fetcher, &settings.resource).await?,
            false => None,
        };
        let issuer = match (&settings.issuer, &resource) {
            (Some(issuer), _) => issuer.clone(),
            (None, Some(resource)) => resource
                .authorization_servers
                .first()
                .cloned()
                .ok_or("its metadata names no authorization server; set `auth.issuer`")?,
            // Servers of MCP 2025-03-26 are their own authorization server.
            (None, None) => origin(&settings.resource)?,
        };
        let mut server = server(&self.fetcher, &issuer).await?;
        let methods = &server.code_challenge_methods_supported;
        // Metadata of OpenID Connect may leave the field out; PKCE is used in any case.
        let is_unsaid = !settings.is_mcp && methods.is_empty();
        if !is_unsaid && !methods.iter().any(|method| method == "S256") {
            return Err("its authorization server does not support PKCE with S256".to_owned());
        }
        server.scopes = match settings.scopes.as_slice() {
            [] => resource.map(|resource| resource.scopes_supported).unwrap_or_default(),
            scopes => scopes.to_vec(),
        };
        Ok(server)
    }

    /// Returns the server with these endpoints. Answers come to a redirect URI of its token endpoint, which gets the codes.
    async fn configured(&self, endpoints: &OauthEndpoints) -> Result<ServerMetadata, String> {
        let endpoint = |url: &str| EndpointUrl::try_from(url.to_owned()).map_err(str::to_owned);
        let server = ServerMetadata {
            issuer: self.settings.issuer.clone().unwrap_or_else(|| endpoints.token.clone()),
            authorization_endpoint: endpoint(&endpoints.authorization)?,
            token_endpoint: endpoint(&endpoints.token)?,
            registration_endpoint: None,
            code_challenge_methods_supported: Vec::new(),
            token_endpoint_auth_methods_supported: endpoints
                .secret_in_form
                .then(|| vec!["client_secret_post".to_owned()]),
            authorization_response_iss_parameter_supported: false,
            client_id_metadata_document_supported: false,
            scopes: self.settings.scopes.clone(),
            refresh_endpoint: endpoints.refresh.as_deref().map(endpoint).transpose()?,
            is_unnamed: self.settings.issuer.is_none(),
        };
        let all = [&server.authorization_endpoint, &server.token_endpoint].into_iter();
        match self.fetcher.allows(all.chain(&server.refresh_endpoint)).await {
            Ok(()) => Ok(server),
            Err(error) => Err(format!("an endpoint of its authorization server cannot be used: {error}")),
        }
    }
}

impl Provider {
    /// Returns `known`, a server of which only the endpoints are known, with its metadata if that lets the gateway register itself.
    ///
    /// Metadata counts only if it names the same endpoints: whoever writes it gets nothing that the server would not get.
    async fn registering(&self, ctx: &Context, known: ServerMetadata) -> Result<ServerMetadata, String> {
        let issuers = match &self.settings.issuer {
            Some(issuer) => vec![issuer.clone()],
            None => issuers(&known),
        };
        for issuer in issuers {
            let found = match metadata(&self.fetcher, &issuer).await {
                Ok(Some(found)) => found,
                Ok(None) | Err(MetadataError::Unusable) => continue,
                Err(error @ MetadataError::Failed(_)) => return Err(error.to_string()),
            };
            let without_query = |url: &str| url.split('?').next().unwrap_or_default().to_owned();
            let is_same = found.issuer.trim_end_matches('/') == issuer.trim_end_matches('/')
                && without_query(&found.authorization_endpoint)
                    == without_query(&known.authorization_endpoint)
                && found.token_endpoint == known.token_endpoint;
            if is_same && (found.registration_endpoint.is_some() || found.takes_documents(ctx)) {
                return Ok(ServerMetadata {
                    authorization_endpoint: known.authorization_endpoint,
                    refresh_endpoint: known.refresh_endpoint,
                    scopes: known.scopes,
                    ..found
                });
            }
        }
        Ok(known)
    }
}

impl ServerMetadata {
    /// Returns true if the server reads about the gateway at an address of ours, which it can only if that is https.
    pub(super) fn takes_documents(&self, ctx: &Context) -> bool {
        self.client_id_metadata_document_supported && ctx.deployment.is_https()
    }
}

/// Possible issuers of a server with these endpoints: their origins, and the paths above them.
fn issuers(known: &ServerMetadata) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for endpoint in [&known.token_endpoint, &known.authorization_endpoint] {
        let Ok(url) = Url::parse(endpoint) else { continue };
        let origin = url.origin().ascii_serialization();
        let path = url.path().trim_end_matches('/');
        let above = path.match_indices('/').map(|(at, _)| format!("{origin}{}", &path[..at]));
        for issuer in above {
            if !all.contains(&issuer) && all.len() < MOST_ISSUERS {
                all.push(issuer);
            }
        }
    }
    all
}

fn origin(address: &str) -> Result<String, String> {
    let url = Url::parse(address).map_err(|_| "its address is not one".to_owned())?;
    Ok(url.origin().ascii_serialization())
}

/// Returns `address` with `/.well-known/{name}` inserted before its path.
fn inserted(address: &str, name: &str) -> Result<String, String> {
    let url = Url::parse(address).map_err(|_| "an address in its metadata is not one".to_owned())?;
    let path = url.path().trim_end_matches('/');
    Ok(format!("{}/.well-known/{name}{path}", url.origin().ascii_serialization()))
}

/// Fetches the resource's metadata, if it has any. It must be about this resource, or about one that contains it (RFC 9728 §3.3).
async fn resource(fetcher: &Fetcher, address: &str) -> Result<Option<ResourceMetadata>, String> {
    let at_root = format!("{}/.well-known/oauth-protected-resource", origin(address)?);
    for place in [inserted(address, "oauth-protected-resource")?, at_root] {
        match fetcher.get(&place, MAX_BYTES).await {
            Ok(fetched) => {
                let found: ResourceMetadata = read_json(&fetched.body)
                    .map_err(|_| "its resource metadata cannot be read".to_owned())?;
                if !covers(&found.resource, address) {
                    return Err("its resource metadata is about another resource".to_owned());
                }
                return Ok(Some(found));
            }
            Err(FetchError::Status(400..500) | FetchError::OAuth(400..500, _)) => {}
            Err(error) => return Err(format!("its resource metadata cannot be read: {error}")),
        }
    }
    Ok(None)
}

fn covers(resource: &str, address: &str) -> bool {
    let (Ok(resource), Ok(address)) = (Url::parse(resource), Url::parse(address)) else { return false };
    let (above, path) = (resource.path().trim_end_matches('/'), address.path().trim_end_matches('/'));
    let below = path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    resource.origin() == address.origin() && below
}

/// Why there is no metadata of an authorization server.
#[derive(Debug, thiserror::Error)]
enum MetadataError {
    #[error(
        "the metadata of its authorization server cannot be used: it cannot be read, or an endpoint in it is not a public https address \
         without a fragment"
    )]
    Unusable,
    #[error("the metadata of its authorization server cannot be read: {0}")]
    Failed(FetchError),
}

async fn server(fetcher: &Fetcher, issuer: &str) -> Result<ServerMetadata, String> {
    let found = metadata(fetcher, issuer).await.map_err(|error| error.to_string())?;
    let found = found.ok_or("the metadata of its authorization server cannot be read: there is none")?;
    match found.issuer == issuer {
        true => Ok(found),
        false => Err("the metadata of its authorization server names another issuer".to_owned()),
    }
}

/// The metadata of an issuer, if it has some. It may call itself something else.
async fn metadata(fetcher: &Fetcher, issuer: &str) -> Result<Option<ServerMetadata>, MetadataError> {
    let inserted = |name| inserted(issuer, name).map_err(|_| MetadataError::Unusable);
    let places = [
        inserted("oauth-authorization-server")?,
        inserted("openid-configuration")?,
        format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/')),
    ];
    let mut failure = None;
    for place in places {
        match fetcher.get(&place, MAX_BYTES).await {
            Ok(fetched) => {
                let found: ServerMetadata = read_json(&fetched.body).map_err(|_| MetadataError::Unusable)?;
                let endpoints = [&found.authorization_endpoint, &found.token_endpoint].into_iter();
                let allowed = fetcher.allows(endpoints.chain(&found.registration_endpoint)).await;
                return allowed.map(|()| Some(found)).map_err(|_| MetadataError::Unusable);
            }
            Err(FetchError::Status(400..500) | FetchError::OAuth(400..500, _)) => {}
            Err(error) => failure = Some(error),
        }
    }
    failure.map_or(Ok(None), |error| Err(MetadataError::Failed(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_another_resource_is_not_taken() {
        assert!(covers("https://a.example/mcp", "https://a.example/mcp"));
        assert!(
            covers("https://a.example", "https://a.example/mcp")
                && covers("https://a.example/mcp/", "https://a.example/mcp")
        );
        for other in [
            "https://b.example/mcp",
            "http://a.example/mcp",
            "https://a.example/mc",
            "https://a.example/mcp/x",
            "x",
        ] {
            assert!(!covers(other, "https://a.example/mcp"), "{other}");
        }
    }

    #[test]
    fn well_known_addresses_come_before_the_path() {
        assert_eq!(inserted("https://a.example/t/1/", "x").unwrap(), "https://a.example/.well-known/x/t/1");
        assert_eq!(inserted("https://a.example", "x").unwrap(), "https://a.example/.well-known/x");
    }
}
