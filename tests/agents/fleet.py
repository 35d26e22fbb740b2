"""Writes the configuration and the tasks of a fleet into a folder, and the files that its servers work on.

    fleet.py bfcl FOLDER [FIRST LAST]    backends and conversations of the Berkeley Function-Calling Leaderboard
    fleet.py servers FOLDER              servers of npm and PyPI; TOOLS is the folder of the npm packages
    fleet.py large FOLDER                the same tasks for a client that lists the tools of both fleets
"""

import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

here = Path(__file__).parent
which, folder = sys.argv[1], Path(sys.argv[2]).resolve()


def bfcl_fleet():
    import bfcl

    first, last = (int(text) for text in sys.argv[3:5]) if len(sys.argv) > 3 else (0, 200)
    apps = {bfcl.app(name): {"command": sys.executable, "args": [str(here / "bfcl_server.py"), name]} for name in bfcl.MODULES}
    return apps, json.dumps(bfcl.tasks(first, last))


def servers_fleet():
    database()
    files()
    repository()
    packages = Path(os.environ["TOOLS"])

    def pypi(name, *args):
        return {"command": sys.executable, "args": ["-c", f"from {name} import main; main()", *args]}

    def npm(name, *args):
        return {"command": str(packages / ".bin/node"), "args": [str(packages / "@modelcontextprotocol" / name / "dist/index.js"), *args]}

    apps = {
        "db": pypi("mcp_server_sqlite", "--db-path", str(folder / "shop.sqlite")),
        "git": pypi("mcp_server_git", "--repository", str(folder / "repo")),
        "time": pypi("mcp_server_time"),
        "files": npm("server-filesystem", str(folder / "files")),
        "memory": npm("server-memory") | {"env": {"MEMORY_FILE_PATH": str(folder / "memory.json")}},
        "everything": npm("server-everything", "stdio"),
    }
    return apps, (here / "servers.yaml").read_text().replace("FOLDER", str(folder))


def large_fleet():
    apps, tasks = servers_fleet()
    apps = bfcl_fleet()[0] | apps
    return apps, re.sub(r"^  - name: .*", rf"\g<0>\n    apps: [{', '.join(apps)}]", tasks, flags=re.MULTILINE)


def database():
    shop = sqlite3.connect(folder / "shop.sqlite")
    shop.executescript(
        "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, country TEXT, email TEXT);"
        "CREATE TABLE invoices (id INTEGER PRIMARY KEY, customer INTEGER, cents INTEGER, due TEXT, paid INTEGER);"
    )
    countries = ["DE", "FR", "IN", "JP", "US"]
    for n in range(60):
        shop.execute("INSERT INTO customers VALUES (?, ?, ?, ?)", (n, f"Customer {n}", countries[n % 5], f"c{n}@shop.example"))
    for n in range(400):
        shop.execute("INSERT INTO invoices VALUES (?, ?, ?, ?, ?)", (n, n * 7 % 60, 100 + n * n % 997, f"2026-{n % 12 + 1:02}-15", n % 3 % 2))
    shop.commit()
    shop.close()


def files():
    logs = folder / "files/logs"
    logs.mkdir(parents=True)
    for day in range(1, 9):
        lines = []
        for n in range(40):
            service = ["billing", "orders", "search"][n % 3]
            kind = "ERROR" if n in (0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 14, 15) else "INFO"
            lines.append(f"2026-11-{day:02}T09:{n:02}:00Z {kind} {service}: request {day * 100 + n} took {n * 13 % 71} ms")
        (logs / f"day-{day:02}.log").write_text("\n".join(lines) + "\n")
    (folder / "files/people.csv").write_text("name,city,born\nAda,London,1815\nGrace,New York,1906\nLinus,Portland,1969\n")
    # One for each way of solving the task, which moves them.
    for inbox in ("inbox", "inbox2"):
        (folder / "files" / inbox).mkdir()
        for name in ("a.txt", "b.csv", "c.txt", "d.csv", "e.txt", "f.csv"):
            (folder / "files" / inbox / name).write_text(name)


def repository():
    at = folder / "repo"
    at.mkdir()

    def git(*args, who="Ada"):
        when = "2026-11-02T10:00:00Z"
        names = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in (("NAME", who), ("EMAIL", f"{who}@shop.example"), ("DATE", when))}
        quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        subprocess.run(["git", "-C", at, *args], check=True, capture_output=True, env=os.environ | names | quiet)

    git("init", "--initial-branch", "main")
    for n in range(24):
        (at / f"module-{n % 5}.txt").write_text("".join(f"line {line} of change {n}\n" for line in range(20)))
        git("add", "-A")
        git("commit", "-m", f"Change module {n % 5} for the {n}th time", who="Grace" if n % 2 else "Ada")


folder.mkdir(parents=True, exist_ok=True)
apps, tasks = {"bfcl": bfcl_fleet, "servers": servers_fleet, "large": large_fleet}[which]()
(folder / "gatewright.json").write_text(json.dumps({"apps": apps, "codecall": {"vm": {"timeoutMs": 20_000}}}))
(folder / "tasks.yaml").write_text(tasks)
