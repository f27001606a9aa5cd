import assert from "node:assert/strict";
import { test } from "node:test";

import { matchParts } from "../src/components/highlighted.tsx";

const marked = (text: string, ...needles: string[]) =>
  matchParts(text, needles)
    .map(({ text, isMatch }) => (isMatch ? `[${text}]` : text))
    .join("");

test("what is looked for is marked, in any case and wherever it is", () => {
  assert.equal(marked("First swell, SWELL two", "swell"), "First [swell], [SWELL] two");
  assert.equal(marked("القهوة العربية", "العربية"), "القهوة [العربية]");
  assert.equal(marked("(a+b)", "a+b"), "([a+b])");
  assert.equal(marked("one two three", "three", "one"), "[one] two [three]");
});

test("what stands before a late match is cut off", () => {
  assert.equal(marked(`${"x".repeat(40)} swell and more`, "swell"), `…${"x".repeat(11)} [swell] and more`);
  assert.equal(marked(`${"x".repeat(23)} swell`, "swell"), `${"x".repeat(23)} [swell]`);
});

test("a text without a match stays as it is", () => {
  assert.equal(marked("x".repeat(99), "swell"), "x".repeat(99));
  assert.equal(marked("swell", ""), "swell");
  assert.equal(marked("swell"), "swell");
});
