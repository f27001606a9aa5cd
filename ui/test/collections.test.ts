import assert from "node:assert/strict";
import { test } from "node:test";

import { handText, ruleText } from "../src/components/rule-text.ts";
import { money } from "../src/format.ts";
import type { Collection } from "../src/loads/collections.ts";
import { bodyOf, draftOf, hashtagsOf, ruleOf } from "../src/pages/editor/draft.ts";
import { isAt } from "../src/pages/editor/fields.tsx";
import { previewQueries } from "../src/pages/editor/preview.tsx";

const SUMMER: Collection = {
  id: "0198d1f2-6b3c-7a54-9d0e-3f2b8c1a7e65",
  type: "collection",
  name: "Summer",
  description: "Launch week",
  rule: {
    platform: "tiktok",
    account_ids: ["a", "b"],
    creator_ids: ["c"],
    category: "ambassadors",
    metadata: { team: "north" },
    hashtags: ["firstlight", "saltandtide"],
    q: "launch",
    media_types: ["video"],
    kind: "discovered",
    posted_after: "2026-06-01",
    posted_before: "2026-07-15T12:00:00Z",
    min_views: 1_000,
  },
  payout: {
    currency: "EUR",
    count: "lifetime",
    per_thousand_views: "4.50",
    bonuses: [{ views: 100_000, amount: "50" }],
    minimum_views: 0,
    maximum_per_video: null,
  },
  included_count: 1_200,
  excluded_count: 1,
  added_at: "2026-06-01T00:00:00Z",
  updated_at: "2026-06-01T00:00:00Z",
};

test("a collection that is saved without a change stays as it is", () => {
  const { name, description, rule, payout } = SUMMER;
  const hashtags = ["#firstlight", "#saltandtide"];
  assert.deepEqual(bodyOf(draftOf(SUMMER)), { name, description, rule: { ...rule, hashtags }, payout });
  const byHand = { ...SUMMER, rule: null, payout: null, description: null };
  assert.deepEqual(bodyOf(draftOf(byHand)), { name, description: null, rule: null, payout: null });
});

test("a condition that is not given is left out", () => {
  assert.deepEqual(ruleOf(draftOf(undefined).rule), {});
  const rule = { ...draftOf(undefined).rule, q: " launch ", min_views: "0", hashtags: ", #" };
  assert.deepEqual(ruleOf(rule), { q: "launch", min_views: 0 });
});

test("hashtags are apart by spaces or commas, each once", () => {
  assert.deepEqual(hashtagsOf(" #a,b\n＃c  #a #"), ["#a", "b", "＃c"]);
});

test("a preview asks once for each account and creator", () => {
  assert.deepEqual(previewQueries({}), [{}]);
  assert.deepEqual(previewQueries({ account_ids: ["a", "b"], creator_ids: ["c"], hashtags: ["x"], q: "y" }), [
    { q: "y", hashtag: ["x"], account_id: "a", creator_id: "c" },
    { q: "y", hashtag: ["x"], account_id: "b", creator_id: "c" },
  ]);
  assert.deepEqual(previewQueries({ metadata: { team: "north" } }), [
    { metadata: { "metadata.team": "north" } },
  ]);
  assert.equal(previewQueries({ account_ids: [..."abcdef"], creator_ids: [..."ghij"] }), null);
});

test("a problem is at its field or at one that it is a part of", () => {
  const problem = { field: "rule.account_ids[1]", message: "must be a UUID" };
  assert.ok(isAt("rule.account_ids", problem) && isAt("rule", problem));
  assert.ok(!isAt("rule.account", problem) && !isAt("payout", problem));
});

test("a rule is said in words", () => {
  assert.equal(
    ruleText(SUMMER.rule),
    "#firstlight or #saltandtide · caption has “launch” · on TikTok · of 2 accounts · of 1 creator · of the category ambassadors · tagged team: north · video · found on accounts · posted from 1 Jun 2026 · posted until 15 Jul 2026 · at least 1\u2009000 views",
  );
  assert.equal(ruleText({}), "every post");
  assert.equal(ruleText(null), "chosen by hand");
  assert.match(ruleText({ hashtags: [..."abcdef"] }), /^#a, #b, #c or 3 others$/);
  assert.equal(handText(SUMMER), "1\u2009200 included by hand · 1 excluded by hand");
});

test("an amount keeps its decimals", () => {
  assert.equal(money("1234567.50", "EUR"), "1\u2009234\u2009567.50\u00a0EUR");
  assert.equal(money("1481", "JPY"), "1\u2009481\u00a0JPY");
  assert.equal(money("0.0005", "CLF"), "0.0005\u00a0CLF");
});
