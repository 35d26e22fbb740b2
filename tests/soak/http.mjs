// A small HTTP/1.1 client over bare sockets: node:http takes as much of the processor as the server that it is to load.
// It keeps connections and stops to use one in time when the server says how long it keeps it (`Keep-Alive: timeout=`), as node:http does.

import { connect } from "node:net";

/// Stops to use a connection that long before the server does, in milliseconds.
const SPARE = 1_000;
const MODERN = "2026-07-28";
const OLD = "2025-11-25";

class Connection {
  constructor(pool) {
    this.pool = pool;
    this.waiting = undefined;
    this.got = undefined;
    this.until = Infinity;
    this.socket = connect(pool.port, "127.0.0.1");
    this.socket.setNoDelay(true);
    this.socket.on("data", (data) => this.read(data));
    this.socket.on("error", (error) => this.fail(error));
    this.socket.on("close", () => this.fail(new Error("socket hang up")));
  }

  ask(text, timeout) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.fail(new Error("no answer in time")), timeout);
      this.waiting = { resolve, reject, timer };
      this.socket.write(text);
    });
  }

  fail(error) {
    this.pool.remove(this);
    this.socket.destroy();
    if (!this.waiting) return;
    const { reject, timer } = this.waiting;
    this.waiting = undefined;
    clearTimeout(timer);
    reject(error);
  }

  read(data) {
    this.got = this.got ? Buffer.concat([this.got, data]) : data;
    const answer = parse(this.got);
    if (!answer) return;
    this.got = undefined;
    if (!this.waiting) return this.fail(new Error("an answer nobody asked for"));
    const { resolve, timer } = this.waiting;
    this.waiting = undefined;
    clearTimeout(timer);
    const kept = answer.head.match(/\r\nkeep-alive: timeout=(\d+)/i);
    this.until = kept ? Date.now() + Number(kept[1]) * 1_000 - SPARE : Infinity;
    if (/\r\nconnection: close/i.test(answer.head)) {
      this.pool.remove(this);
      this.socket.end();
    } else {
      this.pool.free.push(this);
    }
    resolve(answer);
  }
}

/// The answer in `bytes`, when it is whole.
function parse(bytes) {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const head = bytes.latin1Slice(0, end);
  const status = Number(head.slice(9, 12));
  const body = end + 4;
  if (/\r\ntransfer-encoding: chunked/i.test(head)) {
    const chunks = [];
    for (let at = body; ; ) {
      const line = bytes.indexOf("\r\n", at);
      if (line < 0) return undefined;
      const size = parseInt(bytes.latin1Slice(at, line), 16);
      const from = line + 2;
      if (bytes.length < from + size + 2) return undefined;
      if (size === 0) return { status, head, text: Buffer.concat(chunks).toString() };
      chunks.push(bytes.subarray(from, from + size));
      at = from + size + 2;
    }
  }
  const length = Number(head.match(/\r\ncontent-length: (\d+)/i)?.[1] ?? 0);
  return bytes.length < body + length ? undefined : { status, head, text: bytes.utf8Slice(body, body + length) };
}

/// The JSON-RPC message of an answer, of either kind.
function message(text) {
  const events = text.startsWith("{") ? [] : text.split("\n").filter((line) => /^data: ?\{/.test(line));
  const json = text.startsWith("{") ? text : events.at(-1)?.replace(/^data: ?/, "");
  return json ? JSON.parse(json) : undefined;
}

/// Connections to one server.
export class Client {
  constructor(port, { timeout = 20_000 } = {}) {
    this.port = port;
    this.timeout = timeout;
    this.free = [];
    this.all = new Set();
  }

  remove(connection) {
    this.all.delete(connection);
    const at = this.free.indexOf(connection);
    if (at >= 0) this.free.splice(at, 1);
  }

  /// Ends every connection.
  close() {
    for (const connection of [...this.all]) connection.fail(new Error("closed"));
  }

  connection() {
    const now = Date.now();
    for (let one = this.free.pop(); one; one = this.free.pop()) {
      if (now < one.until) return one;
      one.fail(new Error("kept for too long"));
    }
    const fresh = new Connection(this);
    this.all.add(fresh);
    return fresh;
  }

  /// One exchange; `{status, head, message}`. Throws when the connection breaks; nothing is repeated.
  async exchange(method, path, headers, body) {
    let head = `${method} ${path} HTTP/1.1\r\nhost: 127.0.0.1:${this.port}\r\naccept: application/json, text/event-stream\r\n`;
    for (const [name, value] of Object.entries(headers)) head += `${name}: ${value}\r\n`;
    if (body !== undefined) head += `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`;
    const { status, head: got, text } = await this.connection().ask(`${head}\r\n${body ?? ""}`, this.timeout);
    return { status, head: got, message: message(text) };
  }

  /// A request of the era without sessions.
  modern(method, params, token) {
    const meta = {
      "io.modelcontextprotocol/protocolVersion": MODERN,
      "io.modelcontextprotocol/clientCapabilities": {},
      "io.modelcontextprotocol/clientInfo": { name: "soak", version: "1" },
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: meta } });
    const name = params.name ? { "mcp-name": params.name } : {};
    const headers = { authorization: `Bearer ${token}`, "mcp-protocol-version": MODERN, "mcp-method": method, ...name };
    return this.exchange("POST", "/mcp", headers, body);
  }

  /// A request, or a notification, of the older era; without a session it opens one.
  old(session, method, params, token) {
    const id = method.startsWith("notifications/") ? {} : { id: 1 };
    const body = JSON.stringify({ jsonrpc: "2.0", ...id, method, ...(params ? { params } : {}) });
    return this.exchange("POST", "/mcp", this.inSession(session, token), body);
  }

  /// Ends a session.
  end(session, token) {
    return this.exchange("DELETE", "/mcp", this.inSession(session, token));
  }

  inSession(session, token) {
    const held = session ? { "mcp-session-id": session, "mcp-protocol-version": OLD } : {};
    return { authorization: `Bearer ${token}`, ...held };
  }
}

/// Messages that open a session.
export const INITIALIZE = { protocolVersion: OLD, capabilities: {}, clientInfo: { name: "soak", version: "1" } };
export const sessionOf = (head) => head.match(/\r\nmcp-session-id: ([^\r]+)/i)?.[1];
