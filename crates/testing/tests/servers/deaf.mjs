// A server over standard input and output that reads nothing and ends by no signal but SIGKILL; with an argument it shakes hands before.
process.on("SIGTERM", () => {});
setInterval(() => {}, 1000);
if (process.argv.length > 2) {
  process.stdin.setEncoding("utf8").once("data", (data) => {
    process.stdin.pause();
    const { id, params } = JSON.parse(data);
    const serverInfo = { name: "deaf", version: "1" };
    const result = { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo };
    console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
  });
}
