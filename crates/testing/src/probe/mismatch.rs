//! Headers that contradict the body (2026-07-28): whoever decides by the header lets pass what the body says.

use serde_json::{Value, json};

use super::{
    http::{Checks, Sent},
    lifecycle,
};
use crate::fuzz::Severity::Error;

const REVISION: &str = "2026-07-28";

fn request(method: &str, revision: &str, name: Option<&str>) -> Value {
    let mut params = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": revision,
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    if let Some(name) = name {
        params["name"] = name.into();
        params["arguments"] = json!({});
    }
    json!({"jsonrpc": "2.0", "id": 3, "method": method, "params": params})
}

impl Checks<'_> {
    /// Requests of the stateless revision whose headers name another method, tool or revision than their body. Servers without the
    /// revision are left out.
    pub(super) async fn mismatches(&self, url: &str, token: &str) {
        let Ok(mcp) = lifecycle::connect(self.probe, REVISION).await else { return };
        self.probe.end(&mcp).await;
        let post = |body: &Value, method: &str| {
            Sent::post(url, body)
                .header("authorization", token)
                .header("mcp-protocol-version", REVISION)
                .header("mcp-method", method)
        };
        let list = request("tools/list", REVISION, None);
        // Refusals show nothing if the right request is refused, too.
        if !post(&list, "tools/list").send().await.is_ok_and(|answer| answer.status == 200) {
            return;
        }
        let call = request("tools/call", REVISION, Some("gatewright_unknown"));
        let older = request("tools/list", "2025-11-25", None);
        for (what, sent) in [
            ("`Mcp-Method`", post(&list, "prompts/list")),
            ("`Mcp-Name`", post(&call, "tools/call").header("mcp-name", "gatewright_other")),
            ("`MCP-Protocol-Version`", post(&older, "tools/list")),
        ] {
            let told = format!("a request whose {what} contradicts its body is refused with 400 (-32020)");
            self.status(sent, Error, &told, |status| (400..500).contains(&status)).await;
        }
    }
}
