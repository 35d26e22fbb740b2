// A small MCP server over standard input and output, without dependencies. BUG says which defect it has.
import readline from "node:readline";

const bug = process.env.BUG ?? "";
const key = process.env.WEATHER_KEY;
let balance = 100;

const object = (properties, required = []) => ({ type: "object", properties, required, additionalProperties: false });
function tools() {
  const weather = {
    name: "weather",
    inputSchema: object({ city: { type: "string", minLength: 1 } }, ["city"]),
    outputSchema: object({ city: { type: "string" }, degrees: { type: "number" } }, ["city", "degrees"]),
  };
  const all = [weather, { name: "withdraw", inputSchema: object({ amount: { type: "integer" } }, ["amount"]) }];
  const break_ = {
    "schema-without-type": () => delete weather.inputSchema.type,
    "schema-true": () => (weather.inputSchema.properties.city = true),
    "schema-unknown-type": () => (weather.inputSchema.properties.city = { type: "strng" }),
    "schema-required-no-list": () => (weather.inputSchema.required = "city"),
    "schema-that-nothing-fits": () => (weather.inputSchema.required = ["town"]),
    "schema-lost-reference": () => (weather.inputSchema.properties.city = { $ref: "#/$defs/City" }),
    "description-null": () => (weather.description = null),
    "output-schema-unknown-type": () => (weather.outputSchema.properties.degrees = { type: "numbr" }),
    "output-schema-of-a-list": () => (weather.outputSchema = { type: "array" }),
    "duplicate-tool": () => all.push({ ...weather }),
  }[bug];
  break_?.();
  return all;
}

const text = (value) => ({ content: [{ type: "text", text: typeof value === "string" ? value : JSON.stringify(value) }] });
const failed = (value) => ({ ...text(value), isError: true });
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function weather({ city }) {
  const structured = (degrees) => ({ ...text({ city, degrees }), structuredContent: { city, degrees } });
  if (typeof city !== "string") return bug === "swallowed-argument" ? structured(0) : failed("`city` is a text");
  if (bug === "secret-in-log") console.error(`asking with the key ${key}`);
  let degrees = 0;
  try {
    const url = `https://api.weather.example/now?city=${encodeURIComponent(city)}`;
    const answer = await fetch(url, { headers: { "x-key": key } });
    if (!answer.ok && bug !== "swallowed-status") throw new Error(`the weather service says ${answer.status}`);
    degrees = (await answer.json()).degrees ?? 0;
  } catch (error) {
    if (bug === "swallowed-failure") return structured(0);
    if (bug === "failure-as-text") return text(`Error: ${error.message}`);
    if (bug === "secret-in-error") return failed(`${error.message} (key ${key})`);
    return failed(bug === "stack-in-error" ? error.stack : error.message);
  }
  if (bug === "output-of-another-type") return { ...text("x"), structuredContent: { city, degrees: String(degrees) } };
  if (bug === "output-missing") return text({ city, degrees });
  if (bug === "environment-in-meta") return { ...structured(degrees), _meta: { env: process.env } };
  if (bug === "unknown-block") return { ...structured(degrees), content: [{ type: "json", json: {} }] };
  return structured(degrees);
}

async function withdraw({ amount }) {
  const left = balance;
  if (left < amount) return failed("not enough");
  if (bug === "race") await pause(20);
  balance = left - amount;
  return text(String(balance));
}

async function answer({ method, params }) {
  if (method === "initialize") {
    const serverInfo = { name: "defects", version: "1" };
    return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo };
  }
  if (method === "ping") return {};
  if (method === "tools/list") return { tools: tools() };
  if (method === "tools/call") {
    const tool = { weather, withdraw }[params.name];
    if (tool) return tool(params.arguments ?? {});
    if (bug === "swallowed-unknown-tool") return text("");
    throw Object.assign(new Error(`Unknown tool: ${params.name}`), { code: -32602 });
  }
  if (bug === "swallowed-method") return {};
  throw Object.assign(new Error("Method not found"), { code: -32601 });
}

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
for await (const line of readline.createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.id === undefined) continue;
  answer(message).then(
    (result) => send({ id: message.id, result }),
    ({ code = -32603, message: said }) => send({ id: message.id, error: { code, message: said } }),
  );
}
