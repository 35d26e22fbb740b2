"""Answers questions of tools with the client of the Python SDK 1.x, and prints their results: `questions_sdk1.py URL TOOL…`."""

import asyncio
import sys

from mcp import ClientSession, types
from mcp.client.streamable_http import streamablehttp_client


async def elicit(_context, params) -> types.ElicitResult:
    fields = params.requestedSchema["properties"]
    answers = {field: "Ada" for field in fields if field in ("name", "value", "color")}
    return types.ElicitResult(action="accept", content=answers)


async def sample(_context, _params) -> types.CreateMessageResult:
    text = types.TextContent(type="text", text="a sample")
    return types.CreateMessageResult(role="assistant", content=text, model="test")


async def roots(_context) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///w/ada")])


async def main(url: str, tools: list[str]) -> None:
    callbacks = {"elicitation_callback": elicit, "sampling_callback": sample, "list_roots_callback": roots}
    async with streamablehttp_client(url) as (reads, writes, _), ClientSession(reads, writes, **callbacks) as session:
        await session.initialize()
        for tool in tools:
            result = await session.call_tool(tool, {"prompt": "hi"} if "sampling-request" in tool else {})
            print(tool, " ".join(block.text for block in result.content).replace("\n", " "))


asyncio.run(main(sys.argv[1], sys.argv[2:]))
