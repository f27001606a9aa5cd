// Checks responses with what hey-api and openapi-typescript generate from the document: as values of the types of both, in a strict
// program of TypeScript, and with the schemas that hey-api generates for zod.
//
// Takes a folder with document.json and responses.json. Prints what differs, and fails if anything does.

import assert from "node:assert/strict";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { createClient } from "@hey-api/openapi-ts";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

const folder = process.argv[2];
const read = (name) => JSON.parse(readFileSync(join(folder, name), "utf8"));
const [document, responses] = [read("document.json"), read("responses.json")];
assert(responses.length > 0);
symlinkSync(join(import.meta.dirname, "node_modules"), join(folder, "node_modules"));
writeFileSync(join(folder, "package.json"), '{"type": "module"}');

await createClient({
  input: join(folder, "document.json"),
  output: join(folder, "hey-api"),
  plugins: ["@hey-api/typescript", "@hey-api/client-fetch", "@hey-api/sdk", "zod"],
  logs: { level: "silent" },
});
writeFileSync(join(folder, "schema.ts"), astToString(await openapiTS(document)));

const pascal = (name) => name[0].toUpperCase() + name.slice(1);
const values = responses.map(({ operation, status, body }, index) => {
  const text = JSON.stringify(body);
  const type = `operations["${operation}"]["responses"][${status}]["content"]["application/json"]`;
  return [
    `export const hey${index}: hey.${pascal(operation)}Responses[${status}] = ${text};`,
    `export const schema${index}: ${type} = ${text};`,
  ];
});
const imports = ['import type * as hey from "./hey-api/types.gen.js";', 'import type { operations } from "./schema.js";'];
writeFileSync(join(folder, "values.ts"), [...imports, ...values.flat()].join("\n"));

const options = {
  strict: true,
  noEmit: true,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  lib: ["lib.es2023.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"],
  types: [],
  skipLibCheck: true,
};
const program = ts.createProgram([join(folder, "values.ts"), join(folder, "hey-api/index.ts")], options);
const failures = ts.getPreEmitDiagnostics(program).map((problem) => {
  const place = problem.file?.getLineAndCharacterOfPosition(problem.start);
  return `${problem.file?.fileName}:${place?.line}: ${ts.flattenDiagnosticMessageText(problem.messageText, "\n").slice(0, 500)}`;
});

// The schemas read 64-bit integers as bigint.
const asJson = (value) => JSON.parse(JSON.stringify(value, (_, item) => (typeof item === "bigint" ? Number(item) : item)));
// Types of zod take longer to check than everything else.
const { outputText } = ts.transpileModule(readFileSync(join(folder, "hey-api/zod.gen.ts"), "utf8"), { compilerOptions: options });
writeFileSync(join(folder, "zod.js"), outputText);
const schemas = await import(pathToFileURL(join(folder, "zod.js")));
for (const { operation, path, body } of responses) {
  const parsed = schemas[`z${pascal(operation)}Response`].safeParse(body);
  try {
    assert(parsed.success, parsed.error?.message);
    // Fields that the document lacks are dropped.
    assert.deepEqual(asJson(parsed.data), body);
  } catch (error) {
    failures.push(`${path}: ${error.message.slice(0, 1000)}`);
  }
}
console.log(failures.join("\n"));
process.exit(failures.length === 0 ? 0 : 1);
