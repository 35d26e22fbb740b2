//! Paths that speak MCP: those of the main endpoint, and those of the others, which are one segment below them.

use std::sync::Arc;

use gatewright_core::{EndpointName, Endpoints};
use http::Request;

/// Path of the HTTP+SSE transport that opens a session.
pub(crate) const SSE: &str = "/sse";
/// Path of the HTTP+SSE transport that takes messages.
pub(crate) const MESSAGES: &str = "/messages";

/// The paths of one server.
#[derive(Debug)]
pub(crate) struct McpPaths {
    main: String,
    endpoints: Arc<Endpoints>,
}

/// A path that speaks MCP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct McpPath {
    /// `true` for Streamable HTTP.
    pub(crate) is_streamable: bool,
    /// Name of the endpoint; none for the main one.
    pub(crate) endpoint: Option<Arc<str>>,
}

impl McpPaths {
    pub(crate) fn new(main: &str, endpoints: Arc<Endpoints>) -> Self {
        Self { main: main.to_owned(), endpoints }
    }

    /// The path of the main endpoint.
    pub(crate) fn main(&self) -> &str {
        &self.main
    }

    /// The path of the endpoint `name`.
    pub(crate) fn of(&self, name: &str) -> String {
        format!("{}/{name}", self.main.trim_end_matches('/'))
    }

    /// Addresses of the endpoints beside the main one, with their names.
    pub(crate) fn all(&self) -> Vec<(Arc<str>, String)> {
        let endpoints = self.endpoints.all().into_iter();
        endpoints.map(|endpoint| (endpoint.name.clone(), self.of(&endpoint.name))).collect()
    }

    /// The endpoint at `path`; none if `path` does not speak MCP.
    pub(crate) fn find(&self, path: &str) -> Option<McpPath> {
        let below = |base: &str| {
            if path == base {
                return Some(None);
            }
            let name = path.strip_prefix(base.trim_end_matches('/'))?.strip_prefix('/')?;
            self.endpoints.get(name).map(|endpoint| Some(endpoint.name.clone()))
        };
        let streamable = below(&self.main).map(|endpoint| McpPath { is_streamable: true, endpoint });
        let other = || [SSE, MESSAGES].into_iter().find_map(below);
        streamable.or_else(|| other().map(|endpoint| McpPath { is_streamable: false, endpoint }))
    }
}

/// Notes on a request at which endpoint it came.
pub(crate) fn note<B>(request: &mut Request<B>, path: Option<&McpPath>) {
    if let Some(name) = path.and_then(|path| path.endpoint.clone()) {
        request.extensions_mut().insert(EndpointName(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_one_segment_below_the_main_one_and_only_while_it_is_configured() {
        let configs = [("support".to_owned(), Default::default())].into();
        for main in ["/mcp", "/mcp/"] {
            let paths = McpPaths::new(main, Arc::new(Endpoints::new(&configs)));
            let found = |path: &str| paths.find(path).map(|found| (found.is_streamable, found.endpoint));
            assert_eq!(found(main), Some((true, None)));
            assert_eq!(found("/mcp/support"), Some((true, Some("support".into()))));
            assert_eq!(found("/sse"), Some((false, None)));
            assert_eq!(found("/messages/support"), Some((false, Some("support".into()))));
            for path in ["/mcp/other", "/mcp/support/", "/mcp/support/x", "/mcpsupport", "/support", "/", ""]
            {
                assert_eq!(found(path), None, "{main} {path}");
            }
            assert_eq!(paths.all(), [("support".into(), "/mcp/support".to_owned())]);
        }
    }
}
