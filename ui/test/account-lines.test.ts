import assert from "node:assert/strict";
import { test } from "node:test";

import { parseLines } from "../src/pages/accounts/lines.ts";

function parse(text: string) {
  return parseLines(text, "instagram").map(
    ({ text, platform, isPlatformKnown }) => `${platform}${isPlatformKnown ? "" : "?"} ${text}`,
  );
}

test("a link or a word in the line says the platform", () => {
  assert.deepEqual(
    parse("@salt.and.tide\nhttps://www.tiktok.com/@salt.and.tide\nTikTok salt\nsalt\tig\ntide, tt"),
    [
      "instagram? @salt.and.tide",
      "tiktok https://www.tiktok.com/@salt.and.tide",
      "tiktok salt",
      "instagram salt",
      "tiktok tide",
    ],
  );
  assert.deepEqual(parse("https://mytiktok.community/x"), ["instagram? https://mytiktok.community/x"]);
});

test("a platform's name alone is a username", () => {
  assert.deepEqual(parse("tiktok\nig, insta"), ["instagram? tiktok", "instagram? ig", "instagram? insta"]);
});

test("commas separate accounts, spaces do not", () => {
  assert.deepEqual(parse("one, two;three\r\nnot a name"), [
    "instagram? one",
    "instagram? two",
    "instagram? three",
    "instagram? not a name",
  ]);
});

test("commas separate links, too", () => {
  assert.deepEqual(parse("https://www.tiktok.com/@a, https://www.tiktok.com/@b;instagram.com/c"), [
    "tiktok https://www.tiktok.com/@a",
    "tiktok https://www.tiktok.com/@b",
    "instagram instagram.com/c",
  ]);
});

test("empty lines and repetitions are left out", () => {
  assert.deepEqual(parse("\n  one \n\nONE\ntiktok one\n,"), ["instagram? one", "tiktok one"]);
});

test("a line stays as it was pasted", () => {
  assert.deepEqual(
    parseLines("tiktok  @salt", "instagram").map(({ source }) => source),
    ["tiktok  @salt"],
  );
});
