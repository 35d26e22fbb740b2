"""Questions of servers of others, answered by the official Python SDK's client of both eras."""

import json
import os
import re
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from mcp import Client, types

GATEWRIGHT = os.environ["GATEWRIGHT"]
TOOLS = os.environ["TOOLS"]
ERAS = ("legacy", "2026-07-28")


class Questions(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls) -> None:
        everything = os.path.join(TOOLS, "@modelcontextprotocol", "server-everything", "dist", "index.js")
        here = os.path.dirname(os.path.abspath(__file__))
        config = {
            "http": {"port": 0},
            "apps": {
                "everything": {"command": os.path.join(TOOLS, ".bin", "node"), "args": [everything, "stdio"]},
                "asks": {"command": os.environ["PYTHON"], "args": [os.path.join(here, "fastmcp_asks.py")]},
                "modern": {"builtin": "everything"},
            },
        }
        cls.config = tempfile.NamedTemporaryFile("w", suffix=".json")
        json.dump(config, cls.config)
        cls.config.flush()
        command = [GATEWRIGHT, "serve", "--config", cls.config.name]
        cls.server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in cls.server.stderr:
            if match := re.search(r"http://\S+/mcp", line):
                cls.url = match.group(0) + "?mode=direct"
                break
        # The pipe must not fill up.
        cls.reader = subprocess.Popen(["cat"], stdin=cls.server.stderr, stdout=subprocess.DEVNULL)
        cls.wait_until_every_app_is_up()

    @classmethod
    def wait_until_every_app_is_up(cls) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(cls.url.split("/mcp")[0] + "/readyz") as response:
                    body = json.load(response)
            except urllib.error.HTTPError as error:
                body = json.load(error)
            if body.get("status") == "ready":
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"the apps are not up: {body}")
            time.sleep(0.1)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.terminate()
        cls.server.wait(30)
        cls.reader.wait(30)
        cls.server.stderr.close()
        cls.config.close()

    def client(self, era: str, asked: list[str], address: str | None = None) -> Client:
        async def elicit(_context, params) -> types.ElicitResult:
            asked.append(params.message)
            fields = params.requested_schema["properties"]
            return types.ElicitResult(action="accept", content={field: "Ada" for field in fields if field in ("name", "value")})

        async def sample(_context, params) -> types.CreateMessageResult:
            asked.append("sampling")
            text = types.TextContent(type="text", text="a sample")
            return types.CreateMessageResult(role="assistant", content=text, model="test")

        return Client(address or self.url, mode=era, elicitation_callback=elicit, sampling_callback=sample)

    async def text(self, client: Client, name: str, arguments: dict) -> str:
        result = await client.call_tool(name, arguments)
        return "\n".join(block.text for block in result.content if block.type == "text")

    async def test_elicitation_of_a_typescript_server(self) -> None:
        for era in ERAS:
            asked: list[str] = []
            async with self.client(era, asked) as client:
                text = await self.text(client, "everything:trigger-elicitation-request", {})
                self.assertIn("Ada", text, era)
                self.assertEqual(len(asked), 1, era)

    async def test_sampling_of_a_typescript_server(self) -> None:
        for era in ERAS:
            asked: list[str] = []
            async with self.client(era, asked) as client:
                text = await self.text(client, "everything:trigger-sampling-request", {"prompt": "hi"})
                self.assertIn("a sample", text, era)
                self.assertEqual(asked, ["sampling"], era)

    async def test_two_questions_of_a_fastmcp_server(self) -> None:
        for era in ERAS:
            asked: list[str] = []
            async with self.client(era, asked) as client:
                self.assertIn("Hello, Ada!", await self.text(client, "asks:greet", {}), era)
                self.assertIn("Ada of Ada", await self.text(client, "asks:order", {}), era)
                self.assertEqual(asked, ["What is your name?", "What would you like?", "How many?"], era)

    async def test_questions_of_a_server_of_the_newer_era(self) -> None:
        for era in ERAS:
            asked: list[str] = []
            async with self.client(era, asked) as client:
                text = await self.text(client, "modern:test_input_required_result_elicitation", {})
                self.assertIn("Hello, Ada!", text, era)
                self.assertEqual(asked, ["What is your name?"], era)

    async def test_questions_through_invoke(self) -> None:
        for era in ERAS:
            asked: list[str] = []
            async with self.client(era, asked, address=self.url.split("?")[0]) as client:
                result = await client.call_tool("codecall:invoke", {"tool": "asks:greet", "input": {}})
                self.assertIn("Hello, Ada!", json.dumps(result.structured_content), era)

    async def test_the_client_of_the_sdk_before(self) -> None:
        expected = {
            "everything:trigger-elicitation-request": "Ada",
            "everything:trigger-sampling-request": "a sample",
            "asks:order": "Ada of Ada",
            "modern:test_input_required_result_multiple_inputs": "a sample Ada, 1 roots",
            "modern:test_input_required_result_multi_round": "Ada likes Ada",
        }
        here = os.path.dirname(os.path.abspath(__file__))
        command = [os.environ["PYTHON1"], os.path.join(here, "questions_sdk1.py"), self.url, *expected]
        printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
        for line, (tool, words) in zip(printed.splitlines(), expected.items(), strict=True):
            self.assertTrue(line.startswith(tool) and words in line, line)

    async def test_a_client_that_cannot_be_asked_hears_what_is_asked(self) -> None:
        for era in ERAS:
            async with Client(self.url, mode=era) as client:
                result = await client.call_tool("modern:test_input_required_result_elicitation", {})
                self.assertTrue(result.is_error, era)
                self.assertIn("What is your name?", result.content[0].text, era)


if __name__ == "__main__":
    unittest.main()
