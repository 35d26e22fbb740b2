// Sends the sockets of Node versions that know no NODE_USE_ENV_PROXY to the test's proxy. TLS keeps the host's name (SNI),
// plain HTTP its Host header, so the proxy knows where they were to go.
"use strict";
const [major, minor] = process.versions.node.split(".").map(Number);
const knowsProxies = major > 24 || (major === 24 && minor >= 5) || (major === 22 && minor >= 21);
const proxy = process.env.HTTPS_PROXY;
if (!knowsProxies && proxy) {
  const net = require("node:net");
  const { hostname, port } = new URL(proxy);
  const local = (host) => !host || host === "localhost" || host === "::1" || host.startsWith("127.");
  const connect = net.Socket.prototype.connect;
  net.Socket.prototype.connect = function (...args) {
    const normal = Array.isArray(args[0]) ? args[0] : net._normalizeArgs(args);
    const options = normal[0];
    if (options && !options.path && options.port && !local(options.host)) {
      normal[0] = { ...options, host: hostname, port: Number(port), lookup: undefined };
    }
    return connect.call(this, normal);
  };
}
