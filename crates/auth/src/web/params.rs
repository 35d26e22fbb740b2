//! Parameters of a request, from its query or its form.

use std::{collections::BTreeMap, time::Duration};

use axum::body::{Body, to_bytes};
use gatewright_core::BodyTimeout;
use http::{HeaderMap, HeaderName, StatusCode, header, request::Parts};

use crate::error::OAuthError;
use crate::{error_codes::Code, scopes::space_delimited};

const MAX_BODY_BYTES: usize = 64 * 1024;
const MAX_STATE_BYTES: usize = 4096;
/// Values of `resource`. A grant is for one.
const MAX_RESOURCES: usize = 8;
/// Longest wait for a body where the server sets none (`http.bodyReadTimeout`).
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Parameters by name. Only `resource` and the boxes of the consent form may occur more than once.
#[derive(Debug, Default, Clone)]
pub(crate) struct Params {
    single: BTreeMap<String, String>,
    /// Values of `resource`, in order.
    pub(crate) resources: Vec<String>,
    /// Values of `grant_scope`, the ticked boxes of the consent form.
    pub(crate) granted_scopes: Vec<String>,
    /// Names of other parameters that occur more than once.
    pub(crate) repeated: Vec<String>,
}

impl Params {
    /// Parses a query or a form.
    ///
    /// # Errors
    /// `invalid_request` for bytes that are not UTF-8: decoded, they would be other ones than were sent. `invalid_target` for more than 8 resources.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, OAuthError> {
        let mut params = Self::default();
        for (name, value) in url::form_urlencoded::parse(text) {
            // The decoder puts this character in the place of such bytes; nobody sends it on purpose.
            if [&name, &value].iter().any(|text| text.contains(char::REPLACEMENT_CHARACTER)) {
                return Err(OAuthError::invalid_request("a parameter is not UTF-8"));
            }
            // An empty value counts as omitted (RFC 6749 §3.1).
            if value.is_empty() {
                continue;
            }
            match &*name {
                "resource" if params.resources.len() == MAX_RESOURCES => {
                    return Err(OAuthError::new(Code::InvalidTarget, "more than 8 resources are named"));
                }
                "resource" => params.resources.push(value.into_owned()),
                "grant_scope" => params.granted_scopes.push(value.into_owned()),
                _ => {
                    if params.single.insert(name.clone().into_owned(), value.into_owned()).is_some() {
                        params.repeated.push(name.into_owned());
                    }
                }
            }
        }
        Ok(params)
    }

    /// Returns the parameters of the query.
    ///
    /// # Errors
    /// As [`Params::parse`].
    pub(crate) fn of_query(parts: &Parts) -> Result<Self, OAuthError> {
        Self::parse(parts.uri.query().unwrap_or_default().as_bytes())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.single.get(name).map(String::as_str)
    }

    /// Returns the value of `name`, or `invalid_request` with the text `missing`.
    pub(crate) fn require(&self, name: &'static str, missing: &'static str) -> Result<&str, OAuthError> {
        self.get(name).ok_or_else(|| OAuthError::invalid_request(missing))
    }

    /// Returns the `state`, which goes back to the client as it came; `None` when there is none, or more than one.
    ///
    /// # Errors
    /// `invalid_request` for one that is too long or contains control characters (RFC 6749 appendix A.5).
    pub(crate) fn state(&self) -> Result<Option<&str>, OAuthError> {
        match self.get("state").filter(|_| !self.is_repeated("state")) {
            Some(state) if state.len() > MAX_STATE_BYTES => {
                Err(OAuthError::invalid_request("The state is too long."))
            }
            Some(state) if state.contains(char::is_control) => {
                Err(OAuthError::invalid_request("The state contains control characters."))
            }
            state => Ok(state),
        }
    }

    /// Returns `true` if `prompt` contains `value` (OpenID Connect Core §3.1.2.1).
    pub(crate) fn has_prompt(&self, value: &str) -> bool {
        self.prompts().any(|prompt| prompt == value)
    }

    /// Returns the values of `prompt`.
    pub(crate) fn prompts(&self) -> impl Iterator<Item = &str> {
        space_delimited(self.get("prompt").unwrap_or_default())
    }

    pub(crate) fn is_repeated(&self, name: &str) -> bool {
        self.repeated.iter().any(|repeated| repeated == name)
    }

    /// Returns the parameters with one of `names`, and `resource`.
    pub(crate) fn only(&self, names: &[&str]) -> Self {
        let single = self.single.iter().filter(|(name, _)| names.contains(&name.as_str()));
        Self {
            single: single.map(|(name, value)| (name.clone(), value.clone())).collect(),
            resources: self.resources.clone(),
            ..Self::default()
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.single.insert(name.to_owned(), value.to_owned());
    }

    /// Returns the parameters as a form, to be stored.
    pub(crate) fn to_text(&self) -> String {
        let mut out = url::form_urlencoded::Serializer::new(String::new());
        out.extend_pairs(&self.single);
        out.extend_pairs(self.resources.iter().map(|value| ("resource", value)));
        out.finish()
    }
}

/// Reads a body of at most 64 KiB within the time that the server sets, or ten seconds.
pub(crate) async fn read_body(parts: &Parts, body: Body) -> Result<Vec<u8>, OAuthError> {
    let refused = |status, text| OAuthError::new(Code::InvalidRequest, text).with_status(status);
    let timeout = parts.extensions.get::<BodyTimeout>().map_or(BODY_TIMEOUT, |timeout| timeout.0);
    match tokio::time::timeout(timeout, to_bytes(body, MAX_BODY_BYTES)).await {
        Ok(Ok(bytes)) => Ok(bytes.to_vec()),
        Ok(Err(_)) => Err(refused(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large")),
        Err(_) => Err(refused(StatusCode::REQUEST_TIMEOUT, "the body came too slowly")),
    }
}

/// Returns whether the body is of this type, whatever the parameters of the type.
pub(crate) fn has_type(parts: &Parts, wanted: &str) -> bool {
    let content_type = single_header(&parts.headers, header::CONTENT_TYPE).unwrap_or_default();
    content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(wanted)
}

/// Reads a form. Its content type must be that of a form, and no parameter may occur twice.
pub(crate) async fn read_form(parts: &Parts, body: Body) -> Result<Params, OAuthError> {
    if !has_type(parts, "application/x-www-form-urlencoded") {
        return Err(OAuthError::invalid_request("the body must be application/x-www-form-urlencoded"));
    }
    let params = Params::parse(&read_body(parts, body).await?)?;
    if !params.repeated.is_empty() {
        return Err(OAuthError::invalid_request("a parameter is repeated"));
    }
    Ok(params)
}

/// Returns the value of a cookie.
pub(crate) fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(found, value)| *found == name && !value.is_empty()).map(|(_, value)| value.to_owned())
}

/// Returns the value of a header that is sent once; `None` when there is none, or more than one.
pub(crate) fn single_header(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Returns the token of an `Authorization: Bearer` header.
pub(crate) fn bearer(parts: &Parts) -> Option<&str> {
    let value = single_header(&parts.headers, header::AUTHORIZATION)?;
    value
        .split_once(' ')
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim())
}
