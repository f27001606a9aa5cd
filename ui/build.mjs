// Builds ui/dist: the page, its script and its styles, each also compressed. The same sources give the same bytes.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "esbuild";

const root = fileURLToPath(new URL(".", import.meta.url));
const dist = process.argv[2] ?? `${root}dist`;
/** Compressed sizes that the dashboard promises, in bytes. */
const MAX_BYTES = { "app.js": 60 * 1024, "style.css": 12 * 1024 };

const { outputFiles } = await build({
  absWorkingDir: root,
  entryPoints: { app: "src/main.tsx", style: "src/styles/index.css" },
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022", "chrome123", "firefox120", "safari17.5"],
  outdir: "dist",
  write: false,
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
});

/** The entity tag that the server computes: it is part of the file's path. */
function entityTag(bytes) {
  return createHash("sha256").update(bytes).digest().subarray(0, 16).toString("base64url");
}

function save(name, bytes) {
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  writeFileSync(`${dist}/${name}`, bytes);
  writeFileSync(`${dist}/${name}.br`, brotli);
  writeFileSync(`${dist}/${name}.gz`, gzipSync(bytes, { level: 9 }));
  const max = MAX_BYTES[name] ?? Infinity;
  console.log(`${name}: ${bytes.length} bytes, ${brotli.length} compressed`);
  if (brotli.length > max) throw new Error(`${name} is larger than ${max} bytes`);
}

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });
let page = readFileSync(`${root}index.html`, "utf8");
for (const { path, contents } of outputFiles) {
  const name = path.split("/").at(-1);
  save(name, Buffer.from(contents));
  page = page.replace(`/${name}`, `/assets/${entityTag(contents)}/${name}`);
}
save("index.html", Buffer.from(page));
