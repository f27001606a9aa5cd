// Checks that what is committed fits: types of the API, format and lints, types of the code, tests, and the bundle in dist.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { build } from "esbuild";

const root = fileURLToPath(new URL(".", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "dashboard-"));
const run = (program, ...parameters) => execFileSync(program, parameters, { cwd: root, stdio: "inherit" });
const tool = (name, ...parameters) => run(join(root, "node_modules/.bin", name), ...parameters);

function requireSame(name, expected, found, advice) {
  if (!expected.equals(found)) throw new Error(`${name} is not current: ${advice}`);
}

try {
  const types = join(folder, "schema.d.ts");
  tool("openapi-typescript", "../docs/openapi.json", "-o", types, "--export-type", "--alphabetize");
  requireSame(
    "src/api/schema.d.ts",
    readFileSync(types),
    readFileSync(join(root, "src/api/schema.d.ts")),
    "run make ui-types",
  );
  tool("biome", "check", "--error-on-warnings");
  tool("tsc");

  const tests = readdirSync(join(root, "test"))
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => join(root, "test", name));
  const bundles = join(folder, "tests");
  await build({
    entryPoints: tests,
    bundle: true,
    platform: "node",
    format: "esm",
    outdir: bundles,
    outExtension: { ".js": ".mjs" },
    logLevel: "error",
  });
  run(
    process.execPath,
    "--test",
    ...readdirSync(bundles)
      .filter((name) => name.endsWith(".mjs"))
      .map((name) => join(bundles, name)),
  );

  const dist = join(folder, "dist");
  run(process.execPath, "build.mjs", dist);
  const names = readdirSync(dist);
  requireSame(
    "dist",
    Buffer.from(names.join()),
    Buffer.from(readdirSync(join(root, "dist")).join()),
    "run make ui",
  );
  for (const name of names.filter((name) => !/\.(br|gz)$/.test(name))) {
    const committed = (ending) => readFileSync(join(root, "dist", name + ending));
    const expected = readFileSync(join(dist, name));
    requireSame(`dist/${name}`, expected, committed(""), "run make ui");
    requireSame(`dist/${name}.br`, expected, brotliDecompressSync(committed(".br")), "run make ui");
    requireSame(`dist/${name}.gz`, expected, gunzipSync(committed(".gz")), "run make ui");
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
