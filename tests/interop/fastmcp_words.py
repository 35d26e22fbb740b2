"""A small FastMCP server: words of a text."""

from fastmcp import FastMCP

mcp = FastMCP("words")


@mcp.tool
def count_words(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


@mcp.tool
def shout(text: str) -> str:
    """Write a text in capitals, with an exclamation mark."""
    return text.upper() + "!"


if __name__ == "__main__":
    mcp.run(show_banner=False)
