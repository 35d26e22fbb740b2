//! Client metadata (RFC 7591 §2), as a client registers it or as its metadata document states it.
//!
//! Everything a stranger writes is bounded here, and every rejection names the field. Fields that are not known are ignored.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::{
    error::OAuthError,
    error_codes::Code,
    json::{self, NotAnObject},
    keys::{JwkSet, VerifyingKey},
    net, pages, redirect_uri,
    scopes::{is_scope_token, space_delimited},
};

use super::client::{AuthMethod, OAuthClient, Origin};

/// Bytes of the metadata of one client, in a registration or a document.
pub(super) const MAX_METADATA_BYTES: usize = 16 * 1024;
/// Characters of a name. Pages show the first 80.
const MAX_NAME_CHARS: usize = 200;
/// Bytes of any other text.
const MAX_TEXT_BYTES: usize = 2048;
/// Entries of a list, and scopes.
const MAX_ENTRIES: usize = 32;
/// Keys of `jwks`.
const MAX_KEYS: usize = 16;

/// A reason to reject client metadata, by its error code (RFC 7591 §3.2.2).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MetadataError {
    /// `invalid_redirect_uri`.
    #[error("{0}")]
    RedirectUri(Cow<'static, str>),
    /// `invalid_client_metadata`.
    #[error("{0}")]
    Field(Cow<'static, str>),
    /// `invalid_software_statement`.
    #[error("software statements are not accepted")]
    SoftwareStatement,
}

impl MetadataError {
    /// The error code.
    fn code(&self) -> Code {
        match self {
            Self::RedirectUri(_) => Code::InvalidRedirectUri,
            Self::Field(_) => Code::InvalidClientMetadata,
            Self::SoftwareStatement => Code::InvalidSoftwareStatement,
        }
    }

    pub(super) fn field(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Field(text.into())
    }

    /// An error about `name`, with the code of that field.
    fn of(name: &str, problem: &str) -> Self {
        let text = format!("{name} {problem}").into();
        if name.starts_with("redirect_uris") { Self::RedirectUri(text) } else { Self::Field(text) }
    }
}

impl From<MetadataError> for OAuthError {
    fn from(error: MetadataError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// Client metadata whose fields have the right types and lengths.
#[derive(Debug)]
pub(crate) struct ClientMetadata {
    pub(crate) client_id: Option<String>,
    /// A `client_secret` was stated.
    pub(crate) has_secret: bool,
    pub(crate) id_token_signed_response_alg: Option<String>,
    client_name: Option<String>,
    client_uri: Option<String>,
    logo_uri: Option<String>,
    redirect_uris: Vec<String>,
    post_logout_redirect_uris: Vec<String>,
    token_endpoint_auth_method: Option<String>,
    grant_types: Option<Vec<String>>,
    response_types: Vec<String>,
    scope: Option<String>,
    jwks: Option<JwkSet>,
    has_jwks_uri: bool,
    application_type: Option<String>,
    dpop_bound_access_tokens: bool,
}

/// The members of the object. A member that is `null` counts as absent.
struct Fields(Map<String, Value>);

impl Fields {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> Result<Option<String>, MetadataError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| MetadataError::of(name, "must be a string"))?;
        bounded(name, text).map(Some)
    }

    fn flag(&self, name: &str) -> Result<bool, MetadataError> {
        let Some(value) = self.get(name) else { return Ok(false) };
        value.as_bool().ok_or_else(|| MetadataError::of(name, "must be true or false"))
    }

    fn list(&self, name: &str) -> Result<Option<Vec<String>>, MetadataError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let unfit = || MetadataError::of(name, "must be an array of strings");
        let list = value.as_array().ok_or_else(unfit)?;
        if list.len() > MAX_ENTRIES {
            return Err(MetadataError::of(name, "must not have more than 32 entries"));
        }
        let entry = |(at, value): (usize, &Value)| {
            bounded(&format!("{name}[{at}]"), value.as_str().ok_or_else(unfit)?)
        };
        list.iter().enumerate().map(entry).collect::<Result<_, _>>().map(Some)
    }

    fn jwks(&self) -> Result<Option<JwkSet>, MetadataError> {
        let Some(value) = self.get("jwks") else { return Ok(None) };
        let set: JwkSet = serde_json::from_value(value.clone())
            .map_err(|_| MetadataError::field("jwks must be a set of JSON Web Keys"))?;
        let verifies =
            |key: &crate::keys::Jwk| !key.has_private_part() && VerifyingKey::from_jwk(key).is_ok();
        if set.keys.len() > MAX_KEYS || !set.keys.iter().all(verifies) {
            return Err(MetadataError::field(
                "jwks must hold at most 16 keys, all of them public signature keys",
            ));
        }
        Ok(Some(set))
    }
}

/// `text`, when it is not too long and has no control characters.
fn bounded(name: &str, text: &str) -> Result<String, MetadataError> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(MetadataError::of(name, "must not be longer than 2048 bytes"));
    }
    if text.chars().any(char::is_control) {
        return Err(MetadataError::of(name, "must not have control characters"));
    }
    Ok(text.to_owned())
}

impl ClientMetadata {
    /// Reads a JSON object.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, MetadataError> {
        if body.len() > MAX_METADATA_BYTES {
            return Err(MetadataError::field("the metadata must not be longer than 16 KiB"));
        }
        let fields = json::object(body).map(Fields).map_err(|why| match why {
            NotAnObject::Malformed => MetadataError::field("the metadata must be a JSON object"),
            NotAnObject::Repeated => MetadataError::field("the metadata must not name a member twice"),
        })?;
        if fields.get("software_statement").is_some() {
            return Err(MetadataError::SoftwareStatement);
        }
        let metadata = Self {
            client_id: fields.text("client_id")?,
            has_secret: fields.get("client_secret").is_some(),
            id_token_signed_response_alg: fields.text("id_token_signed_response_alg")?,
            client_name: fields.text("client_name")?,
            client_uri: fields.text("client_uri")?,
            logo_uri: fields.text("logo_uri")?,
            redirect_uris: fields.list("redirect_uris")?.unwrap_or_default(),
            post_logout_redirect_uris: fields.list("post_logout_redirect_uris")?.unwrap_or_default(),
            token_endpoint_auth_method: fields.text("token_endpoint_auth_method")?,
            grant_types: fields.list("grant_types")?,
            response_types: fields.list("response_types")?.unwrap_or_default(),
            scope: fields.text("scope")?,
            jwks: fields.jwks()?,
            has_jwks_uri: fields.get("jwks_uri").is_some(),
            application_type: fields.text("application_type")?,
            dpop_bound_access_tokens: fields.flag("dpop_bound_access_tokens")?,
        };
        if metadata.client_name.as_ref().is_some_and(|name| name.chars().count() > MAX_NAME_CHARS) {
            return Err(MetadataError::field("client_name must not be longer than 200 characters"));
        }
        Ok(metadata)
    }

    /// Returns the client that the metadata describes, with `default_method` when it names none.
    pub(crate) fn into_client(
        self,
        id: String,
        default_method: AuthMethod,
        origin: Origin,
    ) -> Result<OAuthClient, MetadataError> {
        let method = self.method(default_method)?;
        let grants = self.grants(method)?;
        self.check_redirect_uris(&grants)?;
        self.check_other_uris(origin)?;
        let scopes = self.scopes()?;
        Ok(OAuthClient {
            // A name that shows nothing is no name.
            name: self
                .client_name
                .map(|name| pages::plain(&name, 80))
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| "An unnamed client".to_owned()),
            id,
            redirect_uris: self.redirect_uris,
            post_logout_redirect_uris: self.post_logout_redirect_uris,
            method,
            secret: None,
            grants,
            scopes,
            jwks: self.jwks,
            client_uri: self.client_uri,
            introspects: None,
            dpop_bound: self.dpop_bound_access_tokens,
            origin,
            management: None,
            issued_s: 0,
            used_s: 0,
        })
    }

    fn method(&self, default: AuthMethod) -> Result<AuthMethod, MetadataError> {
        let method = match self.token_endpoint_auth_method.as_deref() {
            None => default,
            Some(text) => AuthMethod::parse(text)
                .ok_or_else(|| MetadataError::field("token_endpoint_auth_method is not supported"))?,
        };
        if self.jwks.is_some() && self.has_jwks_uri {
            return Err(MetadataError::field("jwks and jwks_uri exclude each other"));
        }
        if method == AuthMethod::PrivateKeyJwt && self.jwks.is_none() {
            return Err(MetadataError::field("private_key_jwt needs jwks"));
        }
        Ok(method)
    }

    fn grants(&self, method: AuthMethod) -> Result<Vec<String>, MetadataError> {
        let grants = self.grant_types.clone().unwrap_or_else(|| vec!["authorization_code".into()]);
        let known = |grant: &String| match grant.as_str() {
            "authorization_code" | "refresh_token" => true,
            "client_credentials" => method != AuthMethod::None,
            _ => false,
        };
        if !grants.iter().all(known) {
            return Err(MetadataError::field("grant_types holds one that is not supported for this client"));
        }
        if self.response_types.iter().any(|kind| kind != "code") {
            return Err(MetadataError::field("response_types may hold code only"));
        }
        Ok(grants)
    }

    fn check_redirect_uris(&self, grants: &[String]) -> Result<(), MetadataError> {
        let is_web = match self.application_type.as_deref() {
            Some("web") => true,
            None | Some("native") => false,
            Some(_) => return Err(MetadataError::field("application_type must be web or native")),
        };
        if grants.iter().any(|grant| grant == "authorization_code") && self.redirect_uris.is_empty() {
            return Err(MetadataError::of("redirect_uris", "is needed for authorization_code"));
        }
        for (at, uri) in self.redirect_uris.iter().enumerate() {
            let refused = |why: &str| MetadataError::of(&format!("redirect_uris[{at}]"), why);
            let url = redirect_uri::parse(uri).map_err(refused)?;
            if is_web && (redirect_uri::is_loopback_host(&url) || url.scheme() != "https") {
                return Err(refused("must be https and not loopback for a web client"));
            }
        }
        for (at, uri) in self.post_logout_redirect_uris.iter().enumerate() {
            redirect_uri::parse(uri)
                .map_err(|why| MetadataError::of(&format!("post_logout_redirect_uris[{at}]"), why))?;
        }
        Ok(())
    }

    fn check_other_uris(&self, origin: Origin) -> Result<(), MetadataError> {
        for (name, uri) in [("client_uri", &self.client_uri), ("logo_uri", &self.logo_uri)] {
            let Some(uri) = uri else { continue };
            let url = url::Url::parse(uri).map_err(|_| MetadataError::of(name, "must be an address"))?;
            let private = match url.host() {
                Some(url::Host::Ipv4(ip)) => !net::is_public(ip.into()),
                Some(url::Host::Ipv6(ip)) => !net::is_public(ip.into()),
                Some(url::Host::Domain(host)) => host == "localhost" && origin == Origin::Registered,
                None => true,
            };
            let scheme = url.scheme() == "https" || (url.scheme() == "http" && origin == Origin::Document);
            if !scheme || (private && origin == Origin::Registered) {
                return Err(MetadataError::of(name, "must be a public https address"));
            }
        }
        Ok(())
    }

    /// The scopes, each once (RFC 6749 §3.3).
    fn scopes(&self) -> Result<Option<Vec<String>>, MetadataError> {
        let Some(text) = &self.scope else { return Ok(None) };
        let mut scopes: Vec<String> = Vec::new();
        for scope in space_delimited(text) {
            if !is_scope_token(scope) {
                return Err(MetadataError::of("scope", "holds a character that no scope may have"));
            }
            if !scopes.iter().any(|listed| listed == scope) {
                scopes.push(scope.to_owned());
            }
            if scopes.len() > MAX_ENTRIES {
                return Err(MetadataError::of("scope", "must not name more than 32 scopes"));
            }
        }
        Ok(Some(scopes))
    }
}
