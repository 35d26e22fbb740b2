// Sends the sockets of Node versions that know no NODE_USE_ENV_PROXY to the test's proxy. TLS keeps the host's name (SNI),
// plain HTTP its Host header, so the proxy knows where they were to go.
"use strict";
const [major, minor] = process.versions.node.split(".").map(Number);
const knowsProxies = major > 24 || (major === 24 && minor >= 5) || (major === 22 && minor >= 21);
const proxy = process.env.HTTPS_PROXY;
if (!knowsProxies && proxy) {
  const net = require("node:net");
  const { hostname, port } = new URL(proxy);
  const proxyPort = Number(port);
  const local = (host) => !host || host === "localhost" || host === "::1" || host.startsWith("127.");
  const mocked = (process.env.GATEWRIGHT_MOCKED_PORTS || "").split(",");
  const direct = ({ host, port }) =>
    local(host) && (Number(port) === proxyPort || !(mocked.includes("*") || mocked.includes(String(port))));
  const connect = net.Socket.prototype.connect;
  net.Socket.prototype.connect = function (...args) {
    const normal = Array.isArray(args[0]) ? args[0] : net._normalizeArgs(args);
    const options = normal[0];
    if (options && !options.path && options.port && !direct(options)) {
      normal[0] = { ...options, host: hostname, port: proxyPort, lookup: undefined };
    }
    return connect.call(this, normal);
  };
}
