"""A FastMCP server as its introduction shows it: typed arguments, a model as result, a resource, a template and a prompt."""

import sys

from fastmcp import FastMCP
from pydantic import BaseModel

mcp = FastMCP("sample")


class Forecast(BaseModel):
    city: str
    degrees: float


@mcp.tool(annotations={"readOnlyHint": True})
def forecast(city: str, days: int = 1) -> Forecast:
    """Tells the weather."""
    return Forecast(city=city, degrees=20.5 + days)


@mcp.tool(annotations={"readOnlyHint": True})
def divide(a: float, b: float) -> float:
    """Divides two numbers."""
    return a / b


@mcp.resource("note://welcome")
def welcome() -> str:
    return "welcome"


@mcp.resource("note://{name}")
def note(name: str) -> str:
    return f"a note about {name}"


@mcp.prompt
def greet(who: str) -> str:
    return f"Greet {who}."


if sys.argv[1:] == ["http"]:
    mcp.run(transport="http", host="127.0.0.1", port=18733)
else:
    mcp.run()
