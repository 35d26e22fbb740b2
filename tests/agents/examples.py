"""Runs the generated example of every read-only tool of a fleet, and prints how many succeed.

    examples.py GATEWRIGHT CONFIG [-v]     CONFIG as fleet.py writes it; -v prints all of them

An example counts as good if its call succeeds, or fails only because the object that it names does not exist or the server's state does not allow it.
The exit code is 1 if fewer than 90 % are good.
"""

import asyncio
import json
import os
import re
import sys
from collections import Counter

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

READS = re.compile(
    r"(^|[_\-])(get|list|read|search|find|show|describe|view|fetch|count|check|display|estimate|compute|calculate|convert|verify|retrieve"
    r"|status|log|diff|tree|directory|info|stats|query|ls|pwd|cat|head|tail|wc|du|grep|sort|echo|mean|sum|subtract|multiply|divide|power"
    r"|round|absolute|percentage|logarithm|square|max|min|std|standard|si|imperial|gallon|liter)([_\-]|$)"
)
WRITES = re.compile(r"(^|[_\-])(create|delete|remove|update|set|write|move|edit|append|insert|reset|checkout|commit|toggle|trigger|fund|place|cancel|book|send|post)")
MISSING = re.compile(
    r"not found|no such|does not exist|doesn't exist|not exist|unknown|ENOENT|bad revision|did not resolve|no repository|not a directory|not authenticated|"
    r"log ?in|not logged|not a valid|no matching|no .* found|invalid (order|ticket|user|message|session|card|token|access)|outside allowed|not available|"
    r"not allowed|^(\[path\]|/\S+)$|logged in|NotFound|NoSuchPath|not connected|don't have|is not a|isn't in|expired",
    re.IGNORECASE,
)


def is_read_only(tool):
    hints = tool.get("annotations", {})
    local = tool["name"].split(":", 1)[1]
    if hints.get("readOnlyHint") is not None:
        return hints["readOnlyHint"]
    return bool(READS.search(local)) and not WRITES.search(local)


def verdict(body):
    """Success, the want of the named object, or the reason of the failure."""
    if body["status"] == "ok":
        result = body["result"]
        error = result.get("error") if isinstance(result, dict) else None
        if not error and isinstance(result, str) and re.match(r"error", result, re.IGNORECASE):
            error = result
        if not error:
            return "ok", ""
        message = str(error)
    else:
        message = body["error"]["message"]
    return ("missing" if MISSING.search(message) else "failed"), message


async def main(gatewright, config):
    command = StdioServerParameters(command=gatewright, args=["serve", "--stdio", "--config", config], env=dict(os.environ))
    async with stdio_client(command, errlog=open(os.devnull, "w")) as (reader, writer), ClientSession(reader, writer) as session:
        await session.initialize()

        async def meta(name, arguments):
            return json.loads((await session.call_tool("codecall:" + name, arguments)).content[0].text)

        listed = await meta("search", {"topK": 100})
        while listed.get("unavailable"):
            await asyncio.sleep(1)
            listed = await meta("search", {"topK": 100})
        names = []
        for app in listed["apps"]:
            page = {"filter": {"appIds": [app["appId"]]}, "topK": 100}
            names += [tool["name"] for tool in (await meta("search", page))["tools"]]
        for name in names:
            if name.endswith(":load_scenario"):
                await meta("invoke", {"tool": name, "input": {"scenario": {}}})
        counts, reasons = Counter(), []
        for start in range(0, len(names), 50):
            for tool in (await meta("describe", {"toolNames": names[start : start + 50]}))["tools"]:
                if not is_read_only(tool):
                    continue
                if not tool["usageExamples"]:
                    counts["none"] += 1
                    reasons.append((tool["name"], "none", "", ""))
                    continue
                code = tool["usageExamples"][0]["code"]
                kind, why = verdict(await meta("execute", {"script": code}))
                counts[kind] += 1
                reasons.append((tool["name"], kind, why, code))
        total = sum(counts.values())
        good = counts["ok"] + counts["missing"]
        for name, kind, why, code in reasons:
            if kind in ("failed", "none") or "-v" in sys.argv:
                print(f"{kind}: {name}: {' '.join(why.split())[:160]}\n    {' '.join(code.split())[:200]}")
        print(f"{total} examples of read-only tools: {counts['ok']} succeed, {counts['missing']} lack only the named object, "
              f"{counts['failed']} fail, {counts['none']} tools have none: {100 * good / total:.1f} % good, {100 * counts['ok'] / total:.1f} % succeed")


        return good / total


sys.exit(0 if asyncio.run(main(sys.argv[1], sys.argv[2])) >= 0.9 else 1)
