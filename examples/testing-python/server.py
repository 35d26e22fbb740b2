"""A FastMCP server for notes. BREAK makes it wrong in one way, for the suite to find."""

import os

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError

BROKEN = os.environ.get("BREAK")
mcp = FastMCP("notes")
notes = {"1": "buy tea"}


@mcp.tool
def read_note(id: str) -> str:
    """Reads a note."""
    if id not in notes and BROKEN != "missing":
        raise ToolError(f"there is no note {id}")
    text = notes.get(id, "")
    return text.upper() if BROKEN == "text" else text


@mcp.resource("note://{id}", mime_type="text/html" if BROKEN == "mime" else "text/plain")
def note(id: str) -> str:
    return notes[id]


@mcp.prompt
def summarize(id: str) -> str:
    """Asks for a summary of a note."""
    return f"Summarize: {notes[id]}"


if __name__ == "__main__":
    mcp.run(transport="http", host="127.0.0.1", port=int(os.environ.get("PORT", "3000")), show_banner=False)
