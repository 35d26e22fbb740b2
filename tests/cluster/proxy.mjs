// A plain round-robin TCP proxy: connection by connection, no stickiness, no look into what passes.
// A backend that refuses the connection is passed over, as load balancers do.

import { createServer, connect } from "node:net";
import { once } from "node:events";

/// Listens on a port of loopback, a free one by default; gives the port, how many connections each backend got, and an end.
export async function proxy(ports, port = 0) {
  const counts = ports.map(() => 0);
  const open = new Set();
  let turn = 0;
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    open.add(client);
    client.on("close", () => open.delete(client));
    client.on("error", () => {});
    const first = turn++;
    const next = (tried) => {
      if (tried === ports.length) return client.destroy();
      const at = (first + tried) % ports.length;
      const backend = connect({ port: ports[at], host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
      backend.once("error", () => (backend.connected ? client.destroy() : next(tried + 1)));
      backend.once("connect", () => {
        backend.connected = true;
        if (client.destroyed) return backend.destroy();
        counts[at] += 1;
        client.pipe(backend);
        backend.pipe(client);
        backend.on("error", () => client.destroy());
        backend.on("close", () => client.destroy());
        client.on("close", () => backend.destroy());
      });
    };
    next(0);
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const stop = async () => {
    for (const socket of open) socket.destroy();
    server.close();
    await once(server, "close");
  };
  return { port: server.address().port, counts, stop };
}

// node proxy.mjs PORT...: says its own port, and runs until it is killed.
if (process.argv[1] === import.meta.filename) {
  console.log((await proxy(process.argv.slice(2).map(Number))).port);
}
