import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

// Tests run in the folder of the dashboard.
const FILES = readdirSync("src", { recursive: true, encoding: "utf8" }).map((name) => join("src", name));
const MODULES = FILES.filter((name) => name.endsWith(".module.css"));

/** The classes of a module's selectors, except those of the style sheets. */
function classesOf(css: string): string[] {
  const selectors = css.replace(/\/\*.*?\*\/|:global\([^)]*\)|\{[^{}]*\}/gs, " ");
  return [...selectors.matchAll(/\.([a-z][\w-]*)/gi)].map(([, name]) => name ?? "");
}

/** The classes of modules that a script refers to, each after the path of its module. */
function usedClasses(path: string): string[] {
  const text = readFileSync(path, "utf8");
  return [...text.matchAll(/import \* as (\w+) from "(.+\.module\.css)"/g)].flatMap(([, css, from = ""]) =>
    [...text.matchAll(new RegExp(`\\b${css}\\.(\\w+)`, "g"))].map(
      ([, name]) => `${join(dirname(path), from)}: ${name}`,
    ),
  );
}

test("classes of a style sheet's selectors are found", () => {
  const css = `/* .no */ .a > :global(.no):hover + b.c-1:not(.d) { margin: 0.5em; }
    @media (width < 10.5rem) { .e, .f::before { content: ".no"; } }`;
  assert.deepEqual(classesOf(css), ["a", "c-1", "d", "e", "f"]);
});

test("a component uses every class of a CSS module", () => {
  const used = new Set(FILES.filter((name) => /\.tsx?$/.test(name)).flatMap(usedClasses));
  const all = MODULES.flatMap((path) =>
    classesOf(readFileSync(path, "utf8")).map((name) => `${path}: ${name}`),
  );
  assert.ok(all.length > 100, "modules have classes");
  assert.deepEqual(
    [...new Set(all)].filter((name) => !used.has(name)),
    [],
  );
});
