// Builds ui/dist: the page, its scripts and its styles, each also compressed. The same sources give the same bytes.

import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "esbuild";

const root = fileURLToPath(new URL(".", import.meta.url));
const dist = process.argv[2] ?? `${root}dist`;
/** Compressed sizes that the dashboard promises, in bytes: of the scripts of any page, of all scripts, of the styles. */
const MAX_BYTES = { page: 60 * 1024, scripts: 140 * 1024, styles: 12 * 1024 };

/** Folders whose modules any page may use. */
const SHARED = ["api", "charts", "components", "loads", "state"];
const shared = readdirSync(`${root}src`, { recursive: true, withFileTypes: true })
  .filter(({ name, parentPath }) => /\.tsx?$/.test(name) && SHARED.includes(basename(parentPath)))
  .map(({ name, parentPath }) => `./src/${basename(parentPath)}/${name}`)
  .filter((path) => !path.endsWith(".d.ts"))
  .sort();

/**
 * Makes one file of what pages share: every page refers to all of it. Otherwise each combination of pages with a module in common
 * would be a file.
 */
const core = {
  name: "core",
  setup(build) {
    build.onResolve({ filter: /^core$/ }, () => ({ path: "core", namespace: "core" }));
    build.onLoad({ filter: /.*/, namespace: "core" }, () => {
      const modules = shared.map((path, index) => `export * as m${index} from "${path}";\n`);
      return { contents: `import "./src/start.ts";\n${modules.join("")}`, resolveDir: root };
    });
    build.onLoad({ filter: /src\/(main|pages\/\w+)\.tsx$/ }, ({ path }) => ({
      contents: `${readFileSync(path, "utf8")}\nexport * as core from "core";`,
      loader: "tsx",
    }));
  },
};

// What `start.ts` needs is in `start.js`, which runs before the rest is there: esbuild writes what entry points have in common to a
// file, and the entry point `unused` has nothing else.
const { outputFiles, metafile } = await build({
  absWorkingDir: root,
  entryPoints: { app: "src/main.tsx", unused: "src/start.ts" },
  chunkNames: "[name]-[hash]",
  splitting: true,
  bundle: true,
  minify: true,
  metafile: true,
  format: "esm",
  target: ["es2022", "chrome123", "firefox120", "safari17.5"],
  outdir: "dist",
  write: false,
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  logOverride: { "import-is-undefined": "error" },
  plugins: [core],
});
const texts = new Map(outputFiles.map(({ path, text }) => [`dist/${basename(path)}`, text]));

/** The name of a file, which stays the same when its content changes. */
function nameOf(output) {
  const { entryPoint, inputs } = metafile.outputs[output];
  if (entryPoint) return output === "dist/app.js" ? "app.js" : `${basename(entryPoint, ".tsx")}.js`;
  return "src/start.ts" in inputs ? "start.js" : "core.js";
}

/** The entity tag that the server computes: it is part of the file's path. */
function entityTag(bytes) {
  return createHash("sha256").update(bytes).digest().subarray(0, 16).toString("base64url");
}

/** Compressed sizes, by name. */
const sizes = {};

/** Writes a file, and returns its path on the server. */
function save(name, text) {
  if (name in sizes)
    throw new Error(`${name} would be two files: move what some pages share to src/{${SHARED.join()}}`);
  const bytes = Buffer.from(text);
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  writeFileSync(`${dist}/${name}`, bytes);
  writeFileSync(`${dist}/${name}.br`, brotli);
  writeFileSync(`${dist}/${name}.gz`, gzipSync(bytes, { level: 9 }));
  sizes[name] = brotli.length;
  console.log(`${name}: ${bytes.length} bytes, ${brotli.length} compressed`);
  return `/assets/${entityTag(bytes)}/${name}`;
}

const paths = new Map();

/** Saves a script after those that it imports, whose paths it names. */
function saveScript(output) {
  if (paths.has(output)) return;
  let text = texts.get(output);
  for (const { path } of metafile.outputs[output].imports) {
    saveScript(path);
    text = text.replaceAll(`"./${basename(path)}"`, `"${paths.get(path)}"`);
  }
  paths.set(output, save(nameOf(output), text));
}

/** Refuses a file that is larger than promised. */
function requireAtMost(max, name, names) {
  const size = names.reduce((sum, name) => sum + sizes[name], 0);
  console.log(`${name}: ${size} of ${max} compressed bytes`);
  if (size > max) throw new Error(`${name}: ${size} compressed bytes are more than ${max}`);
}

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });
saveScript("dist/app.js");
const assets = new Map([...paths].map(([output, path]) => [nameOf(output), path]));
const scripts = [...assets.keys()];
assets.set("style.css", save("style.css", texts.get("dist/app.css")));
save(
  "index.html",
  readFileSync(`${root}index.html`, "utf8").replace(
    /"\/(\w+\.(js|css))"/g,
    (_, name) => `"${assets.get(name)}"`,
  ),
);

const common = ["start.js", "core.js", "app.js"];
const pages = scripts.filter((name) => !common.includes(name));
const largest = pages.reduce((largest, name) => (sizes[name] > sizes[largest] ? name : largest));
requireAtMost(MAX_BYTES.page, `first load of ${largest}`, [...common, largest]);
requireAtMost(MAX_BYTES.scripts, "all scripts", scripts);
requireAtMost(MAX_BYTES.styles, "styles", ["style.css"]);
