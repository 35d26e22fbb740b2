"""The official Python SDK's client, over HTTP and stdio."""

import os
import re
import subprocess
import tempfile
import unittest

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

GATEWRIGHT = os.environ["GATEWRIGHT"]
META = ["codecall:search", "codecall:describe", "codecall:execute", "codecall:invoke"]


class PythonSdk(unittest.IsolatedAsyncioTestCase):
    async def check_meta_tools(self, session: ClientSession) -> None:
        listed = await session.list_tools()
        self.assertEqual([tool.name for tool in listed.tools], META)

        async def call(name: str, arguments: dict) -> dict:
            result = await session.call_tool(name, arguments)
            return getattr(result, "structured_content", None) or result.structuredContent

        found = await call("codecall:search", {"query": "list users"})
        self.assertEqual(found["tools"][0]["name"], "crm:users_list")
        described = await call("codecall:describe", {"toolNames": ["crm:users_list"]})
        self.assertEqual(described["tools"][0]["appId"], "crm")
        script = "return (await callTool('crm:users_list', { limit: 2 })).items.length"
        executed = await call("codecall:execute", {"script": script})
        self.assertEqual((executed["status"], executed["result"]), ("ok", 2))
        invoked = await call("codecall:invoke", {"tool": "crm:users_list", "input": {"limit": 1}})
        self.assertEqual(invoked["status"], "ok")

    async def test_lists_and_calls_over_http(self) -> None:
        try:
            from mcp.client.streamable_http import streamable_http_client as connect
        except ImportError:
            from mcp.client.streamable_http import streamablehttp_client as connect

        server = subprocess.Popen([GATEWRIGHT, "demo", "--port", "0"], stdout=subprocess.PIPE, text=True)
        try:
            url = None
            for line in server.stdout:
                if match := re.search(r"MCP endpoint\s+(\S+)", line):
                    url = match.group(1)
                    break
            self.assertIsNotNone(url)
            async with connect(url) as streams, ClientSession(streams[0], streams[1]) as session:
                await session.initialize()
                await self.check_meta_tools(session)
        finally:
            server.terminate()
            server.wait(15)
            server.stdout.close()

    async def test_lists_and_calls_over_stdio(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as config:
            config.write("apps:\n  crm: { builtin: crm }\n")
            config.flush()
            command = StdioServerParameters(command=GATEWRIGHT, args=["serve", "--stdio", "--config", config.name])
            async with stdio_client(command) as streams, ClientSession(*streams) as session:
                await session.initialize()
                await self.check_meta_tools(session)


if __name__ == "__main__":
    unittest.main()
