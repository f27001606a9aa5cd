// Runs scenarios of the conformance suite, which sends no key, through a proxy that adds one: node conformance.mjs URL KEY
// SCENARIOS, with scenarios as VERSION:NAME. Prints a list of {version, scenario, checks}.
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [url, key, ...scenarios] = process.argv.slice(2);
const folder = import.meta.dirname;
const suite = join(folder, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');

const proxy = createServer((incoming, response) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${key}` };
    const outgoing = request(new URL(incoming.url, url), { method: incoming.method, headers }, (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
    });
    outgoing.on('error', () => response.destroy());
    incoming.pipe(outgoing);
});
await new Promise((listening) => proxy.listen(0, '127.0.0.1', listening));
const target = `http://127.0.0.1:${proxy.address().port}/mcp`;

async function run(version, scenario) {
    const output = await mkdtemp(join(tmpdir(), 'conformance-'));
    const args = ['--import', join(folder, 'globsync.mjs'), suite, 'server', '--url', target];
    args.push('--spec-version', version, '--scenario', scenario, '--output-dir', output);
    const log = await new Promise((ended) => {
        execFile(process.execPath, args, { maxBuffer: 1 << 26 }, (_error, stdout, stderr) => ended(stdout + stderr));
    });
    const files = (await readdir(output, { recursive: true })).filter((name) => name.endsWith('checks.json'));
    const checks = files.length === 1 ? JSON.parse(await readFile(join(output, files[0]), 'utf8')) : [];
    await rm(output, { recursive: true });
    const shown = checks.map(({ id, status, errorMessage }) => ({ id, status, errorMessage }));
    return { version, scenario, checks: shown, ...(shown.length === 0 && { log }) };
}

const report = [];
for (const one of scenarios) {
    const [version, scenario] = one.split(':');
    report.push(await run(version, scenario));
}
console.log(JSON.stringify(report));
proxy.close();
