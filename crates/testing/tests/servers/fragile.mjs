// A server over standard input and output whose tools break a promise each.
let counted = 0;
const hint = { readOnlyHint: true };
const text = { type: "object", properties: { text: { type: "string" } } };
const tools = [
  { name: "get_good", inputSchema: { ...text, required: ["text"], additionalProperties: false }, annotations: hint },
  { name: "get_crash", inputSchema: text, annotations: hint },
  { name: "get_trace", inputSchema: { type: "object", properties: {} }, annotations: hint },
  { name: "get_env", inputSchema: { type: "object", properties: {} }, annotations: hint },
  { name: "get_wrong", inputSchema: { type: "object", properties: {} }, annotations: hint },
  { name: "get_anything", inputSchema: { ...text, required: ["text"] }, annotations: hint },
  { name: "get_count", inputSchema: { type: "object", properties: {} }, annotations: hint },
  { name: "get_never", inputSchema: { type: "object", properties: {} }, annotations: hint },
  { name: "delete_all", inputSchema: { type: "object", properties: {} } },
];

const said = (text, isError = false) => ({ content: [{ type: "text", text }], isError });
const calls = {
  get_good: (input) => {
    const keys = input !== null && typeof input === "object" ? Object.keys(input) : [];
    return keys.length === 1 && typeof input.text === "string" ? said("good") : said("`text` is a text", true);
  },
  get_crash: ({ text }) => (String(text).includes("\u0000") ? process.exit(7) : said("fine")),
  get_trace: () => said(`Error: no\n    at get (file:///app/server.mjs:1:2)`, true),
  get_env: () => said(JSON.stringify(process.env)),
  get_wrong: () => ({ content: [{ type: "video" }] }),
  get_anything: () => said("whatever"),
  get_count: () => said(String(++counted)),
  delete_all: () => said("gone"),
};

const answer = ({ method, params }) => {
  if (method === "initialize") {
    const capabilities = { tools: {}, resources: {} };
    return { protocolVersion: params.protocolVersion, capabilities, serverInfo: { name: "fragile", version: "1" } };
  }
  if (method === "tools/list") return { tools };
  if (method === "resources/list") return { resources: [{ uri: "count://now", name: "count" }] };
  if (method === "resources/read") return { contents: [{ uri: "count://now", text: String(counted) }] };
  if (method === "ping") return {};
  if (method === "tools/call") return calls[params.name]?.(params.arguments ?? {});
};

let input = "";
process.stdin.setEncoding("utf8").on("data", (data) => {
  input += data;
  for (let end; (end = input.indexOf("\n")) >= 0; input = input.slice(end + 1)) {
    let message;
    try {
      message = JSON.parse(input.slice(0, end));
    } catch {
      console.log(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32700, message: "Parse error" } }));
      continue;
    }
    if (message.id === undefined || message.params?.name === "get_never") continue;
    const result = answer(message);
    const error = { code: -32601, message: "Method not found" };
    console.log(JSON.stringify({ jsonrpc: "2.0", id: message.id, ...(result ? { result } : { error }) }));
  }
});
