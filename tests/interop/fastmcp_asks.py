"""A small FastMCP server that asks its caller something during a call."""

from fastmcp import Context, FastMCP

mcp = FastMCP("asks")


@mcp.tool
async def greet(ctx: Context) -> str:
    """Greet the user by name."""
    answer = await ctx.elicit("What is your name?", response_type=str)
    return f"Hello, {answer.data}!" if answer.action == "accept" else f"Nobody: {answer.action}"


@mcp.tool
async def order(ctx: Context) -> str:
    """Order something, after two questions."""
    what = await ctx.elicit("What would you like?", response_type=str)
    how_many = await ctx.elicit("How many?", response_type=str)
    return f"{how_many.data} of {what.data}"


if __name__ == "__main__":
    mcp.run(show_banner=False)
