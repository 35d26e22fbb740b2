//! The gateway's credentials, by the security requirements of an operation.

use std::collections::BTreeMap;

use base64::Engine as _;
use gatewright_core::Secret;
use http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION};
use url::Url;

use super::{encode, failure::CallError, form};
use crate::{
    ApiKeyLocation, Oauth2FlowKind, Operation, Requirement, SecurityScheme,
    config::{ApiAuth, ApiKeyPlace, ClientCredentials, Credential},
    endpoints,
    listed::listed,
};

/// Security schemes of a document, by name.
pub(crate) type Schemes = BTreeMap<std::sync::Arc<str>, SecurityScheme>;

/// Credentials of one request.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    pub(crate) headers: HeaderMap,
    /// Fields of the query, escaped.
    pub(crate) query: Vec<(String, String)>,
    /// Fields of the header `Cookie`.
    pub(crate) cookies: Vec<String>,
    /// The client certificate is shown.
    pub(crate) certificate: bool,
    /// A token that has to be fetched, and goes into `Authorization`.
    pub(crate) token: Option<NeededToken>,
}

/// A token that a request needs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NeededToken {
    /// One of the gateway itself.
    Gateway(TokenRequest),
    /// One of the user, for these scopes.
    User(Vec<String>),
}

/// Parameters of a token request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TokenRequest {
    pub(crate) client: ClientCredentials,
    /// The token endpoint.
    pub(crate) token_url: String,
    pub(crate) scopes: Vec<String>,
}

/// Addresses that decide on the token endpoints of a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Issuers<'a> {
    /// The server of the operation.
    pub(crate) server: &'a Url,
    /// `baseUrl`.
    pub(crate) base: Option<&'a Url>,
}

/// The credentials of a request for `operation`.
///
/// # Errors
/// No alternative of the operation has credentials in the configuration, or one cannot be sent.
pub(crate) fn apply(
    auth: Option<&ApiAuth>,
    schemes: &Schemes,
    is_secured: bool,
    operation: &Operation,
    issuers: Issuers<'_>,
) -> Result<Applied, CallError> {
    let mut applied = Applied::default();
    match auth {
        None => {}
        Some(ApiAuth::Every(credential)) => {
            let needs = operation.security.iter().any(|alternative| !alternative.is_empty());
            // A document that says nothing about security leaves it to the operator.
            if needs || !is_secured {
                let requirement = suited(credential, schemes, operation);
                let scheme = requirement.and_then(|requirement| schemes.get(&requirement.scheme));
                add(&mut applied, credential, scheme, requirement, issuers)?;
            }
        }
        Some(ApiAuth::Schemes(configured)) => {
            let has = |requirement: &Requirement| configured.contains_key(&*requirement.scheme);
            let satisfied = |alternative: &[Requirement]| alternative.iter().all(has);
            // One with credentials is better than an empty one, which may show less.
            let alternatives = || operation.security.iter().filter(|alternative| satisfied(alternative));
            let chosen =
                alternatives().find(|alternative| !alternative.is_empty()).or_else(|| alternatives().next());
            let Some(chosen) = chosen else {
                if operation.security.is_empty() {
                    return Ok(applied);
                }
                return Err(CallError::NoCredentials(alternatives_text(operation)));
            };
            for requirement in chosen {
                if let Some(credential) = configured.get(&*requirement.scheme) {
                    let scheme = schemes.get(&requirement.scheme);
                    add(&mut applied, credential, scheme, Some(requirement), issuers)?;
                }
            }
        }
    }
    Ok(applied)
}

/// The alternatives of an operation, for an error.
fn alternatives_text(operation: &Operation) -> String {
    let alternatives = operation.security.iter().map(|alternative| {
        listed(
            alternative.iter().map(|requirement| format!("`{}`", listed([&requirement.scheme], ""))),
            " and ",
        )
    });
    listed(alternatives, ", or ")
}

/// The requirement of the operation that the credential is for: the first of its kind.
fn suited<'a>(
    credential: &Credential,
    schemes: &Schemes,
    operation: &'a Operation,
) -> Option<&'a Requirement> {
    let all = || operation.security.iter().flat_map(|alternative| alternative.iter());
    let is_suited = |requirement: &&Requirement| {
        schemes.get(&requirement.scheme).is_some_and(|scheme| fits(credential, scheme))
    };
    let is_oauth = |requirement: &&Requirement| {
        let scheme = schemes.get(&requirement.scheme);
        matches!(scheme, Some(SecurityScheme::Oauth2 { .. } | SecurityScheme::OpenIdConnect { .. }))
    };
    // A scheme that has the scopes is better than one that takes any token.
    let best = all().find(|requirement| is_oauth(requirement) && is_suited(requirement));
    best.filter(|_| matches!(credential, Credential::Oauth(_))).or_else(|| all().find(is_suited))
}

/// Returns `true` if a credential of this type is usual for the scheme.
pub(crate) fn fits(credential: &Credential, scheme: &SecurityScheme) -> bool {
    match (credential, scheme) {
        (Credential::ApiKey { .. }, SecurityScheme::ApiKey { .. }) => true,
        (Credential::Basic { .. }, SecurityScheme::Basic) => true,
        (Credential::Mtls { .. }, SecurityScheme::MutualTls) => true,
        (
            Credential::Bearer { .. } | Credential::ClientCredentials(_) | Credential::Oauth(_),
            SecurityScheme::Bearer | SecurityScheme::Oauth2 { .. } | SecurityScheme::OpenIdConnect { .. },
        ) => true,
        // Documents of Swagger 2.0 have no other way to ask for a token.
        (Credential::Bearer { .. }, SecurityScheme::ApiKey { name, location: ApiKeyLocation::Header }) => {
            name.eq_ignore_ascii_case("authorization")
        }
        _ => false,
    }
}

fn add(
    applied: &mut Applied,
    credential: &Credential,
    scheme: Option<&SecurityScheme>,
    requirement: Option<&Requirement>,
    issuers: Issuers<'_>,
) -> Result<(), CallError> {
    match credential {
        Credential::None {} => {}
        Credential::Mtls { .. } => applied.certificate = true,
        Credential::Bearer { token } => authorization(applied, format!("Bearer {}", token.expose()))?,
        Credential::Basic { username, password } => {
            let pair = format!("{username}:{}", password.expose());
            let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
            authorization(applied, format!("Basic {encoded}"))?;
        }
        Credential::ApiKey { value, name, place } => {
            let (own_name, own_place) = match scheme {
                Some(SecurityScheme::ApiKey { name, location }) => (Some(&**name), Some(*location)),
                _ => (None, None),
            };
            let missing = || {
                CallError::NoCredentials(
                    "the place of the API key is not known: set `auth.name` and `auth.in`".to_owned(),
                )
            };
            let name = name.as_deref().or(own_name).ok_or_else(missing)?;
            let place = place.map(ApiKeyPlace::location).or(own_place).unwrap_or(ApiKeyLocation::Header);
            api_key(applied, name, value, place)?;
        }
        Credential::Oauth(user) => {
            // A scheme of another kind has roles, if anything.
            let has_scopes =
                matches!(scheme, Some(SecurityScheme::Oauth2 { .. } | SecurityScheme::OpenIdConnect { .. }));
            let needed = requirement.filter(|_| has_scopes && user.scopes.is_empty());
            applied.token = Some(NeededToken::User(needed.map(scopes_of).unwrap_or_default()));
        }
        Credential::ClientCredentials(client) => {
            let of_document = scheme.and_then(token_endpoint);
            let token_url = match (&client.token_url, of_document) {
                (Some(own), _) => own.clone(),
                (None, Some(url)) => {
                    endpoints::of_document(url, "auth.tokenUrl", Some(issuers.server), issuers.base)
                        .map_err(CallError::NoCredentials)?
                        .into()
                }
                (None, None) => {
                    return Err(CallError::NoCredentials(
                        "the token endpoint is not known: set `auth.tokenUrl`".to_owned(),
                    ));
                }
            };
            let scopes = match (client.scopes.is_empty(), requirement) {
                (true, Some(requirement)) => scopes_of(requirement),
                _ => client.scopes.clone(),
            };
            let request = TokenRequest { client: client.clone(), token_url, scopes };
            applied.token = Some(NeededToken::Gateway(request));
        }
    }
    Ok(())
}

/// The token endpoint of a scheme for a client's own tokens, as the document has it.
pub(crate) fn token_endpoint(scheme: &SecurityScheme) -> Option<&str> {
    let SecurityScheme::Oauth2 { flows, .. } = scheme else { return None };
    flows.iter().find(|flow| flow.kind == Oauth2FlowKind::ClientCredentials)?.token_url.as_deref()
}

fn scopes_of(requirement: &Requirement) -> Vec<String> {
    requirement.scopes.iter().map(ToString::to_string).collect()
}

pub(crate) fn authorization(applied: &mut Applied, value: String) -> Result<(), CallError> {
    applied.headers.insert(AUTHORIZATION, sensitive(&value)?);
    Ok(())
}

fn api_key(
    applied: &mut Applied,
    name: &str,
    value: &Secret,
    place: ApiKeyLocation,
) -> Result<(), CallError> {
    match place {
        ApiKeyLocation::Header => {
            let name = HeaderName::try_from(name).map_err(|_| unusable())?;
            applied.headers.insert(name, sensitive(value.expose())?);
        }
        ApiKeyLocation::Query => applied.query.push((encode::escaped(name), encode::escaped(value.expose()))),
        ApiKeyLocation::Cookie if form::is_cookie(name.as_bytes(), value.expose().as_bytes()) => {
            applied.cookies.push(format!("{name}={}", value.expose()));
        }
        ApiKeyLocation::Cookie => return Err(unusable()),
    }
    Ok(())
}

fn unusable() -> CallError {
    CallError::NoCredentials("they have characters that cannot be sent".to_owned())
}

fn sensitive(value: &str) -> Result<HeaderValue, CallError> {
    let mut value = HeaderValue::try_from(value).map_err(|_| unusable())?;
    value.set_sensitive(true);
    Ok(value)
}
