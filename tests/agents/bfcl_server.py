"""One backend of the Berkeley Function-Calling Leaderboard (package bfcl-eval) as an MCP server over stdio.

    bfcl_server.py CLASS       such as GorillaFileSystem

Its tools are the functions of the backend, with the leaderboard's own words. `load_scenario` starts anew, in the state given.
"""

import asyncio
import copy
import inspect
import json
import sys

import bfcl
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

backend = bfcl.backend(sys.argv[1])
instance = backend()


def load_scenario(scenario):
    global instance
    instance = backend()
    if hasattr(instance, "_load_scenario"):
        instance._load_scenario(copy.deepcopy(scenario))
    return {"loaded": True}


server = Server(sys.argv[1])


@server.list_tools()
async def list_tools():
    load = {"type": "object", "properties": {"scenario": {"type": "object"}}, "required": ["scenario"]}
    tools = [types.Tool(name="load_scenario", description="Start anew in this state.", inputSchema=load)]
    for name, function in bfcl.functions(sys.argv[1]).items():
        tools.append(types.Tool(name=name, description=function["description"], inputSchema=function["schema"]))
    return tools


# Arguments reach the functions as they are: the leaderboard's own runner checks none.
@server.call_tool(validate_input=False)
async def call_tool(name, arguments):
    call = load_scenario if name == "load_scenario" else dict(inspect.getmembers(instance, inspect.ismethod))[name]
    result = call(**arguments)
    return [types.TextContent(type="text", text=result if isinstance(result, str) else json.dumps(result, default=str))]


async def main():
    async with stdio_server() as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


asyncio.run(main())
