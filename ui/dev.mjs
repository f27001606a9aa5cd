// Serves the dashboard's sources in front of a running program, for work on the dashboard: `npm run dev [URL of the program]`.
// Each load of a page builds it anew.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";

const program = new URL(process.argv[2] ?? "http://127.0.0.1:8080");
const port = Number(process.env.PORT ?? 8081);
const root = fileURLToPath(new URL(".", import.meta.url));
const dist = mkdtempSync(join(tmpdir(), "dashboard-"));
process.on("SIGINT", () => process.exit());
process.on("exit", () => rmSync(dist, { recursive: true, force: true }));

const TYPES = { ".js": "text/javascript", ".css": "text/css" };
const PROGRAM_PATHS = /^\/(v2|docs|media|export|import|health)(\/|$)/;

async function sendPage(response) {
  execFileSync(process.execPath, ["build.mjs", dist], { cwd: root, stdio: "inherit" });
  const served = await fetch(program);
  response.writeHead(200, {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": served.headers.get("content-security-policy"),
  });
  response.end(readFileSync(join(dist, "index.html")));
}

createServer((incoming, response) => {
  const path = new URL(incoming.url, program).pathname;
  if (PROGRAM_PATHS.test(path)) {
    const options = { method: incoming.method, headers: incoming.headers, path: incoming.url };
    const passed = request(program, options, (answer) =>
      answer.pipe(response.writeHead(answer.statusCode, answer.headers)),
    );
    passed.on("error", (cause) => response.headersSent || response.writeHead(502).end(String(cause)));
    // A stream ends with its page.
    response.on("close", () => passed.destroy());
    incoming.pipe(passed);
  } else if (path.startsWith("/assets/")) {
    const name = path.split("/").at(-1);
    response.writeHead(200, { "Content-Type": TYPES[extname(name)] }).end(readFileSync(join(dist, name)));
  } else {
    sendPage(response).catch((cause) => response.writeHead(500).end(String(cause)));
  }
}).listen(port, "127.0.0.1", () =>
  console.log(`http://127.0.0.1:${port} shows the dashboard of ${program.href}`),
);
