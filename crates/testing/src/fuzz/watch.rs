//! What a server shows of its state: lists and the first resources, read before and after the calls of a tool that only reads.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{client::Mcp, protocol::RpcRequest};

/// Resources that are read.
const MOST_READ: usize = 5;

/// The state that a server shows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shown(Vec<(String, Value)>);

impl Shown {
    /// Reads lists and resources. What is not answered within `timeout` is left out.
    pub(super) async fn read(mcp: &Mcp, timeout: Duration) -> Self {
        let ask = async |method: &str, params: Value| {
            let asked = mcp.raw().request(RpcRequest::new(method, params).id(format!("shown {method}")));
            let response = tokio::time::timeout(timeout, asked).await.ok()?.ok()?;
            response.result().cloned()
        };
        let mut shown = Vec::new();
        for (capability, method) in
            [("tools", "tools/list"), ("resources", "resources/list"), ("prompts", "prompts/list")]
        {
            if mcp.has_capability(capability)
                && let Some(result) = ask(method, json!({})).await
            {
                let uris = result["resources"].as_array().into_iter().flatten();
                let uris: Vec<_> =
                    uris.filter_map(|one| one["uri"].as_str()).take(MOST_READ).map(str::to_owned).collect();
                shown.push((method.to_owned(), result));
                for uri in uris {
                    if let Some(result) = ask("resources/read", json!({"uri": uri})).await {
                        shown.push((format!("resources/read {uri}"), result));
                    }
                }
            }
        }
        mcp.trace().clear();
        Self(shown)
    }

    /// The first part that differs.
    pub(super) fn difference(&self, later: &Self) -> Option<String> {
        let names = |shown: &Self| shown.0.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        if names(self) != names(later) {
            return Some("the list of resources".to_owned());
        }
        let changed = self.0.iter().zip(&later.0).find(|(before, after)| before.1 != after.1);
        changed.map(|((name, _), _)| format!("the answer to `{name}`"))
    }
}
