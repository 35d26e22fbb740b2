"""Prints the grades of probed servers, and writes a page with their main findings.

table.py REPORTS SECONDS [PAGE]
"""

import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
MOST = 3  # findings of a server on the page
AREAS = ("lifecycle", "protocol", "shapes", "tools")

PAGE = """# Servers of npm and PyPI, probed

Written by `tests/probe/run`; do not edit. {number} servers at the versions of their packages, over standard input and output and without network, {seconds} s of calls
of tools each; [probes](probe.md) explain areas and grades. A grade is what this probe found with made-up keys and input, not a judgement of a server: many
of these findings are harmless to the clients that it is used with.

| package | version | grade | lifecycle, protocol, shapes, tools | tools called | main findings |
|---|---|---|---|---|---|
{rows}
"""


def versions():
    """The versions of packages, as they are pinned."""
    known = dict(json.loads((HERE / "package.json").read_text())["dependencies"])
    for name in ("requirements.txt", "requirements-sdk1.txt"):
        known.update(line.split("==") for line in (HERE / name).read_text().split() if "==" in line)
    return known


def findings(report):
    """The heaviest kinds of findings, each once with its number; notes only if there is nothing else."""
    kinds = {}
    for one in report["findings"]:
        problem = re.sub(r"/tmp/[\w.-]+", "DIR", " ".join(one["problem"].split()))
        tool, problem = re.match(r"(?:`([^`]+)`: )?(.*)", problem).groups()
        problem = re.sub(r" \(`?[^()]*`?\)$", "", problem) if tool else problem
        # One kind, wherever in the input; the first one stands for it.
        kinds.setdefault((one["severity"], one["area"], problem.split(": /")[0]), []).append(problem)
    heavy = [kind for kind in kinds if kind[0] != "note"] or list(kinds)
    ranked = sorted(heavy, key=lambda kind: (("error", "warning", "note").index(kind[0]), -len(kinds[kind])))
    lines = []
    for severity, area, kind in ranked[:MOST]:
        problem, number = kinds[severity, area, kind][0], len(kinds[severity, area, kind])
        count = f" ({number} times)" if number > 1 else ""
        lines.append(f"{severity} ({area}): {problem if len(problem) <= 160 else problem[:160] + '…'}{count}")
    more = len(ranked) - MOST
    return lines + ([f"and {more} other kinds"] if more > 0 else [])


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def main():
    reports, seconds, page = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    known, rows = versions(), []
    print(f"{'server':<20} {'version':<12} grade  {'lifecycle protocol shapes tools':<34} tools calls seconds")
    for line in (HERE / "servers.tsv").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, package, _ = line.split("\t")
        path = reports / f"{name}.json"
        if not path.is_file() or not path.stat().st_size:
            continue
        report = json.loads(path.read_text())
        grades = {area["area"]: area["grade"] or "–" for area in report["areas"]}
        fuzz = report["fuzz"] or {"tools": []}
        called = sum(tool["valid"] + tool["invalid"] > 0 for tool in fuzz["tools"])
        calls = sum(tool["valid"] + tool["invalid"] for tool in fuzz["tools"])
        marks = "".join(f"{grades[area]:<10}" for area in AREAS)
        print(f"{name:<20} {known[package]:<12} {report['grade'] or '–':<6} {marks} {len(fuzz['tools']):>5} {calls:>5} {report['seconds']:.0f}")
        if report["stopped"]:
            print(f"{'':<20} ended early: {report['stopped'][:150]}")
        found = findings(report) or ["none"]
        if report["stopped"]:
            found.insert(0, f"ended early: {report['stopped'][:160]}")
        found = "<br>".join(cell(one) for one in found)
        marks = " ".join(grades[area] for area in AREAS)
        rows.append(f"| `{package}` | {known[package]} | {report['grade'] or '–'} | {marks} | {called} of {len(fuzz['tools'])} | {found} |")
    if page:
        pathlib.Path(page[0]).write_text(PAGE.format(number=len(rows), seconds=seconds, rows="\n".join(rows)))


main()
