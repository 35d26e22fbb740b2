// Labelled requests over the document of GitHub's API (crates/search/data/github), asked of `codecall:search`.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const document = join(process.cwd(), 'node_modules/@octokit/openapi/generated/api.github.com.json');
const cases = readFileSync(process.argv[2], 'utf8').trim().split('\n').map((line) => JSON.parse(line));
const file = join(mkdtempSync(join(tmpdir(), 'gatewright-search-')), 'gatewright.json');
writeFileSync(file, JSON.stringify({ apps: { github: { openapi: document } } }));
const gateway = spawn(process.env.GATEWRIGHT, ['serve', '--port', '0', '--no-watch', '--config', file], { stdio: ['ignore', 'ignore', 'pipe'] });
const address = await new Promise((resolve) => {
  let seen = '';
  gateway.stderr.on('data', (chunk) => {
    seen += chunk;
    const url = seen.match(/serving MCP on (http:\S+)/)?.[1];
    if (url && seen.includes('app is up')) resolve(url);
  });
});
const client = new Client({ name: 'search', version: '1' });
await client.connect(new StreamableHTTPClientTransport(new URL(address)));
const search = async (query) => {
  const result = await client.callTool({ name: 'codecall:search', arguments: { query, topK: 10 } });
  return result.structuredContent.tools.map((tool) => tool.name.split(':')[1]);
};
// The index follows the app.
while ((await search('issue')).length === 0) await new Promise((resolve) => setTimeout(resolve, 200));
// Names of tools are operation ids in which `/` is `_`.
const plain = (name) => name.replaceAll('/', '_');
const total = { at1: 0, at5: 0, ndcg: 0, ms: 0 };
for (const { query, relevant } of cases) {
  const begun = performance.now();
  const found = await search(query);
  total.ms += performance.now() - begun;
  const wanted = new Set(relevant.map(plain));
  const hits = found.map((name) => wanted.has(plain(name)));
  const recall = (most) => hits.slice(0, most).filter(Boolean).length / Math.min(wanted.size, most);
  const gain = (list) => list.reduce((sum, hit, at) => sum + (hit ? 1 / Math.log2(at + 2) : 0), 0);
  total.at1 += hits[0] ? 1 : 0;
  total.at5 += recall(5);
  total.ndcg += gain(hits) / gain(Array(Math.min(wanted.size, 10)).fill(true));
  if (!hits.slice(0, 5).includes(true)) console.log(`not among the first five: ${query} -> ${found.slice(0, 5).join(', ')}`);
}
const share = (sum) => ((100 * sum) / cases.length).toFixed(1);
console.log(`${cases.length} requests: first ${share(total.at1)} %, Recall@5 ${share(total.at5)} %, nDCG@10 ${share(total.ndcg)} %, ${(total.ms / cases.length).toFixed(1)} ms each`);
await client.close();
gateway.kill();
