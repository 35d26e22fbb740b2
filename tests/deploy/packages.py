"""The packages of npm and PyPI, installed from the built files without a registry."""

import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading

BUILDING = threading.Lock()
ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ["GATEWRIGHT"]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


def built():
    """A folder with all packages; gone when the process ends."""
    with BUILDING:
        return build()


@functools.cache
def build():
    folder = tempfile.TemporaryDirectory()
    stripped = pathlib.Path(folder.name, "gatewright")
    run("strip", "-o", stripped, BINARY)
    for script in ["package-npm", "package-pypi"]:
        run(ROOT / "scripts" / script, "--binary", stripped, "--output", folder.name)
    return folder


def stands_in_for_the_binary(command, cwd):
    """The command becomes the binary itself: same process, standard streams, exit code and reaction to signals."""
    said = run(BINARY, "--version")
    assert run(command, "--version", cwd=cwd) == said
    assert subprocess.run([command, "no-such-command"], stderr=subprocess.DEVNULL, cwd=cwd).returncode == 2
    config = pathlib.Path(cwd, "gatewright.yaml")
    config.write_text("apps: { crm: { builtin: crm } }\n")
    endings = []
    for program in [BINARY, command]:
        server = subprocess.Popen(
            [program, "serve", "--stdio", "--config", config], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        with server:
            server.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
            server.stdin.flush()
            assert json.loads(server.stdout.readline())["result"]["serverInfo"]
            # The process is the program, not a shell or Node that waits for it.
            with open(f"/proc/{server.pid}/exe", "rb") as executable:
                assert b"codecall:execute" in executable.read()
            server.send_signal(signal.SIGTERM)
            rest = server.stdout.read()
            endings.append((server.wait(timeout=30), rest))
    assert endings[0] == endings[1], endings


def the_npm_packages_install_without_a_registry_and_become_the_binary():
    npm = [*sorted(pathlib.Path(built().name).glob("*.tgz"))]
    assert len(npm) == 2, npm
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "package.json").write_text('{"private": true}')
        offline = ["--offline", "--registry", "http://127.0.0.1:9", "--cache", pathlib.Path(folder, "cache")]
        run("npm", "install", "--no-audit", "--no-fund", *offline, *npm, cwd=folder)
        stands_in_for_the_binary(pathlib.Path(folder, "node_modules/.bin/gatewright"), folder)
        assert run("npx", "--offline", "gatewright", "--version", cwd=folder) == run(BINARY, "--version")
        for license in ["LICENSE-APACHE", "LICENSE-MIT"]:
            assert len([*pathlib.Path(folder).glob(f"node_modules/**/{license}")]) == 2, license


def the_npm_launcher_says_which_package_is_missing():
    with tempfile.TemporaryDirectory() as folder:
        launcher = pathlib.Path(folder, "node_modules/gatewright/bin/gatewright")
        launcher.parent.mkdir(parents=True)
        launcher.write_bytes((ROOT / "deploy/npm/gatewright").read_bytes())
        done = subprocess.run(["sh", launcher, "--version"], capture_output=True, text=True)
        assert done.returncode == 1 and "@gatewright/linux-" in done.stderr, done


def the_wheel_installs_without_an_index_and_is_the_binary():
    (wheel,) = pathlib.Path(built().name).glob("*.whl")
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "venv", "--without-pip", folder)
        python = pathlib.Path(folder, "bin/python")
        run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", wheel)
        stands_in_for_the_binary(pathlib.Path(folder, "bin/gatewright"), folder)
        licenses = pathlib.Path(folder).glob("lib/*/site-packages/gatewright-*.dist-info/licenses/LICENSE-*")
        assert len([*licenses]) == 2
