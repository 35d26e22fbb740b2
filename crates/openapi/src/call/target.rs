//! URLs of requests: a server, a path and a query.

use std::collections::BTreeMap;

use gatewright_core::rmcp::model::JsonObject;
use percent_encoding::{AsciiSet, CONTROLS};
use serde_json::Value;
use url::Url;

use super::{
    bounded::{BoundedText, Limit},
    encode,
    failure::CallError,
    form,
    media::is_json,
    names::{FieldWriter, NameOf, TakenNames},
};
use crate::{Location, Operation, PathPart, Server};

/// Variables in the URL of a server.
const MOST_VARIABLES: usize = 32;

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

impl Places {
    /// The server of `operation`: `baseUrl`, whatever the document names, or else the first of the document.
    ///
    /// # Errors
    /// There is none, or its URL cannot be read.
    pub(crate) fn base(&self, operation: &Operation) -> Result<Url, CallError> {
        if let Some(base) = &self.base {
            return Ok(base.clone());
        }
        let text = match operation.servers.first() {
            Some(server) => self.filled(server).map_err(CallError::NoServer)?,
            None => "/".to_owned(),
        };
        let parsed = match &self.document {
            Some(document) => document.join(&text),
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
        Ok(url)
    }

    /// The URL of a server with its variables filled in.
    fn filled(&self, server: &Server) -> Result<String, String> {
        let mut url = BoundedText::new(Limit::SERVER);
        let too_long = |_| {
            format!(
                "the document names a server whose address is longer than {} bytes with its variables filled in",
                super::bounded::SERVER
            )
        };
        let mut rest = &*server.url;
        let mut count = 0;
        while let Some((before, name)) = rest.split_once('{') {
            let (name, after) = name.split_once('}').ok_or_else(|| without_value(rest))?;
            count += 1;
            if count > MOST_VARIABLES {
                return Err(format!(
                    "the document names a server whose address has more than {MOST_VARIABLES} variables"
                ));
            }
            url.push(before).map_err(too_long)?;
            url.push(self.value(server, name)?).map_err(too_long)?;
            rest = after;
        }
        url.push(rest).map_err(too_long)?;
        let url = url.into_text();
        if url.contains('{') { Err(without_value(&url)) } else { Ok(url) }
    }

    /// The value of a variable. Some documents use variables that they do not declare.
    fn value<'s>(&'s self, server: &'s Server, name: &str) -> Result<&'s str, String> {
        let configured = self.variables.get(name).map(String::as_str);
        let Some(variable) = server.variables.iter().find(|variable| &*variable.name == name) else {
            return configured.ok_or_else(|| without_value(&server.url));
        };
        let allowed = &variable.allowed;
        match configured {
            Some(value) if !allowed.is_empty() && !allowed.iter().any(|one| &**one == value) => {
                let allowed = allowed.join(", ");
                Err(format!("`serverVariables.{}` must be one of {}", clip(name), clip(&allowed)))
            }
            Some(value) => Ok(value),
            None => Ok(&variable.default),
        }
    }
}

fn without_value(url: &str) -> String {
    format!(
        "the document names the server `{}`, whose variables have no value; set `serverVariables`",
        clip(url)
    )
}

fn clip(text: &str) -> &str {
    &text[..text.floor_char_boundary(200)]
}

/// The URL of a request. Query fields of credentials come from `more`, escaped.
///
/// # Errors
/// A parameter is missing or cannot be written in its place, or the URL would be too long.
pub(crate) fn url(
    base: &Url,
    operation: &Operation,
    arguments: &JsonObject,
    more: &[(String, String)],
    taken: &TakenNames,
) -> Result<Url, CallError> {
    let mut whole = BoundedText::new(Limit::URL);
    whole.push(&base.origin().ascii_serialization())?;
    let start = whole.len();
    whole.push(base.path().trim_end_matches('/'))?;
    let begins = |part: &PathPart| matches!(part, PathPart::Literal(text) if text.starts_with('/'));
    if whole.len() == start && !operation.path.first().is_some_and(begins) {
        whole.push("/")?;
    }
    for part in &operation.path {
        match part {
            PathPart::Literal(text) => whole.push_escaped(text, PATH)?,
            PathPart::Parameter(at) => {
                let parameter = &operation.parameters[*at];
                let value = arguments.get(&*parameter.argument);
                let value = value.ok_or_else(|| CallError::argument(&parameter.argument, "is required"))?;
                encode::path(parameter, value, &mut whole)
                    .map_err(|problem| CallError::argument(&parameter.argument, problem))?;
            }
        }
    }
    let parts = whole.since(start).split(|byte| *byte == b'/').count();
    let end = whole.len();
    whole.push("?")?;
    query(operation, arguments, more, &mut FieldWriter::new(&mut whole, "&", taken))?;
    if whole.len() == end + 1 {
        whole.truncate(end);
    }
    let url = Url::parse(&whole.into_text())
        .map_err(|_| CallError::NoServer("the address of the request cannot be read".to_owned()))?;
    // No value has moved the request anywhere else.
    if url.origin() != base.origin() || url.path().split('/').count() != parts || url.fragment().is_some() {
        return Err(CallError::argument("path", "must not change where the request goes"));
    }
    // A URL escapes characters that the text may have.
    Limit::URL.check(url.as_str().len())?;
    Ok(url)
}

fn query(
    operation: &Operation,
    arguments: &JsonObject,
    more: &[(String, String)],
    out: &mut FieldWriter<'_>,
) -> Result<(), CallError> {
    for parameter in &operation.parameters {
        let is_query = matches!(parameter.location, Location::Query | Location::QueryString);
        let Some(value) = arguments.get(&*parameter.argument).filter(|_| is_query) else {
            if is_query && parameter.required {
                return Err(CallError::argument(&parameter.argument, "is required"));
            }
            continue;
        };
        let written = match parameter.location {
            Location::QueryString => whole_query(parameter.content.as_deref(), value, out),
            _ => form::query(parameter, value, out),
        };
        written.map_err(|problem| CallError::argument(&parameter.argument, problem))?;
    }
    for (name, value) in more {
        let put = |text| move |out: &mut BoundedText| out.push(text);
        out.field(NameOf::Document, put(name), put(value)).map_err(CallError::TooLong)?;
    }
    Ok(())
}

/// Writes the whole query in a media type (OpenAPI 3.2, `in: querystring`).
fn whole_query(content: Option<&str>, value: &Value, out: &mut FieldWriter<'_>) -> Result<(), String> {
    let spelling = form::Spelling { style: crate::Style::Form, explode: true, allow_reserved: false };
    match (content, value) {
        (_, Value::Null) => Ok(()),
        (Some(media_type), value) if is_json(media_type) => out.text(&value.to_string()),
        (_, Value::Object(fields)) => fields
            .iter()
            .try_for_each(|(name, value)| form::fields(NameOf::Caller, name, value, spelling, out)),
        (_, value) => out.text(&encode::text(value)),
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::{ResponseShape, ServerVariable};

    fn base(url: &str, variables: &[(&str, &str)]) -> Result<Url, CallError> {
        let variables = variables.iter().map(|(name, default)| ServerVariable {
            name: (*name).into(),
            default: (*default).into(),
            allowed: Box::default(),
        });
        let operation = Operation {
            links: false,
            tool: "x".into(),
            id: None,
            method: Method::GET,
            path: Box::default(),
            parameters: Box::default(),
            body: None,
            responses: Box::default(),
            shape: ResponseShape::Unknown,
            security: Default::default(),
            servers: [Server { url: url.into(), variables: variables.collect() }].into(),
            own_servers: false,
            idempotent: true,
        };
        Places::default().base(&operation)
    }

    #[test]
    fn variables_of_a_server_cannot_multiply() {
        let long = "x".repeat(100_000);
        let error = base(&format!("https://a.example/{}", "{a}".repeat(30)), &[("a", &long)]).unwrap_err();
        assert!(error.to_string().contains("longer than 8192 bytes"), "{error}");
        let error = base(&format!("https://a.example/{}", "{a}".repeat(40)), &[("a", "x")]).unwrap_err();
        assert!(error.to_string().contains("more than 32 variables"), "{error}");
        let error = base("https://{a}.example", &[("a", "{b}"), ("b", "c")]).unwrap_err();
        assert!(error.to_string().contains("have no value"), "{error}");
        assert_eq!(
            base("https://{a}.example/{b}", &[("a", "c"), ("b", "d")]).unwrap().as_str(),
            "https://c.example/d"
        );
    }
}
