// Builds ui/dist: the page, its scripts and its styles, each also compressed. The same sources give the same bytes.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "esbuild";

const root = fileURLToPath(new URL(".", import.meta.url));
const dist = process.argv[2] ?? `${root}dist`;
/** Compressed sizes that the dashboard promises, in bytes. */
const MAX_BYTES = { js: 60 * 1024, css: 12 * 1024 };

// The modules of `start.ts` are in a file of their own, `start.js`, which runs before the rest is there. esbuild writes what two
// entry points share to such a file; the entry point `unused` has nothing else.
const { outputFiles } = await build({
  absWorkingDir: root,
  entryPoints: { app: "src/main.tsx", unused: "src/start.ts", style: "src/styles/index.css" },
  chunkNames: "start",
  splitting: true,
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
const outputs = new Map(outputFiles.map(({ path, text }) => [basename(path), text]));
const sizes = { js: 0, css: 0, html: 0 };

/** The entity tag that the server computes: it is part of the file's path. */
function entityTag(bytes) {
  return createHash("sha256").update(bytes).digest().subarray(0, 16).toString("base64url");
}

/** Writes a file, which may name `assets` by their paths, and returns its own path. */
function save(name, text, assets = {}) {
  const named = Object.entries(assets).reduce(
    (text, [asset, path]) => text.replace(new RegExp(`"\\.?/${asset}"`), `"${path}"`),
    text,
  );
  const bytes = Buffer.from(named);
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  writeFileSync(`${dist}/${name}`, bytes);
  writeFileSync(`${dist}/${name}.br`, brotli);
  writeFileSync(`${dist}/${name}.gz`, gzipSync(bytes, { level: 9 }));
  sizes[name.split(".").at(-1)] += brotli.length;
  console.log(`${name}: ${bytes.length} bytes, ${brotli.length} compressed`);
  return `/assets/${entityTag(bytes)}/${name}`;
}

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });
const start = save("start.js", outputs.get("start.js"));
const app = save("app.js", outputs.get("app.js"), { "start.js": start });
const style = save("style.css", outputs.get("style.css"));
save("index.html", readFileSync(`${root}index.html`, "utf8"), {
  "start.js": start,
  "app.js": app,
  "style.css": style,
});
for (const [kind, max] of Object.entries(MAX_BYTES)) {
  if (sizes[kind] > max) throw new Error(`${kind}: ${sizes[kind]} compressed bytes are more than ${max}`);
}
