"""The 200 tools that every server of this comparison offers. Run as a program, this file is an MCP server over standard input and output."""

import json
import sys

THINGS = (
    "account alert branch budget campaign contract customer device document invoice "
    "lead meeting order payment product project report shipment ticket user"
).split()
VERBS = "archive count create delete export get list search share update".split()
# Name and description.
TOOLS = [
    (f"{thing}_{verb}", f"{verb.capitalize()} one {thing} of the workspace, or several, with owner and history")
    for thing in THINGS
    for verb in VERBS
]
ID, LIMIT = "Identifier of the record", "Largest number of records"
INPUT = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": ID},
        "limit": {"type": "integer", "description": LIMIT, "default": 10},
    },
    "required": ["id"],
}
OUTPUT = {"type": "object", "additionalProperties": True}


def answer(name, id, limit=10):
    """Returns the result of each tool: its arguments, and a few fields more."""
    return {"tool": name, "id": id, "limit": limit, "owner": "ada@example.com", "open": True}


def serve():
    listed = [{"name": name, "description": text, "inputSchema": INPUT, "outputSchema": OUTPUT} for name, text in TOOLS]
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        params = message.get("params", {})
        match message["method"]:
            case "initialize":
                info = {"name": "tools", "version": "1"}
                body = {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}}
            case "ping":
                body = {"result": {}}
            case "tools/list":
                body = {"result": {"tools": listed}}
            case "tools/call":
                value = answer(params["name"], **params["arguments"])
                content = [{"type": "text", "text": json.dumps(value)}]
                body = {"result": {"content": content, "structuredContent": value}}
            case other:
                body = {"error": {"code": -32601, "message": f"unknown method {other}"}}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **body}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
