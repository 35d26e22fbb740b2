"""FastMCP with its code mode and the 200 tools in the same process. Argument: the port."""

import sys
from typing import Annotated, Any

from fastmcp import FastMCP
from fastmcp.experimental.transforms.code_mode import CodeMode
from fastmcp.tools import Tool
from pydantic import Field

from tools import ID, LIMIT, TOOLS, answer


def tool(name, description):
    def call(id: Annotated[str, Field(description=ID)], limit: Annotated[int, Field(description=LIMIT)] = 10) -> dict[str, Any]:
        return answer(name, id, limit)

    return Tool.from_function(call, name=name, description=description)


server = FastMCP("peers", transforms=[CodeMode()])
for each in TOOLS:
    server.add_tool(tool(*each))
server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="warning")
