//! A server over stdio whose tools are in a file that tests change.

use std::{fs, path::Path};

use serde_json::{Value, json};

const PROGRAM: &str = r#"
import json, sys
def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()
for line in sys.stdin:
    message = json.loads(line)
    number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if number is None:
        continue
    answer = {"jsonrpc": "2.0", "id": number}
    if method == "initialize":
        answer["result"] = {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "stub", "version": "1"},
        }
    elif method == "tools/list":
        with open(sys.argv[1]) as file:
            answer["result"] = {"tools": json.load(file)}
    elif method == "tools/call":
        if params["name"] == "poke":
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        called = {"name": params["name"], "arguments": params.get("arguments")}
        answer["result"] = {"content": [{"type": "text", "text": json.dumps(called)}], "structuredContent": called}
    elif method == "ping":
        answer["result"] = {}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    send(answer)
"#;

/// A tool `find` of a tenant, with a `description`.
pub fn find(description: &str) -> Value {
    json!({
        "name": "find",
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": {"tenant": {"type": "string"}, "query": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["tenant", "query"],
            "additionalProperties": false,
        },
    })
}

pub fn plain(name: &str) -> Value {
    json!({"name": name, "description": "Plain.", "inputSchema": {"type": "object"}})
}

/// Makes `tools` those of the stub in `folder`, and of those that hear of it: call `poke` to have them read again.
pub fn set(folder: &Path, tools: &[Value]) {
    let all: Vec<Value> = tools.iter().cloned().chain([plain("poke")]).collect();
    let new = folder.join("tools.new");
    fs::write(&new, json!(all).to_string()).unwrap();
    fs::rename(new, folder.join("tools.json")).unwrap();
}

/// The connection of an app to the stub in `folder`, in flow form.
pub fn app(folder: &Path) -> Value {
    fs::write(folder.join("stub.py"), PROGRAM).unwrap();
    json!({"command": "python3", "args": [folder.join("stub.py"), folder.join("tools.json")]})
}
