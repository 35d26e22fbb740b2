// An MCP server that asks a weather API over HTTPS. BREAK makes it wrong in one way, for the suite to find.
import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const broken = process.env.BREAK;
const api = broken === "url" ? "https://api.other.example" : "https://api.weather.example";

function weather() {
  const server = new McpServer({ name: "weather", version: "1.0.0" });
  server.registerTool(
    broken === "name" ? "wether" : "weather",
    { description: "The weather of a city", inputSchema: { city: z.string() } },
    async ({ city }) => {
      const answer = await fetch(`${api}/v1/now?city=${encodeURIComponent(city)}`);
      if (!answer.ok) throw new Error(`the weather API answered ${answer.status}`);
      const { degrees } = await answer.json();
      const unit = broken === "unit" ? "F" : "C";
      return { content: [{ type: "text", text: `${city}: ${degrees} °${unit}` }] };
    },
  );
  return server;
}

createServer(async (request, response) => {
  if (request.url !== "/mcp") return response.writeHead(404).end();
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on("close", () => transport.close());
  await weather().connect(transport);
  await transport.handleRequest(request, response);
}).listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => console.log("weather is up"));
