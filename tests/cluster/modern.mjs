// In front of a server of both eras: makes it one that knows the 2026-07-28 era only, so that the gateway speaks that to it.

import { createServer, request } from "node:http";
import { once } from "node:events";

/// Passes everything on to `port` but `initialize`, which such a server does not know; gives its address and an end.
export async function modernOnly(port) {
  const open = new Set();
  const server = createServer(async (from, to) => {
    const chunks = [];
    for await (const chunk of from) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const { id, method } = body.length ? JSON.parse(body) : {};
    if (method === "initialize") {
      const error = { code: -32601, message: "there is no `initialize` in this era" };
      to.writeHead(200, { "content-type": "application/json" });
      return to.end(JSON.stringify({ jsonrpc: "2.0", id, error }));
    }
    const headers = { ...from.headers, host: `127.0.0.1:${port}` };
    // A connection of its own: a server may close one that is kept at the moment it is used again.
    const passed = request({ port, host: "127.0.0.1", path: from.url, method: from.method, headers, agent: false }, (answer) => {
      to.writeHead(answer.statusCode, answer.headers);
      answer.pipe(to);
    });
    passed.on("error", () => to.destroy());
    to.on("close", () => passed.destroy());
    passed.end(body);
  });
  server.on("connection", (socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const stop = async () => {
    for (const socket of open) socket.destroy();
    server.close();
    await once(server, "close");
  };
  return { url: `http://127.0.0.1:${server.address().port}/mcp`, stop };
}
