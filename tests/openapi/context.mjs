// `gatewright eval context` for a task over GitHub's whole API: all operations as tools, against the four meta-tools.
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const person = (login) => ({ login, id: 1, html_url: `https://github.com/${login}`, type: 'User', site_admin: false });
const issue = (number) => ({
  number, id: 1000 + number, title: `Crash when the list is empty (${number})`, state: 'open', html_url: `https://github.com/o/r/issues/${number}`,
  user: person('ada'), labels: [{ id: 1, name: 'bug', color: 'd73a4a', default: true }], assignee: null, comments: number % 7,
  created_at: '2026-01-02T03:04:05Z', updated_at: '2026-02-03T04:05:06Z', body: 'It crashes with an empty list. '.repeat(20),
});
const server = createServer((request, response) => {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(request.url.includes('/issues') ? Array.from({ length: 30 }, (_, at) => issue(at + 1)) : {}));
}).listen(0, '127.0.0.1', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gatewright-context-'));
  const config = join(folder, 'gatewright.json');
  const tasks = join(folder, 'tasks.json');
  const openapi = join(process.cwd(), 'node_modules/@octokit/openapi/generated/api.github.com.json');
  writeFileSync(config, JSON.stringify({ apps: { github: { openapi, baseUrl: `http://127.0.0.1:${server.address().port}`, allowPrivate: true } } }));
  const input = { owner: 'o', repo: 'r', labels: 'bug', state: 'open' };
  const script = `const issues = await callTool("github:issues_list-for-repo", ${JSON.stringify(input)});\nreturn issues.filter((issue) => issue.comments === 0).map((issue) => issue.title);`;
  const turn = { ask: 'list the open issues of a repository that have the label bug', calls: [{ tool: 'github:issues_list-for-repo', input }], plan: { script } };
  writeFileSync(tasks, JSON.stringify({ tasks: [{ name: 'whole GitHub API', apps: ['github'], turns: [turn] }] }));
  const run = spawn(process.env.GATEWRIGHT, ['eval', 'context', '--config', config, '--tasks', tasks], { stdio: ['ignore', 'inherit', 'ignore'] });
  run.on('exit', (code) => process.exit(code));
});
