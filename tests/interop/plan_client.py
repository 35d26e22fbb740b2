"""Calls `codecall:execute` with the client of the Python SDK 1.x, of 2.x, or of FastMCP: `plan_client.py sdk1|sdk|fastmcp MODE`.

Each line of its input is one call, which a new client makes, and each line of its output the result of one.
"""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from typing import Literal

from mcp import types

KIND, MODE = sys.argv[1:]


class Person:
    """The person who fills in forms, and the model, with all that they were asked."""

    def __init__(self, form: dict | None, sample: str | None) -> None:
        self.form, self.sample, self.asked = form, sample, []
        self.left = asyncio.Event()

    async def fill(self, message: str, schema: dict) -> types.ElicitResult:
        self.asked.append(message)
        if self.form["action"] == "leave":
            self.left.set()
            await asyncio.Event().wait()
        content = {key: value for key, value in self.form.get("content", {}).items() if key in schema["properties"]}
        accepts = self.form["action"] == "accept"
        return types.ElicitResult(action=self.form["action"], content=content if accepts else None)

    async def elicit(self, _context, params) -> types.ElicitResult:
        return await self.fill(params.message, params.requestedSchema if KIND == "sdk1" else params.requested_schema)

    async def elicit_fastmcp(self, message, _type, params, _context) -> types.ElicitResult:
        return await self.fill(message, params.requested_schema)

    async def create(self, _context, params) -> types.CreateMessageResult:
        self.asked.append(params.messages[0].content.text)
        return types.CreateMessageResult(role="assistant", content=types.TextContent(type="text", text=self.sample), model="test")

    async def create_fastmcp(self, messages, _params, _context) -> str:
        self.asked.append(messages[0].content.text)
        return self.sample


@asynccontextmanager
async def sdk1(url: str, headers: dict, person: Person, _tasks: bool):
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    callbacks = {
        "elicitation_callback": person.form and person.elicit,
        "sampling_callback": person.sample and person.create,
    }
    async with streamablehttp_client(url, headers) as (reads, writes, _), ClientSession(reads, writes, **callbacks) as session:
        await session.initialize()
        yield session.call_tool


@asynccontextmanager
async def sdk(url: str, headers: dict, person: Person, tasks: bool):
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    callbacks = {
        "elicitation_callback": person.form and person.elicit,
        "sampling_callback": person.sample and person.create,
    }
    async with create_mcp_http_client(headers) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=MODE, extensions=[follow(person)] if tasks else None, **callbacks) as client:
            yield client.call_tool


@asynccontextmanager
async def fastmcp(url: str, headers: dict, person: Person, tasks: bool):
    from fastmcp import Client
    from fastmcp.client.transports import StreamableHttpTransport

    callbacks = {
        "elicitation_handler": person.form and person.elicit_fastmcp,
        "sampling_handler": person.sample and person.create_fastmcp,
    }
    transport = StreamableHttpTransport(url, headers)
    async with Client(transport, mode=MODE, extensions=[follow(person)] if tasks else None, **callbacks) as client:
        yield client.call_tool_mcp


def follow(person: Person):
    """The tasks extension (SEP-2663): reads a task until it has ended, and answers what it asks."""
    from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim

    class Created(types.Result):
        result_type: Literal["task"]
        task_id: str

    class State(types.Result):
        status: str
        input_requests: types.InputRequests | None = None
        result: types.CallToolResult | None = None

    class Params(types.RequestParams):
        task_id: str
        input_responses: dict | None = None

    class Get(types.Request[Params, Literal["tasks/get"]]):
        method: Literal["tasks/get"] = "tasks/get"
        name_param = "taskId"

    class Update(types.Request[Params, Literal["tasks/update"]]):
        method: Literal["tasks/update"] = "tasks/update"
        name_param = "taskId"

    async def resolve(task: Created, context: ClaimContext) -> types.CallToolResult:
        while True:
            state = await context.session.send_request(Get(params=Params(task_id=task.task_id)), State)
            if not person.asked or person.asked[-1] != state.status:
                person.asked.append(state.status)
            if state.status == "input_required":
                answers = {}
                for key, request in state.input_requests.items():
                    answer = await person.fill(request.params.message, request.params.requested_schema)
                    answers[key] = answer.model_dump(by_alias=True, exclude_none=True)
                params = Params(task_id=task.task_id, input_responses=answers)
                await context.session.send_request(Update(params=params), types.EmptyResult)
            elif state.status != "working":
                return state.result

    class Tasks(ClientExtension):
        identifier = "io.modelcontextprotocol/tasks"

        def claims(self) -> list[ResultClaim]:
            return [ResultClaim(result_type="task", model=Created, resolve=resolve)]

    return Tasks()


async def execute(line: str) -> dict:
    call = json.loads(line)
    person = Person(call.get("form"), call.get("sample"))
    connect = {"sdk1": sdk1, "sdk": sdk, "fastmcp": fastmcp}[KIND]
    try:
        async with connect(call["url"], call["headers"], person, call.get("tasks", False)) as call_tool:
            called = asyncio.create_task(call_tool("codecall:execute", call["arguments"]))
            left = asyncio.create_task(person.left.wait())
            await asyncio.wait([called, left], return_when=asyncio.FIRST_COMPLETED)
            if person.left.is_set():
                print(json.dumps({"number": call["number"], "asked": person.asked}), flush=True)
            else:
                left.cancel()
            result = await called
    except Exception as error:
        return {"number": call["number"], "error": f"{type(error).__name__}: {error}"}
    body = result.structuredContent if KIND == "sdk1" else result.structured_content
    return {"number": call["number"], "asked": person.asked, "body": body}


async def main() -> None:
    async def answer(line: str) -> None:
        print(json.dumps(await execute(line)), flush=True)

    async with asyncio.TaskGroup() as calls:
        while line := await asyncio.to_thread(sys.stdin.readline):
            calls.create_task(answer(line))


asyncio.run(main())
