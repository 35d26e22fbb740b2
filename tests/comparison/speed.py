"""Fifty cases over standard input and output, which share one process: `gatewright test`, the TypeScript SDK's client with node:test, and
FastMCP's client with pytest, in turn. Each time is that of the whole command. Run by `run --speed`."""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import time

TOOLS = pathlib.Path(os.environ["COMPARISON_DIR"])
SERVERS = pathlib.Path(os.environ["SERVERS"])
PYTHON = str(TOOLS / "py/bin/python")
CASES, ROUNDS = 50, 5

# Name, command, tool, name of its argument.
MEASURED = [
    ("a Node server without dependencies", ["node", str(SERVERS / "bank.mjs"), "--stdio"], "say", "text"),
    ("server-everything (TypeScript SDK)", ["node", str(TOOLS / "node_modules/@modelcontextprotocol/server-everything/dist/index.js")], "echo", "message"),
    ("a server with FastMCP", [PYTHON, str(TOOLS / "speed/server.py")], "echo", "message"),
]

SERVER = """from fastmcp import FastMCP
server = FastMCP("echo")
@server.tool
def echo(message: str) -> str:
    return message
server.run(show_banner=False)
"""

TYPESCRIPT = """import assert from "node:assert";
import { after, before, test } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
const { command, tool, argument, cases } = JSON.parse(process.env.SPEED);
const client = new Client({ name: "speed", version: "1" });
before(() => client.connect(new StdioClientTransport({ command: command[0], args: command.slice(1), stderr: "ignore" })));
after(() => client.close());
for (let n = 0; n < cases; n++) {
  test(`case ${n}`, async () => {
    const result = await client.callTool({ name: tool, arguments: { [argument]: `number ${n}` } });
    assert.match(JSON.stringify(result.content), TEXT(n));
  });
}
function TEXT(n) {
  return tool === "say" ? /said/ : new RegExp(`number ${n}`);
}
"""

PYTEST = """import json, os
import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
speed = json.loads(os.environ["SPEED"])
pytestmark = pytest.mark.anyio
@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"
@pytest.fixture(scope="module")
async def client():
    async with Client(StdioTransport(speed["command"][0], speed["command"][1:])) as client:
        yield client
@pytest.mark.parametrize("n", range(speed["cases"]))
async def test_case(client, n):
    result = await client.call_tool(speed["tool"], {speed["argument"]: f"number {n}"})
    assert ("said" if speed["tool"] == "say" else f"number {n}") in result.content[0].text
"""


def suite(command, tool, argument):
    expected = "said" if tool == "say" else "number ${n}"
    cases = ", ".join(f"{{ n: {n} }}" for n in range(CASES))
    step = f"{{ call: {tool}, with: {{ {argument}: \"number ${{n}}\" }}, expect: [toHaveTextContent: {json.dumps(expected)}] }}"
    server = f"{{ command: {command[0]}, args: {json.dumps(command[1:])}, transport: stdio }}"
    return f"server: {server}\ntests: [{{ name: \"case ${{n}}\", cases: [{cases}], steps: [{step}] }}]\n"


def main():
    folder = TOOLS / "speed"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "server.py").write_text(SERVER)
    (folder / "speed.test.mjs").write_text(TYPESCRIPT)
    (folder / "test_speed.py").write_text(PYTEST)
    print(f"{CASES} cases, {ROUNDS} rounds in turn, load {os.getloadavg()[0]:.1f}")
    print(f"{'server':<36} {'runner':<32} {'median':>7} {'slowest':>8}")
    for name, command, tool, argument in MEASURED:
        (folder / "speed.suite.yaml").write_text(suite(command, tool, argument))
        # Of pytest's plugins only what the test needs: those of the other tools take seconds.
        env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "SPEED": json.dumps({"command": command, "tool": tool, "argument": argument, "cases": CASES})}
        runners = {
            "gatewright test": ([os.environ["GATEWRIGHT"], "test", "speed.suite.yaml"], f"{CASES} passed"),
            "TypeScript SDK, node:test": (["node", "--test", "speed.test.mjs"], f"pass {CASES}"),
            "FastMCP's client, pytest": ([PYTHON, "-m", "pytest", "-q", "-p", "anyio", "test_speed.py"], f"{CASES} passed"),
        }
        times = {runner: [] for runner in runners}
        for _ in range(ROUNDS):
            for runner, (words, passed) in runners.items():
                begun = time.monotonic()
                done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
                times[runner].append(time.monotonic() - begun)
                assert done.returncode == 0 and passed in done.stdout, (runner, done.stdout[-2000:], done.stderr[-2000:])
        for runner, all_times in times.items():
            print(f"{name:<36} {runner:<32} {statistics.median(all_times):>6.2f}s {max(all_times):>7.2f}s", flush=True)


main()
