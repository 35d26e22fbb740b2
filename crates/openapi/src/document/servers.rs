//! Servers of a document, a path or an operation.

use std::sync::Arc;

use super::{context::Context, sources::Node, words};
use crate::{Server, ServerVariable};

/// Most servers, and most values of a variable.
const MOST: usize = 100;
/// Longest URL of a server, and longest value of a variable, in bytes.
const LONGEST: usize = 8 * 1024;

/// The servers of the list `servers` (OpenAPI 3.x); none if it has none.
pub(super) fn read(context: &Context<'_>, servers: Node<'_>) -> Option<Arc<[Server]>> {
    let read = |server: Node<'_>| {
        let Some(url) = server.text("url") else {
            context.find(server, "a server needs `url`");
            return None;
        };
        if url.len() > LONGEST {
            context.find(server, format!("the URL of a server is longer than {LONGEST} bytes"));
            return None;
        }
        let variables = server.get("variables").into_iter().flat_map(Node::members).take(MOST);
        let variables = variables.filter(|(name, variable)| context.is_short(*variable, name));
        let variables = variables.map(|(name, variable)| variable_of(context, name, variable)).collect();
        Some(Server { url: url.into(), variables })
    };
    let servers: Vec<Server> = servers.items().take(MOST).filter_map(read).collect();
    (!servers.is_empty()).then(|| servers.into())
}

fn variable_of(context: &Context<'_>, name: &str, variable: Node<'_>) -> ServerVariable {
    let short = |value: Node<'_>| {
        let text = text(value)?;
        if text.len() <= LONGEST {
            return Some(text);
        }
        context.find(value, format!("a value of a variable is longer than {LONGEST} bytes"));
        None
    };
    let allowed: Box<[Box<str>]> =
        variable.get("enum").into_iter().flat_map(Node::items).take(MOST).filter_map(short).collect();
    let default = variable.get("default").and_then(short).or_else(|| {
        context.find(variable, "a variable of a server needs `default`");
        allowed.first().cloned()
    });
    ServerVariable { name: name.into(), default: default.unwrap_or_default(), allowed }
}

/// A text, or a number that YAML made of one.
fn text(node: Node<'_>) -> Option<Box<str>> {
    match node.value {
        serde_json::Value::String(text) => Some(text.as_str().into()),
        serde_json::Value::Number(number) => Some(number.to_string().into()),
        serde_json::Value::Bool(value) => Some(value.to_string().into()),
        _ => None,
    }
}

/// The `schemes` of a document or an operation (Swagger 2.0), HTTPS first; HTTPS where there are none.
pub(super) fn schemes(node: Node<'_>) -> Vec<&'static str> {
    let has = |scheme: &str| {
        let mut given = node.get("schemes").into_iter().flat_map(Node::items);
        given.any(|one| one.value.as_str() == Some(scheme))
    };
    let known: Vec<_> = ["https", "http"].into_iter().filter(|scheme| has(scheme)).collect();
    if known.is_empty() { vec!["https"] } else { known }
}

/// The servers of `schemes`, `host` and `basePath` (Swagger 2.0). Without a host, the URL is relative to that of the document.
pub(super) fn of_swagger(context: &Context<'_>, schemes: &[&str], root: Node<'_>) -> Arc<[Server]> {
    let base = root.text("basePath").unwrap_or_default().trim_end_matches('/');
    let server = |url: String| Server { url: url.into(), variables: Box::default() };
    if base.len() + root.text("host").map_or(0, str::len) > LONGEST {
        context.find(root, format!("`host` and `basePath` are longer than {LONGEST} bytes"));
        return Arc::default();
    }
    let Some(host) = root.text("host") else {
        return if base.is_empty() { Arc::default() } else { [server(base.to_owned())].into() };
    };
    schemes.iter().map(|scheme| server(format!("{scheme}://{host}{base}"))).collect()
}

/// The title of a document, on one line.
pub(super) fn title(root: Node<'_>) -> String {
    let title = root.get("info").and_then(|info| info.get("title")).and_then(text).unwrap_or_default();
    words::sentences(&words::plain(&title), 200).to_owned()
}
