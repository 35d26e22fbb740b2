"""Tries of other tools, one for each cell of docs/testing/comparison.md that says so. Run by `run`."""

import asyncio
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import urllib.request

from fastmcp import Client, FastMCP
from fastmcp.client.transports import StdioTransport

TOOLS = pathlib.Path(os.environ["COMPARISON_DIR"])
SERVERS = pathlib.Path(os.environ["SERVERS"])
DEFECTS = str(SERVERS / "defects-stdio.mjs")
BIN = TOOLS / "node_modules/.bin"
LISTS = """schema-without-type schema-true schema-unknown-type schema-required-no-list schema-that-nothing-fits
schema-lost-reference description-null output-schema-unknown-type output-schema-of-a-list duplicate-tool""".split()
# The weather service of the server, inside its process.
SERVICE = "--import data:text/javascript,globalThis.fetch=async()=>({ok:true,json:async()=>({degrees:1})})"
FOLDER = pathlib.Path(tempfile.mkdtemp(dir=TOOLS))  # below node_modules of Playwright
TRIES = []


def tries(row, tool, expected):
    """Registers a function as the try of a cell, which returns what `expected` says."""

    def register(function):
        TRIES.append((row, tool, expected, function))
        return function

    return register


def run(*command, **env):
    done = subprocess.run(
        [str(word) for word in command], cwd=FOLDER, env={**os.environ, **env}, capture_output=True, text=True, timeout=180,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode, done.stdout + done.stderr


def file(name, text):
    (FOLDER / name).write_text(text)
    return FOLDER / name


class Front:
    """Serves the server with defects, which speaks standard input and output, over HTTP; and an OpenAPI document whose API lies."""

    def __init__(self, bug=""):
        self.child = subprocess.Popen(
            ["node", DEFECTS], env={**os.environ, "BUG": bug}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        front = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self, status, body):
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0))).decode().replace("\n", " ")
                front.child.stdin.write(body + "\n")
                front.child.stdin.flush()
                self.answer(200, front.child.stdout.readline().encode())

            def do_GET(self):
                schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
                answer = {"description": "one", "content": {"application/json": {"schema": schema}}}
                document = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}}
                document["paths"] = {path: {"get": {"responses": {"200": answer}}} for path in ("/one", "/two")}
                known = {"/openapi.json": document, "/one": {}, "/two": {}}
                status = 200 if self.path in known else 404
                self.answer(status, json.dumps(known.get(self.path, {})).encode())

            do_TRACE = do_HEAD = do_OPTIONS = do_PUT = do_PATCH = do_DELETE = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.child.stdin.close()
        self.child.wait()


def over_http(attempt):
    """How many of the ten broken lists fail an attempt at a URL."""
    failed = 0
    for bug in LISTS:
        with Front(bug) as front:
            failed += attempt(front.url) != 0
    return f"{failed} of {len(LISTS)} fail"


def fastmcp(use, bug="", **env):
    """Uses FastMCP's client, and returns its error."""

    async def inside():
        async with Client(StdioTransport("node", [DEFECTS], env={"PATH": os.environ["PATH"], "BUG": bug, **env})) as client:
            await use(client)

    try:
        asyncio.run(inside())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def inspector(*method, bug="", **env):
    variables = [f"-e{name}={value}" for name, value in {"BUG": bug or "none", **env}.items()]
    return run(BIN / "mcp-inspector", "--cli", *variables, "node", DEFECTS, *method)


def suite(bug, steps, *options):
    text = f"server: {{ command: {DEFECTS}, transport: stdio, env: {{ BUG: {bug!r}, NODE_OPTIONS: {json.dumps(SERVICE)} }} }}\n"
    name = file("one.suite.yaml", f"{text}tests: [{{ name: lists, steps: [{steps}] }}]")
    return run(os.environ["GATEWRIGHT"], "test", name, *options)


PLAYWRIGHT = """const { test, expect } = require("@playwright/test");
const list = async (request) =>
  (await request.post(process.env.URL, { data: { jsonrpc: "2.0", id: 1, method: "tools/list" } })).json();
test("lists", async ({ request }) => {
  const names = (await list(request)).result.tools.map((tool) => tool.name);
  expect(names).toContain("weather");
  if (process.env.TOLD) expect(new Set(names).size).toBe(names.length);
});
"""


def playwright(text, *options, **env):
    file("one.spec.js", text)
    return run(BIN / "playwright", "test", "--workers=1", *options, **env)


HURL = """POST {{url}}
{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
HTTP 200
[Asserts]
jsonpath "$.result.tools[*].name" contains "weather"
"""


def hurl(url, text, *options):
    return run(TOOLS / "bin/hurl", "--test", "--variable", f"url={url}", file("one.hurl", text), *options)


def schemathesis(*options):
    return run(TOOLS / "py/bin/schemathesis", "run", *options)


def passed(code):
    return "passes" if code == 0 else "fails"


# speaks MCP


@tries("speaks MCP", "Playwright Test", "JSON-RPC by hand passes")
def _():
    with Front() as front:
        return f"JSON-RPC by hand {passed(playwright(PLAYWRIGHT, URL=front.url)[0])}"


@tries("speaks MCP", "FastMCP's client", "lists and calls tools")
def _():
    async def use(client):
        assert len(await client.list_tools()) == 2
        assert not (await client.call_tool("withdraw", {"amount": 1})).is_error

    return fastmcp(use) or "lists and calls tools"


@tries("speaks MCP", "Hurl", "JSON-RPC by hand passes")
def _():
    with Front() as front:
        return f"JSON-RPC by hand {passed(hurl(front.url, HURL)[0])}"


@tries("speaks MCP", "schemathesis", "looks for a schema and gets an error")
def _():
    with Front() as front:
        code, output = schemathesis(f"{front.url}/mcp")
    return "looks for a schema and gets an error" if code and "schema" in output.lower() else output


@tries("speaks MCP", "WireMock", "answers with what stubs say")
def _():
    with WireMock({"request": {"method": "POST", "url": "/mcp"}, "response": {"jsonBody": {"result": {}}}}) as mock:
        request = urllib.request.Request(f"{mock.url}/mcp", b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}')
        answer = json.load(urllib.request.urlopen(request))
    return "answers with what stubs say" if answer == {"result": {}} else str(answer)


@tries("speaks MCP", "MCP Inspector", "lists tools")
def _():
    code, output = inspector("--method", "tools/list")
    return "lists tools" if code == 0 and '"withdraw"' in output else output


# ten broken lists


@tries("ten broken lists", "Gatewright", "10 of 10 fail")
def _():
    return f"{sum(suite(bug, '{ list: tools }')[0] == 1 for bug in LISTS)} of {len(LISTS)} fail"


@tries("ten broken lists", "Playwright Test", "0 of 10 fail")
def _():
    return over_http(lambda url: playwright(PLAYWRIGHT, URL=url)[0])


@tries("ten broken lists", "FastMCP's client", "3 of 10 fail")
def _():
    async def use(client):
        await client.list_tools()

    return f"{sum(fastmcp(use, bug) is not None for bug in LISTS)} of {len(LISTS)} fail"


@tries("ten broken lists", "Hurl", "0 of 10 fail")
def _():
    return over_http(lambda url: hurl(url, HURL)[0])


@tries("ten broken lists", "MCP Inspector", "0 of 10 fail, 4 lists lack the tool")
def _():
    failed, less = 0, 0
    for bug in LISTS:
        code, output = inspector("--method", "tools/list", bug=bug)
        failed += code != 0
        less += code == 0 and '"weather"' not in output
    return f"{failed} of {len(LISTS)} fail" + (f", {less} lists lack the tool" if less else "")


# two tools of one name


@tries("two tools of one name", "Gatewright", "fails with [duplicates]")
def _():
    code, output = suite("duplicate-tool", "{ list: tools }")
    return "fails with [duplicates]" if code == 1 and "[duplicates]" in output else output


@tries("two tools of one name", "Playwright Test", "fails if the test says so")
def _():
    with Front("duplicate-tool") as front:
        return f"{passed(playwright(PLAYWRIGHT, URL=front.url, TOLD='1')[0])} if the test says so"


@tries("two tools of one name", "FastMCP's client", "accepted")
def _():
    async def use(client):
        assert len(await client.list_tools()) == 3

    return fastmcp(use, "duplicate-tool") or "accepted"


@tries("two tools of one name", "Hurl", "fails if the file says so")
def _():
    told = HURL + 'jsonpath "$.result.tools[?(@.name == \'weather\')]" count == 1\n'
    with Front("duplicate-tool") as front:
        return f"{passed(hurl(front.url, told)[0])} if the file says so"


@tries("two tools of one name", "MCP Inspector", "accepted")
def _():
    code, output = inspector("--method", "tools/list", bug="duplicate-tool")
    return "accepted" if code == 0 and output.count('"weather"') == 2 else output


# structuredContent that contradicts outputSchema

LIE = "output-of-another-type"


@tries("structuredContent", "Gatewright", "fails with [structured-content]")
def _():
    code, output = suite(LIE, "{ call: weather, with: { city: Oslo } }")
    return "fails with [structured-content]" if code == 1 and "[structured-content]" in output else output


@tries("structuredContent", "FastMCP's client", "the call fails")
def _():
    async def use(client):
        await client.call_tool("weather", {"city": "Oslo"})

    assert fastmcp(use, NODE_OPTIONS=SERVICE) is None
    return "the call fails" if fastmcp(use, LIE, NODE_OPTIONS=SERVICE) else "the call succeeds"


@tries("structuredContent", "MCP Inspector", "the call fails")
def _():
    call = ["--method", "tools/call", "--tool-name", "weather", "--tool-arg", "city=Oslo"]
    code, output = inspector(*call, NODE_OPTIONS=SERVICE)
    assert code == 0, output
    code, output = inspector(*call, bug=LIE, NODE_OPTIONS=SERVICE)
    return "the call fails" if code else "the call succeeds"


# a server in the same process


@tries("in the same process", "FastMCP's client", "a call of a server object")
def _():
    server = FastMCP("here")
    server.tool(lambda: os.getpid(), name="pid")

    async def inside():
        async with Client(server) as client:
            return (await client.call_tool("pid")).content[0].text

    return "a call of a server object" if asyncio.run(inside()) == str(os.getpid()) else "another process"


@tries("in the same process", "schemathesis", "an ASGI application")
def _():
    test = file(
        "test_asgi.py",
        """import schemathesis
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
document = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {"/one": {"get": {"responses": {"200": {"description": "x"}}}}}}
app = Starlette(routes=[Route("/openapi.json", lambda _: JSONResponse(document)), Route("/one", lambda _: JSONResponse({}))])
schema = schemathesis.openapi.from_asgi("/openapi.json", app)
@schema.include(method="GET").parametrize()
def test_one(case):
    case.call_and_validate()
""",
    )
    code, output = run(TOOLS / "py/bin/pytest", "-q", test)
    return "an ASGI application" if code == 0 else output


# mocks of HTTP calls that the server makes


class WireMock:
    """WireMock with one stub."""

    def __init__(self, stub, *options):
        self.jar = next((TOOLS / "node_modules/wiremock/build").glob("*.jar"))
        self.child = subprocess.Popen(
            ["java", "-jar", str(self.jar), "--port", "0", "--root-dir", str(FOLDER), *options], stdout=subprocess.PIPE, text=True
        )
        for line in self.child.stdout:
            if found := re.match(r"port:\s+(\d+)", line):
                break
        threading.Thread(target=self.child.stdout.read, daemon=True).start()
        self.url = f"http://127.0.0.1:{found[1]}"
        self.admin("mappings", stub)

    def admin(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        return json.load(urllib.request.urlopen(urllib.request.Request(f"{self.url}/__admin/{path}", data)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.kill()
        self.child.wait()


def bank(url):
    """The answer of a server's tool that fetches a URL."""

    async def inside():
        transport = StdioTransport("node", [str(SERVERS / "bank.mjs"), "--stdio"])
        async with Client(transport) as client:
            answer = await client.call_tool("fetch", {"url": url}, raise_on_error=False)
            return answer.content[0].text

    return asyncio.run(inside())


@tries("mocks of HTTP calls", "WireMock", "answers, resets, names the nearest stub")
def _():
    stub = {"request": {"method": "GET", "url": "/now"}, "response": {"body": "cold"}}
    with WireMock(stub) as mock:
        assert bank(f"{mock.url}/now") == "200 cold"
        mock.admin("mappings", {"request": {"url": "/reset"}, "response": {"fault": "CONNECTION_RESET_BY_PEER"}})
        assert bank(f"{mock.url}/reset") == "ECONNRESET"
        assert bank(f"{mock.url}/nox").startswith("404")
        near = mock.admin("requests/unmatched/near-misses")["nearMisses"][0]
        assert near["request"]["url"] == "/nox" and near["stubMapping"]["request"]["url"] == "/now", near
    return "answers, resets, names the nearest stub"


@tries("mocks of HTTP calls", "WireMock", "as a proxy that the client is told")
def _():
    stub = {"request": {"url": "/now"}, "response": {"body": "cold"}}
    with WireMock(stub, "--enable-browser-proxying") as mock:
        code, output = run("curl", "-sS", "--proxy", mock.url, "http://api.weather.example/now")
    return "as a proxy that the client is told" if output == "cold" else output


# snapshots


@tries("snapshots", "Playwright Test", "a missing one is written and fails, then it passes")
def _():
    text = """const { test, expect } = require("@playwright/test");
test("same", () => expect(JSON.stringify({ a: 1 })).toMatchSnapshot("a.json"));
"""
    first, second = playwright(text)[0], playwright(text)[0]
    return f"a missing one is written and {passed(first)}, then it {passed(second)}"


@tries("snapshots", "pytest", "with inline-snapshot: written, then compared")
def _():
    test = file("test_snapshot.py", "from inline_snapshot import snapshot\ndef test_same():\n    assert {'a': 1} == snapshot()\n")
    run(TOOLS / "py/bin/pytest", "-q", "--inline-snapshot=create", test)
    written = "'a': 1} == snapshot({'a': 1})" in test.read_text().replace('"', "'")
    compared = run(TOOLS / "py/bin/pytest", "-q", test)[0] == 0
    test.write_text(test.read_text().replace("1}", "2}", 1))
    wrong = run(TOOLS / "py/bin/pytest", "-q", test)[0] == 1
    return "with inline-snapshot: written, then compared" if written and compared and wrong else test.read_text()


# what failed last, and no further test after a failure


@tries("what failed", "Gatewright", "--last-failed, --fail-fast")
def _():
    tests = "tests: [{ name: a, steps: [{ call: nope }] }, { name: b, steps: [{ list: tools }] }]\nserial: true"
    name = file("two.suite.yaml", f"server: {{ command: {DEFECTS}, transport: stdio }}\n{tests}")
    cache = {"XDG_CACHE_HOME": str(FOLDER)}
    fast = run(os.environ["GATEWRIGHT"], "test", name, "--fail-fast", **cache)[1]
    run(os.environ["GATEWRIGHT"], "test", name, **cache)
    last = run(os.environ["GATEWRIGHT"], "test", name, "--last-failed", **cache)[1]
    both = "1 failed, 1 skipped" in fast and "1 failed, 1 left out" in last
    return "--last-failed, --fail-fast" if both else fast + last


@tries("what failed", "Playwright Test", "--last-failed, --max-failures")
def _():
    text = """const { test, expect } = require("@playwright/test");
test("a", () => expect(1).toBe(2));
test("b", () => {});
"""
    most = playwright(text, "--max-failures=1")[1]
    playwright(text)
    last = playwright(text, "--last-failed")[1]
    both = "1 did not run" in most and "Running 1 test" in last
    return "--last-failed, --max-failures" if both else most + last


@tries("what failed", "pytest", "--lf, -x")
def _():
    test = file("test_two.py", "def test_a():\n    assert False\ndef test_b():\n    pass\n")
    fast = run(TOOLS / "py/bin/pytest", "-x", test)[1]
    run(TOOLS / "py/bin/pytest", test)
    last = run(TOOLS / "py/bin/pytest", "--lf", test)[1]
    both = "1 failed in" in fast and "1 deselected" in last.replace("run-last-failure: rerun previous 1 failure", "1 deselected")
    return "--lf, -x" if both else fast + last


@tries("what failed", "Hurl", "runs all files, has no such option")
def _():
    with Front() as front:
        wrong = file("a.hurl", HURL.replace("HTTP 200", "HTTP 201"))
        code, output = hurl(front.url, HURL, wrong, "--jobs", "1")
    options = run(TOOLS / "bin/hurl", "--help")[1]
    none = "failed" not in options.replace("--fail-at-end", "") and "Executed files:    2" in output
    return "runs all files, has no such option" if code and none else output


@tries("what failed", "schemathesis", "--max-failures")
def _():
    with Front() as front:
        code, output = schemathesis("--max-failures", "1", "--workers", "1", f"{front.url}/openapi.json")
    return "--max-failures" if code and "failure limit reached" in output else output


# reports


@tries("reports", "Gatewright", "text, TAP, JUnit, JSON, GitHub")
def _():
    for name in ["readable", "tap", "junit", "json", "github"]:
        code, output = suite("", "{ list: tools }", "--format", name)
        assert code == 0 and output.strip(), (name, output)
    return "text, TAP, JUnit, JSON, GitHub"


@tries("reports", "Playwright Test", "text, HTML, JUnit, JSON, GitHub")
def _():
    text = 'const { test } = require("@playwright/test");\ntest("a", () => {});\n'
    for name in ["list", "html", "junit", "json", "github"]:
        code, output = playwright(text, f"--reporter={name}", PLAYWRIGHT_HTML_OPEN="never")
        assert code == 0, (name, output)
    return "text, HTML, JUnit, JSON, GitHub"


@tries("reports", "pytest", "text, JUnit")
def _():
    code, output = run(TOOLS / "py/bin/pytest", file("test_ok.py", "def test_a():\n    pass\n"), "--junit-xml=py/j.xml")
    return "text, JUnit" if code == 0 and "1 passed" in output and (FOLDER / "py/j.xml").exists() else output


@tries("reports", "Hurl", "text, HTML, TAP, JUnit, JSON")
def _():
    kinds = ["--report-html=hurl/html", "--report-tap=hurl.tap", "--report-junit=hurl.xml", "--report-json=hurl/json"]
    with Front() as front:
        code, output = hurl(front.url, HURL, *kinds)
    made = all((FOLDER / name).exists() for name in ["hurl/html/index.html", "hurl.tap", "hurl.xml", "hurl/json/report.json"])
    return "text, HTML, TAP, JUnit, JSON" if code == 0 and made else output


@tries("reports", "schemathesis", "text, HTML, JUnit, JSON, HAR, VCR, Allure")
def _():
    with Front() as front:
        code, output = schemathesis("--report", "html,junit,json,har,vcr,allure", "--report-dir", "st", f"{front.url}/openapi.json")
    kinds = {path.name.split("-")[0] for path in (FOLDER / "st").iterdir()}
    return "text, HTML, JUnit, JSON, HAR, VCR, Allure" if {"html", "junit", "json", "har", "vcr", "allure"} <= kinds else f"{kinds} {output}"


@tries("reports", "MCP Inspector", "JSON")
def _():
    code, output = inspector("--method", "tools/list")
    return "JSON" if code == 0 and json.loads(output) else output


# a user interface, an authorization server


@tries("user interface", "MCP Inspector", "serves a page")
def _():
    child = subprocess.Popen(
        [str(BIN / "mcp-inspector")], env={**os.environ, "MCP_AUTO_OPEN_ENABLED": "false", "BROWSER": "none"}, cwd=FOLDER,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )
    try:
        seen = ""
        for line in child.stdout:
            seen += line
            if found := re.search(r"http://(localhost|127\.0\.0\.1):\d+\S*", line):
                page = urllib.request.urlopen(found[0]).read().decode()
                return "serves a page" if "<html" in page else page
        return seen
    finally:
        os.killpg(child.pid, 15)


@tries("authorization server", "FastMCP", "a provider in memory, for its own servers")
def _():
    from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider

    server = FastMCP("guarded", auth=InMemoryOAuthProvider(base_url="http://127.0.0.1:1"))
    paths = {getattr(route, "path", "") for route in server.http_app().routes}
    return "a provider in memory, for its own servers" if {"/authorize", "/token"} <= paths else str(paths)


@tries("authorization server", "Gatewright", "answers with tokens, with failures on demand")
def _():
    child = subprocess.Popen(
        [os.environ["GATEWRIGHT"], "mock", "oauth", "--port", "0", "--fault", "jwks=status:503"], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )
    try:
        for line in child.stdout:
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                break
        threading.Thread(target=child.stdout.read, daemon=True).start()
        metadata = json.load(urllib.request.urlopen(f"{found[0]}/.well-known/oauth-authorization-server"))
        form = "grant_type=anonymous&client_id=anybody".encode()
        token = json.load(urllib.request.urlopen(metadata["token_endpoint"], form))["access_token"]
        code = run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", metadata["jwks_uri"])[1]
        return "answers with tokens, with failures on demand" if token and code == "503" else code
    finally:
        child.terminate()
        child.wait()


def main():
    part, wrong = " ".join(sys.argv[1:]), 0
    for row, tool, expected, function in TRIES:
        if part not in f"{row} {tool}":
            continue
        try:
            found = function()
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        wrong += found != expected
        print(f"{row:<24} {tool:<18} {found[-1500:] if found != expected else found}", flush=True)
        if found != expected:
            print(f"{'':<43} expected: {expected}")
    subprocess.run(["rm", "-rf", FOLDER], check=True)
    print(f"{wrong} cells are not as documented" if wrong else "all cells are as documented")
    sys.exit(1 if wrong else 0)


main()
