"""A FastMCP server over HTTP that writes each step of its tools to a file: `fastmcp_desk.py FILE`. It asks in the ways of both eras."""

import asyncio
import sys
from collections import defaultdict

from fastmcp import Context, FastMCP
from mcp.types import InputRequiredResult, SamplingMessage, TextContent

mcp = FastMCP("desk")
released: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)


def note(step: str) -> str:
    with open(sys.argv[1], "a") as file:
        file.write(f"{step}\n")
    return step


@mcp.tool
def add(step: str) -> str:
    """Write a step down."""
    return note(step)


@mcp.tool
def send(step: str) -> str:
    """Write a step down that needs an approval."""
    return note(step)


@mcp.tool
async def hold(id: str) -> str:
    """Wait until it is released."""
    note(f"{id} held")
    await released[id].wait()
    return note(f"{id} released")


@mcp.tool
def release(id: str) -> str:
    """Release what is held."""
    released[id].set()
    return id


@mcp.tool
async def order(id: str, ctx: Context) -> str:
    """Ask who orders, with a request during the call."""
    note(f"{id} asks")
    answer = await ctx.elicit(f"Who orders {id}?", response_type=str)
    said = answer.data if answer.action == "accept" else answer.action
    note(f"{id} {said}")
    return said


@mcp.tool
async def haggle(id: str, ctx: Context) -> str:
    """Ask twice, with requests during the call."""
    answers = []
    for question in ("offers", "takes"):
        note(f"{id} asks")
        answer = await ctx.elicit(f"Who {question} {id}?", response_type=str)
        answers.append(answer.data if answer.action == "accept" else answer.action)
    return note(f"{id} {' and '.join(answers)}")


@mcp.tool
async def brief(id: str, ctx: Context) -> str:
    """Ask the client's model, with a request during the call."""
    note(f"{id} asks")
    question = SamplingMessage(role="user", content=TextContent(type="text", text=f"Sum up {id}"))
    answer = await ctx.session.create_message([question], max_tokens=100, related_request_id=ctx.request_id)
    note(f"{id} {answer.content.text}")
    return answer.content.text


def ask(id: str, method: str, params: dict) -> InputRequiredResult:
    note(f"{id} asks")
    requests = {"question": {"method": method, "params": params}}
    return InputRequiredResult.model_validate({"inputRequests": requests, "requestState": id})


@mcp.tool
async def confirm(id: str, ctx: Context) -> str | InputRequiredResult:
    """Ask who confirms, with the result of 2026-07-28."""
    if not (answers := ctx.input_responses):
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        return ask(id, "elicitation/create", {"mode": "form", "message": f"Who confirms {id}?", "requestedSchema": schema})
    answer = answers["question"]
    said = str(answer.content["name"]) if answer.action == "accept" else answer.action
    note(f"{id} {said}")
    return said


@mcp.tool
async def digest(id: str, ctx: Context) -> str | InputRequiredResult:
    """Ask the client's model, with the result of 2026-07-28."""
    if not (answers := ctx.input_responses):
        message = {"role": "user", "content": {"type": "text", "text": f"Sum up {id}"}}
        return ask(id, "sampling/createMessage", {"messages": [message], "maxTokens": 100})
    said = answers["question"].content.text
    note(f"{id} {said}")
    return said


if __name__ == "__main__":
    mcp.run(transport="http", host="127.0.0.1", port=0, show_banner=False)
