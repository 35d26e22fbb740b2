//! The authorization server of an MCP endpoint: RFC 9728, then RFC 8414 or OpenID Connect Discovery.

use anyhow::bail;
use reqwest::{StatusCode, Url, header::WWW_AUTHENTICATE};
use serde::Deserialize;

use super::http::{Http, safe};

/// Metadata of a protected resource (RFC 9728 §2), as far as it is used.
#[derive(Deserialize)]
struct ResourceMetadata {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// Metadata of an authorization server (RFC 8414 §2), as far as it is used.
#[derive(Deserialize)]
pub struct ServerMetadata {
    pub issuer: String,
    pub authorization_endpoint: Option<String>,
    pub token_endpoint: String,
    pub registration_endpoint: Option<String>,
    pub revocation_endpoint: Option<String>,
    pub device_authorization_endpoint: Option<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
}

/// The server to sign in at, as its metadata describe it.
pub struct Discovered {
    pub metadata: ServerMetadata,
    /// The resource that tokens are for (RFC 8707).
    pub resource: String,
    /// Scopes to ask for, separated by spaces; empty for the server's default.
    pub scopes: String,
}

/// Finds the authorization server.
///
/// # Errors
/// The endpoint wants no token, or its metadata cannot be used.
pub async fn discover(http: &Http, url: &Url) -> anyhow::Result<Discovered> {
    safe(url.as_str())?;
    let response = http.unauthorized(url).await?;
    let challenged = response.status() == StatusCode::UNAUTHORIZED;
    let challenge =
        response.headers().get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    let challenge = challenge.collect::<Vec<_>>().join(", ");
    let named = parameter(&challenge, "resource_metadata");
    let places = match named {
        Some(place) => vec![place],
        None => vec![inserted(url, "oauth-protected-resource"), at_root(url, "oauth-protected-resource")],
    };
    let mut resource = None;
    for place in places {
        resource = http.document::<ResourceMetadata>(&place).await?;
        if resource.is_some() {
            break;
        }
    }
    let (issuer, resource, scopes) = match resource {
        Some(found) => {
            if !covers(&found.resource, url) {
                bail!("the metadata of {url} is about another resource");
            }
            let Some(issuer) = found.authorization_servers.first().cloned() else {
                bail!("the metadata of {url} names no authorization server");
            };
            (issuer, found.resource, found.scopes_supported.join(" "))
        }
        // Servers of MCP 2025-03-26 are their own authorization server.
        None if challenged => (url.origin().ascii_serialization(), url.to_string(), String::new()),
        None => bail!("{url} asks for no sign-in (HTTP {}): use it as it is", response.status().as_u16()),
    };
    let metadata = server(http, &issuer).await?;
    Ok(Discovered { metadata, resource, scopes: parameter(&challenge, "scope").unwrap_or(scopes) })
}

async fn server(http: &Http, issuer: &str) -> anyhow::Result<ServerMetadata> {
    let url = safe(issuer)?;
    let below = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
    for place in [inserted(&url, "oauth-authorization-server"), inserted(&url, "openid-configuration"), below]
    {
        let Some(found) = http.document::<ServerMetadata>(&place).await? else { continue };
        if found.issuer != issuer {
            bail!("the metadata of the authorization server {issuer} names another issuer");
        }
        let endpoints = [
            Some(&found.token_endpoint),
            found.authorization_endpoint.as_ref(),
            found.registration_endpoint.as_ref(),
            found.revocation_endpoint.as_ref(),
            found.device_authorization_endpoint.as_ref(),
        ];
        for endpoint in endpoints.into_iter().flatten() {
            safe(endpoint)?;
        }
        let has_pkce = found.code_challenge_methods_supported.iter().any(|method| method == "S256");
        if found.device_authorization_endpoint.is_none() && !has_pkce {
            bail!("the authorization server {issuer} does not support PKCE with S256");
        }
        return Ok(found);
    }
    bail!("the authorization server {issuer} has no metadata (RFC 8414)");
}

/// `/.well-known/{name}` inserted before the path of `url`.
fn inserted(url: &Url, name: &str) -> String {
    format!("{}{}", at_root(url, name), url.path().trim_end_matches('/'))
}

fn at_root(url: &Url, name: &str) -> String {
    format!("{}/.well-known/{name}", url.origin().ascii_serialization())
}

/// Metadata must be about the resource, or about one that contains it (RFC 9728 §3.3).
fn covers(resource: &str, url: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let (above, path) = (resource.path().trim_end_matches('/'), url.path().trim_end_matches('/'));
    let below = path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    resource.origin() == url.origin() && below
}

/// A quoted parameter of a challenge (RFC 9110 §11.2).
fn parameter(challenge: &str, name: &str) -> Option<String> {
    let mut rest = challenge;
    while let Some(at) = rest.find(name) {
        let before = rest[..at].chars().next_back();
        let after = &rest[at + name.len()..];
        if before.is_none_or(|c| matches!(c, ' ' | ',' | '\t'))
            && let Some(value) = after.trim_start().strip_prefix('=').map(str::trim_start)
        {
            let value = match value.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next(),
                None => value.split([',', ' ']).next(),
            };
            return value.filter(|value| !value.is_empty()).map(str::to_owned);
        }
        rest = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_a_challenge_are_found_by_their_whole_name() {
        let challenge =
            r#"Bearer error="x", my_scope="no", scope="a b", resource_metadata="https://a.example/x""#;
        assert_eq!(parameter(challenge, "scope").as_deref(), Some("a b"));
        assert_eq!(parameter(challenge, "resource_metadata").as_deref(), Some("https://a.example/x"));
        assert_eq!(parameter(challenge, "realm"), None);
    }

    #[test]
    fn metadata_of_another_resource_is_not_taken() {
        let url = Url::parse("https://a.example/mcp").unwrap();
        assert!(covers("https://a.example/mcp", &url) && covers("https://a.example", &url));
        for other in ["https://b.example/mcp", "http://a.example/mcp", "https://a.example/mc", "x"] {
            assert!(!covers(other, &url), "{other}");
        }
        assert_eq!(inserted(&url, "x"), "https://a.example/.well-known/x/mcp");
    }
}
