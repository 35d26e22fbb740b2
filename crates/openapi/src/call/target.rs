//! URLs of requests: a server, a path and a query.

use std::collections::BTreeMap;

use gatewright_core::rmcp::model::JsonObject;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::Value;
use url::Url;

use super::{encode, failure::CallError, media::is_json};
use crate::{Location, Operation, PathPart, Server};

/// Characters that no path has as they are. Escapes of the document stay.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}')
    .add(b'\\')
    .add(b'^')
    .add(b'|');

/// Destination of an app's requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    /// `baseUrl`.
    pub(crate) base: Option<Url>,
    /// The URL of the document, if it has one.
    pub(crate) document: Option<Url>,
    /// Values of server variables.
    pub(crate) variables: BTreeMap<String, String>,
}

/// The server of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Base {
    pub(crate) url: Url,
    /// The gateway's credentials are meant for it.
    pub(crate) is_trusted: bool,
}

impl Places {
    /// The server of `operation`. With `baseUrl`, an operation with a server of its own on another origin goes there without credentials.
    ///
    /// # Errors
    /// There is none, or its URL cannot be read.
    pub(crate) fn base(&self, operation: &Operation) -> Result<Base, CallError> {
        let from = self.base.as_ref().or(self.document.as_ref());
        if let Some(base) = self.base.as_ref().filter(|_| !operation.own_servers) {
            return Ok(Base { url: base.clone(), is_trusted: true });
        }
        let text = match operation.servers.first() {
            Some(server) => self.filled(server).map_err(CallError::NoServer)?,
            None => "/".to_owned(),
        };
        let parsed = match from {
            Some(from) => from.join(&text),
            None => Url::parse(&text),
        };
        let url = parsed.map_err(|_| {
            CallError::NoServer(format!(
                "the document names the server `{}`, which is no whole address",
                clip(&text)
            ))
        })?;
        if !matches!(url.scheme(), "http" | "https")
            || url.host().is_none()
            || !url.username().is_empty()
            || url.password().is_some()
        {
            return Err(CallError::NoServer(
                "the document names a server that is no `https` address".to_owned(),
            ));
        }
        let is_trusted = self.base.as_ref().is_none_or(|base| base.origin() == url.origin());
        Ok(Base { url, is_trusted })
    }

    /// The URL of a server with its variables filled in.
    fn filled(&self, server: &Server) -> Result<String, String> {
        let mut url = server.url.to_string();
        for variable in &server.variables {
            let configured = self.variables.get(&*variable.name);
            let value = configured.map_or(&*variable.default, String::as_str);
            if configured.is_some()
                && !variable.allowed.is_empty()
                && !variable.allowed.iter().any(|one| &**one == value)
            {
                let allowed = variable.allowed.join(", ");
                return Err(format!("`serverVariables.{}` must be one of {}", variable.name, clip(&allowed)));
            }
            url = url.replace(&format!("{{{}}}", variable.name), value);
        }
        // Some documents use variables that they do not declare.
        for (name, value) in &self.variables {
            url = url.replace(&format!("{{{name}}}"), value);
        }
        match url.find('{') {
            Some(_) => Err(format!(
                "the document names the server `{}`, whose variables have no value; set `serverVariables`",
                clip(&url)
            )),
            None => Ok(url),
        }
    }
}

fn clip(text: &str) -> &str {
    &text[..text.floor_char_boundary(200)]
}

/// The URL of a request. Query fields of credentials come from `more`, escaped.
///
/// # Errors
/// A parameter is missing or cannot be written in its place.
pub(crate) fn url(
    base: &Url,
    operation: &Operation,
    arguments: &JsonObject,
    more: &[(String, String)],
) -> Result<Url, CallError> {
    let mut path = base.path().trim_end_matches('/').to_owned();
    for part in &operation.path {
        match part {
            PathPart::Literal(text) => path.push_str(&utf8_percent_encode(text, PATH).to_string()),
            PathPart::Parameter(at) => {
                let parameter = &operation.parameters[*at];
                let value = arguments.get(&*parameter.argument);
                let value = value.ok_or_else(|| CallError::argument(&parameter.argument, "is required"))?;
                let written = encode::path(parameter, value);
                path.push_str(&written.map_err(|problem| CallError::argument(&parameter.argument, problem))?);
            }
        }
    }
    if !path.starts_with('/') {
        path.insert(0, '/');
    }
    let mut whole = format!("{}{path}", base.origin().ascii_serialization());
    let query = query(operation, arguments, more)?;
    if !query.is_empty() {
        whole.push('?');
        whole.push_str(&query);
    }
    let url = Url::parse(&whole)
        .map_err(|_| CallError::NoServer("the address of the request cannot be read".to_owned()))?;
    // No value has moved the request anywhere else.
    if url.origin() != base.origin()
        || url.path().split('/').count() != path.split('/').count()
        || url.fragment().is_some()
    {
        return Err(CallError::argument("path", "must not change where the request goes"));
    }
    Ok(url)
}

fn query(
    operation: &Operation,
    arguments: &JsonObject,
    more: &[(String, String)],
) -> Result<String, CallError> {
    let mut parts: Vec<String> = Vec::new();
    for parameter in &operation.parameters {
        let is_query = matches!(parameter.location, Location::Query | Location::QueryString);
        let Some(value) = arguments.get(&*parameter.argument).filter(|_| is_query) else {
            if is_query && parameter.required {
                return Err(CallError::argument(&parameter.argument, "is required"));
            }
            continue;
        };
        match parameter.location {
            Location::QueryString => parts.extend(whole_query(parameter.content.as_deref(), value)),
            _ => parts.extend(encode::query(parameter, value).into_iter().map(pair)),
        }
    }
    parts.extend(more.iter().cloned().map(pair));
    Ok(parts.join("&"))
}

fn pair((name, value): (String, String)) -> String {
    format!("{name}={value}")
}

/// The whole query in a media type (OpenAPI 3.2, `in: querystring`).
fn whole_query(content: Option<&str>, value: &Value) -> Vec<String> {
    let spelling = encode::Spelling { style: crate::Style::Form, explode: true, allow_reserved: false };
    match (content, value) {
        (_, Value::Null) => Vec::new(),
        (Some(media_type), value) if is_json(media_type) => vec![encode::escaped(&value.to_string())],
        (_, Value::Object(fields)) => {
            let fields = fields.iter().flat_map(|(name, value)| encode::fields(name, value, spelling));
            fields.map(pair).collect()
        }
        (_, value) => vec![encode::escaped(&encode::text(value))],
    }
}
