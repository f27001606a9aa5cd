// Calls the same tools with the official clients, over HTTP and standard input: node clients.mjs URL KEY PROGRAM CALLS.
// Prints a list of {client, version, tools, results}.
import { Client } from '@modelcontextprotocol/client';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Client as EarlierClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as EarlierStdio } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as EarlierHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [url, key, program, calls] = process.argv.slice(2);
const identity = { name: 'test', version: '1' };

const http = (Transport) =>
    new Transport(new URL(`${url}/mcp`), { requestInit: { headers: { Authorization: `Bearer ${key}` } } });
const stdio = (Transport) =>
    new Transport({
        command: program,
        args: ['mcp'],
        env: { ...process.env, TIDEMARK_URL: url, TIDEMARK_API_KEY: key },
    });

const mode = (mode) => new Client(identity, { versionNegotiation: { mode } });
const cases = [
    ['current over HTTP', mode('auto'), http(StreamableHTTPClientTransport)],
    ['pinned over HTTP', mode({ pin: '2026-07-28' }), http(StreamableHTTPClientTransport)],
    ['legacy over HTTP', mode('legacy'), http(StreamableHTTPClientTransport)],
    ['current over standard input', mode('auto'), stdio(StdioClientTransport)],
    ['legacy over standard input', mode('legacy'), stdio(StdioClientTransport)],
    ['earlier over HTTP', new EarlierClient(identity), http(EarlierHttp)],
    ['earlier over standard input', new EarlierClient(identity), stdio(EarlierStdio)],
];

const report = [];
for (const [name, client, transport] of cases) {
    await client.connect(transport);
    const { tools } = await client.listTools();
    const results = [];
    for (const call of JSON.parse(calls)) {
        // Checks the structured content with the tool's schema.
        const { structuredContent, isError, content } = await client.callTool(call);
        results.push(isError ? JSON.parse(content[0].text) : structuredContent);
    }
    const version = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null;
    report.push({ client: name, version, server: client.getServerVersion(), tools: tools.length, results });
    await client.close();
}
console.log(JSON.stringify(report));
