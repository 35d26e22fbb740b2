"""Measures the CPU time per request of Gatewright and of its peers, in turns, and prints one Markdown table. Started by `run`.

CPU time is user and system time of a server's process and all its descendants, those that ended included.
"""

import contextlib
import datetime
import http.client
import importlib.metadata
import json
import os
import pathlib
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from tools import TOOLS, answer

HERE = pathlib.Path(__file__).parent
PROTOCOL = "2025-06-18"
ROUNDS = int(os.environ.get("ROUNDS", "5"))
# Requests of one round. Those of the first round, which is not counted, warm the servers up.
ROWS = {"tools/call": 500, "search": 300, "execute, no call": 300, "execute, one call": 300, "execute, ten calls in parallel": 100}
CALLS = {"execute, no call": 0, "execute, one call": 1, "execute, ten calls in parallel": 10}
HITS = 5
TICK = os.sysconf("SC_CLK_TCK")


# --- processes


def ended(pid):
    """Returns the CPU seconds of descendants that ended and were waited for."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / TICK


def descendants(root):
    """Returns `root` and the processes below it."""
    children = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(folder.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def own(pid):
    """Returns the CPU seconds of one process, threads that ended included; more exact than the ticks of /proc/PID/stat."""
    return time.clock_gettime(~pid << 3 | 2)  # the clock id that clock_getcpuclockid(3) returns on Linux


def cpu(root):
    """Returns the CPU seconds of `root` with everything below it, and of that the part of the stdio server."""
    total, upstream = 0.0, 0.0
    for pid in descendants(root):
        with contextlib.suppress(OSError):  # It ended meanwhile: its parent has its time.
            spent = own(pid) + ended(pid)
            total += spent
            if b"tools.py" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                upstream += spent
    return total, upstream


# --- client


class Session:
    """An MCP session over one kept-alive connection, one request at a time."""

    def __init__(self, port, path):
        self.port = port
        self.connect()
        self.head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
        self.head += "accept: application/json, text/event-stream\r\n"
        self.id = 0
        info = {"name": "peers", "version": "1"}
        self.request("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": info})
        self.send({"method": "notifications/initialized"})

    def connect(self):
        """Opens another connection: servers close idle ones."""
        self.socket = socket.create_connection(("127.0.0.1", self.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")

    def request(self, method, params):
        """Returns the result, and the bytes of the message it came in."""
        self.id += 1
        for text in self.send({"id": self.id, "method": method, "params": params}):
            message = json.loads(text)
            if message.get("id") == self.id:
                if "result" not in message or message["result"].get("isError"):
                    raise SystemExit(f"{method} {params}: {text}")
                return message["result"], len(text.encode())
        raise SystemExit(f"{method} {params}: no answer")

    def send(self, message):
        """Posts a message in one write, and returns the messages of the answer."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.socket.sendall(f"{self.head}content-length: {len(body)}\r\n\r\n".encode() + body)
        first = self.file.readline()
        if not first:
            raise SystemExit(f"{message}: the server closed the connection")
        status = int(first.split()[1])
        headers = {}
        while line := self.file.readline().strip().decode():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        if headers.get("transfer-encoding") == "chunked":
            content = b""
            while size := int(self.file.readline(), 16):
                content += self.file.read(size)
                self.file.readline()
            self.file.readline()
        else:
            content = self.file.read(int(headers.get("content-length", 0)))
        text = content.decode()
        if status not in (200, 202):
            raise SystemExit(f"{message}: {status} {text}")
        if message["method"] == "initialize":
            self.head += f"mcp-session-id: {headers['mcp-session-id']}\r\nmcp-protocol-version: {PROTOCOL}\r\n"
        if headers.get("content-type", "").startswith("text/event-stream"):
            return [line[5:].strip() for line in text.splitlines() if line.startswith("data:") and line[5:].strip()]
        return [text] if text else []


# --- servers


class Server:
    """A server process, and its names and notations for the rows of the table."""

    def __init__(self, name, command, direct_path="/mcp"):
        self.name = name
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.process = subprocess.Popen([*command, str(port)], cwd=HERE, stdout=sys.stderr)
        try:
            self.wait(port)
            self.session = Session(port, "/mcp")
            # A session that may call tools by name.
            self.direct = self.session if direct_path == "/mcp" else Session(port, direct_path)
            self.list_bytes = self.session.request("tools/list", {})[1]
        except BaseException:
            self.stop()
            raise

    def wait(self, port):
        for _ in range(600):
            if self.process.poll() is not None:
                raise SystemExit(f"{self.name} ended with {self.process.returncode}")
            with contextlib.suppress(OSError):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", "/readyz")
                if connection.getresponse().status in (200, 404):  # 404: the server has no such page
                    return
            time.sleep(0.1)
        raise SystemExit(f"{self.name} did not start within a minute")

    def stop(self):
        """Ends the process and everything below it."""
        below = descendants(self.process.pid)[1:]
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pid in below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def ask(self, row, number):
        """Sends one request of a row. A wrong answer ends the program."""
        thing_verb, text = TOOLS[number * 7 % len(TOOLS)]
        id = f"r{number}"
        if row == "tools/call":
            params = {"name": self.prefix + thing_verb, "arguments": {"id": id, "limit": 3}}
            result, _ = self.direct.request("tools/call", params)
            right = result["structuredContent"] == answer(thing_verb, id, 3)
        elif row == "search":
            thing, verb = thing_verb.split("_")
            result, _ = self.session.request("tools/call", self.search(f"{verb} a {thing}"))
            right = self.prefix + thing_verb in result["content"][0]["text"]
        else:
            calls = CALLS[row]
            result, _ = self.session.request("tools/call", self.execute(self.prefix + thing_verb, id, calls))
            many = [answer(thing_verb, f"{id}-{n}", 3) for n in range(calls)]
            right = self.value(result) == (many if calls > 1 else answer(thing_verb, id, 3) if calls else {"id": id})
        if not right:
            raise SystemExit(f"{self.name}, {row}: wrong answer {result}")


class Gatewright(Server):
    prefix = "peers:"

    def __init__(self, program, folder):
        config = folder / "gatewright.json"
        app = {"command": sys.executable, "args": [str(HERE / "tools.py")]}
        config.write_text(json.dumps({"info": {"name": "peers", "version": "1"}, "apps": {"peers": app}}))
        command = [program, "serve", "--log-level", "warn", "--config", str(config), "--port"]
        super().__init__("Gatewright before a stdio server", command, "/mcp?mode=direct")

    def search(self, query):
        return {"name": "codecall:search", "arguments": {"query": query, "topK": HITS}}

    def execute(self, tool, id, calls):
        one = f"return await callTool('{tool}', {{ id: '{id}', limit: 3 }});"
        many = (
            f"const calls = Array.from({{ length: {calls} }}, (_, n) => () => callTool('{tool}', {{ id: `{id}-${{n}}`, limit: 3 }}));"
            "return await __safe_parallel(calls);"
        )
        script = many if calls > 1 else one if calls else f"return {{ id: '{id}' }};"
        return {"name": "codecall:execute", "arguments": {"script": script}}

    def value(self, result):
        return json.loads(result["content"][0]["text"])["result"]


class FastMcp(Server):
    prefix = ""

    def __init__(self):
        super().__init__(f"FastMCP {importlib.metadata.version('fastmcp')}", [sys.executable, str(HERE / "fastmcp_server.py")])

    def search(self, query):
        return {"name": "search", "arguments": {"query": query, "limit": HITS}}

    def execute(self, tool, id, calls):
        one = f"return await call_tool('{tool}', {{'id': '{id}', 'limit': 3}})"
        many = (
            "import asyncio\n"
            f"calls = [call_tool('{tool}', {{'id': f'{id}-{{n}}', 'limit': 3}}) for n in range({calls})]\n"
            "return await asyncio.gather(*calls)"
        )
        code = many if calls > 1 else one if calls else f"return {{'id': '{id}'}}"
        return {"name": "execute", "arguments": {"code": code}}

    def value(self, result):
        return json.loads(result["content"][0]["text"])


# --- measurement


def measure(servers):
    """Returns for each row and server the (total, stdio server) milliseconds of each round, all servers in turns."""
    measured = {(row, server): [] for row in ROWS for server in servers}
    for round in range(ROUNDS + 1):
        for row, requests in ROWS.items():
            # In reverse order in every second round.
            for server in servers if round % 2 else servers[::-1]:
                server.session.connect()
                server.direct.connect()
                before = cpu(server.process.pid)
                for number in range(requests):
                    server.ask(row, round * requests + number)
                time.sleep(0.1)  # until processes that ended are waited for, and next workers are ready
                after = cpu(server.process.pid)
                if round:
                    measured[row, server].append([(b - a) * 1000 / requests for a, b in zip(before, after)])
    return measured


def table(measured, gateway, peers):
    print("| CPU per request, ms | " + " | ".join([gateway.name, "the stdio server's part", *(peer.name for peer in peers)]) + " |")
    print("|---|" + "---|" * (2 + len(peers)))
    for row in ROWS:
        total, upstream = (statistics.median(column) for column in zip(*measured[row, gateway]))
        cells = [f"{total:.3f}", f"{upstream:.3f}"]
        for peer in peers:
            spent = statistics.median(each for each, _ in measured[row, peer])
            cells.append(f"{spent:.2f} ({spent / total:.1f}x)")
        print(f"| {row} | " + " | ".join(cells) + " |")
    print("| `tools/list`, bytes | " + " | ".join([f"{gateway.list_bytes:,}", "", *(f"{peer.list_bytes:,}" for peer in peers)]) + " |")
    print()
    for server in [gateway, *peers]:
        worst, row = max((spread([each for each, _ in measured[row, server]]), row) for row in ROWS)
        print(f"{server.name}: rounds differ from the median by at most {worst:.0%} ({row}).")


def spread(values):
    middle = statistics.median(values)
    return max(abs(each - middle) for each in values) / middle


def main(program):
    program = pathlib.Path(program).resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    versions = [subprocess.check_output([program, "--version"], text=True).strip()]
    versions[0] += " (debug build)" if program.parent.name == "debug" else ""
    versions += [f"{name} {importlib.metadata.version(name)}" for name in ("fastmcp", "mcp", "pydantic-monty", "uvicorn")]
    versions.append(f"Python {platform.python_version()}")
    load = os.getloadavg()[0]
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = []
        for start in (lambda: Gatewright(program, folder), FastMcp):
            servers.append(start())
            stack.callback(servers[-1].stop)
        measured = measure(servers)
        print(f"{datetime.date.today()}: {', '.join(versions)}; {os.cpu_count()} cores, load {load:.1f} at the start;")
        print(f"{len(TOOLS)} tools, sessions of MCP {PROTOCOL}, medians of {ROUNDS} round(s) of {', '.join(map(str, ROWS.values()))} requests.\n")
        table(measured, servers[0], servers[1:])


main(*sys.argv[1:])
