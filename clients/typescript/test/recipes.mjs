// Type-checks and runs the recipes of the README with an installed client. Arguments: a folder where tidemark-client is installed,
// and the folder of TypeScript. Prints what each recipe prints.

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, tools] = process.argv.slice(2);
const ts = createRequire(join(tools, "node_modules/"))("typescript");
const page = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const recipes = [...page.matchAll(/```ts\n(.*?)```/gs)].map(([, code], index) => {
  const file = join(folder, `recipe-${index + 1}.ts`);
  writeFileSync(file, code);
  return file;
});
// A line of each that must not compile.
const wrong = [
  'await tidemark.get("/account");',
  'await tidemark.get("/accounts/{account_id}");',
  'await tidemark.get("/accounts", { platform: "myspace" });',
  'await tidemark.get("/events/stream");',
  'await tidemark.post("/accounts", { body: { platform: "tiktok" } });',
  '(await tidemark.get("/meta")).data.absent;',
  'tidemark.list("/overview");',
  'tidemark.export("/accounts");',
].map((line, index) => {
  const file = join(folder, `wrong-${index + 1}.ts`);
  writeFileSync(
    file,
    `import { Tidemark } from "tidemark-client";\nconst tidemark = new Tidemark();\n${line}\n`,
  );
  return file;
});

const options = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  typeRoots: [join(tools, "node_modules/@types")],
  types: ["node"],
  skipLibCheck: true,
};
const esm = { target: options.target, module: ts.ModuleKind.ESNext };
const program = ts.createProgram([...recipes, ...wrong], options);
const problems = ts.getPreEmitDiagnostics(program);
const unexpected = problems.filter(({ file }) => !wrong.includes(file?.fileName));
for (const { file, messageText } of unexpected)
  console.error(file?.fileName, ts.flattenDiagnosticMessageText(messageText, "\n"));
const compiled = wrong.filter((file) => !problems.some((problem) => problem.file?.fileName === file));
for (const file of compiled) console.error(`compiles: ${readFileSync(file, "utf8")}`);
if (unexpected.length > 0 || compiled.length > 0) process.exit(1);

process.chdir(folder);
for (const [index, file] of recipes.entries()) {
  const script = file.replace(/ts$/, "mjs");
  writeFileSync(script, ts.transpileModule(readFileSync(file, "utf8"), { compilerOptions: esm }).outputText);
  console.log(`recipe ${index + 1}`);
  await import(script);
}
