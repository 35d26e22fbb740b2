"""A small MCP server on the standard library."""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


def result(message):
    if message["method"] == "initialize":
        return {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "tiny-py", "version": "1"},
        }
    return {"tools": [{"name": "env", "inputSchema": {"type": "object"}}]}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(404 if self.path == "/health" else 405)
        self.end_headers()

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        body = b""
        if "id" in message:
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result(message)}).encode()
        self.send_response(200 if body else 202)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


print("python", sys.version_info.major, flush=True)
HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
