"""From the installed package to a first plan, as a person types it; `first_minutes.py FILE` records it as an asciicast (version 2)."""

import json
import os
import pathlib
import socket
import sys
import tempfile
import time

import packages
import pexpect

ROOT = packages.ROOT
NODE_MODULES = ROOT / ".cache/npm/node_modules"
WIDTH, HEIGHT = 100, 32
PROMPT = "$ "
PLAN = """\
const { content: list } = await callTool('files:list_directory', { path: '.' });
const days = list.split('\\n').map((line) => line.replace('[FILE] ', ''));
const logs = await __safe_parallel(days.map((path) => () => callTool('files:read_text_file', { path })));
return days.map((day, i) => `${day}: ${logs[i].content.split('ERROR').length - 1} errors`);
"""


class Cast:
    """What the terminal shows, with its times."""

    def __init__(self):
        self.start = time.monotonic()
        self.events = []

    def write(self, text):
        self.events.append((round(time.monotonic() - self.start, 3), "o", text))

    def flush(self):
        pass

    def save(self, path):
        header = {"version": 2, "width": WIDTH, "height": HEIGHT, "title": "From nothing to a plan in four commands"}
        path.write_text("".join(json.dumps(line) + "\n" for line in [header, *self.events]))


def folder_of_a_project(folder):
    """A project with two MCP servers, some logs and a plan; the home of a person who uses Cursor."""
    home, project = pathlib.Path(folder, "home"), pathlib.Path(folder, "acme")
    (home / ".cursor").mkdir(parents=True)
    (project / "logs").mkdir(parents=True)
    (project / "node_modules").symlink_to(NODE_MODULES)
    server = lambda name, *args: {"command": "npx", "args": ["-y", f"@modelcontextprotocol/server-{name}", *args]}
    servers = {"files": server("filesystem", "./logs"), "memory": server("memory")}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    for day, errors in [("monday", 2), ("tuesday", 5), ("wednesday", 1)]:
        (project / f"logs/{day}.log").write_text("INFO ok\nERROR payment timed out\n" * errors + "INFO ok\n" * 500)
    (project / "errors.js").write_text(PLAN)
    return home, project


def installed(folder):
    """The folder of programs of the package, installed from its built files."""
    npm = [*sorted(pathlib.Path(packages.built().name).glob("*.tgz"))]
    offline = ["--offline", "--registry", "http://127.0.0.1:9", "--cache", pathlib.Path(folder, "cache")]
    packages.run("npm", "install", "--global", "--prefix", pathlib.Path(folder, "npm"), "--no-audit", "--no-fund", *offline, *npm)
    return pathlib.Path(folder, "npm/bin")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def walk(port, cast=None):
    """Types the four commands; returns the seconds from the first key to the answer of the plan."""
    with tempfile.TemporaryDirectory(prefix="demo-") as folder:
        home, project = folder_of_a_project(folder)
        path = [installed(folder), NODE_MODULES / ".bin", os.environ["PATH"]]
        environment = {"HOME": str(home), "PATH": ":".join(map(str, path)), "PS1": PROMPT, "TERM": "xterm-256color", "npm_config_offline": "true"}
        shell = pexpect.spawn("bash", ["--norc"], cwd=project, env=environment, dimensions=(HEIGHT, WIDTH), encoding="utf-8", timeout=120)
        shell.expect_exact(PROMPT)
        if cast:
            shell.logfile_read = cast
            cast.start = time.monotonic()
            cast.write(PROMPT)

        def types(command, *answers):
            for key in command if cast else [command]:
                shell.send(key)
                if cast:
                    shows(0.04)
            shell.send("\r")
            for answer in answers:
                shell.expect_exact(answer)
            if cast:
                shows(2)

        def shows(seconds):
            """Takes what the terminal shows for some time, so that a recording has it when it came."""
            shell.expect([pexpect.TIMEOUT], timeout=seconds)

        elsewhere = "" if port == 3000 else f" --port {port}"
        address = f"http://127.0.0.1:{port}/mcp"
        if cast:
            types("cat errors.js", PROMPT)
        start = time.monotonic()
        types("gatewright init --yes", "Wrote gatewright.yaml with 2 apps", PROMPT)
        types(f"gatewright serve{elsewhere} &", "app is up", "app is up")
        types("gatewright connect cursor --yes" + (f" --url {address}" if elsewhere else ""), "Cursor has the server `gatewright` now")
        client = f"mcp-inspector --cli {address} --transport http --method tools/call --tool-name codecall:execute"
        types(client + ' --tool-arg "script=$(cat errors.js)"', '"tuesday.log: 5 errors"', '"isError": false', PROMPT)
        seconds = time.monotonic() - start
        shell.logfile_read = None
        shell.sendline("kill %1; wait; exit")
        shell.expect(pexpect.EOF)
        assert json.loads((home / ".cursor/mcp.json").read_text()) == {"mcpServers": {"gatewright": {"url": address}}}
        return seconds


def the_installed_package_takes_a_stranger_to_a_plan_in_four_commands():
    print(f"     from the first command to the answer of the plan: {walk(free_port()):.1f} s", flush=True)


if __name__ == "__main__":
    cast = Cast()
    walk(3000, cast)
    cast.save(pathlib.Path(sys.argv[1]))
