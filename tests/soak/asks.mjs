// An MCP server of revision 2026-07-28 whose tool asks for a name before it answers. It keeps nothing: any copy of it takes the answer.

import { createInterface } from "node:readline";

const tool = { name: "ask", description: "Asks who you are.", inputSchema: { type: "object" } };
const question = {
  name: {
    method: "elicitation/create",
    params: { mode: "form", message: "Who?", requestedSchema: { type: "object", properties: { name: { type: "string" } } } },
  },
};

const answers = {
  "server/discover": () => ({
    supportedVersions: ["2026-07-28"],
    capabilities: { tools: {} },
    ttlMs: 60_000,
    cacheScope: "private",
    serverInfo: { name: "asks", version: "1" },
  }),
  "tools/list": () => ({ tools: [tool], ttlMs: 60_000, cacheScope: "private" }),
  "tools/call": ({ inputResponses }) => {
    if (!inputResponses) return { resultType: "input_required", inputRequests: question, requestState: "asked" };
    return { content: [], structuredContent: { name: inputResponses.name?.content?.name ?? "nobody" } };
  },
  ping: () => ({}),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const result = answers[method]?.(params ?? {});
  const body = result ? { result: { resultType: "complete", ...result } } : { error: { code: -32601, message: "no such method" } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...body })}\n`);
}
