import assert from "node:assert/strict";
import { test } from "node:test";

import { copyPath } from "../src/components/picture.tsx";

test("only copies are shown, from the server of the page", () => {
  const path = `/media/${"0a".repeat(32)}.webp`;
  for (const base of ["http://127.0.0.1:8080", "https://api.example", "https://api.example/tidemark", ""])
    assert.equal(copyPath(base + path), path);
  const others = [
    null,
    undefined,
    "",
    "https://cdn.example/pictures/salt.and.tide.jpg",
    `https://cdn.example${path}?expires=1`,
    `https://cdn.example${path}#`,
    "/media/0a.webp",
    path.replace(".webp", ".jpg"),
    path.toUpperCase(),
    `https://cdn.example/0a${path.slice(7)}`,
    `${path}\n`,
  ];
  for (const url of others) assert.equal(copyPath(url), null, String(url));
});
