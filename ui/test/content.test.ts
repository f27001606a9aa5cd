import assert from "node:assert/strict";
import { test } from "node:test";
import { accountOrder } from "../src/loads/account-rows.ts";
import { contentFilters, contentMetric, contentOrder } from "../src/loads/content-rows.ts";
import { creatorOrder } from "../src/loads/creator-rows.ts";
import { parseView } from "../src/state/view.ts";

function view(query: string) {
  return parseView("/content", query);
}

test("filters of the address become parameters of the API", () => {
  const query =
    "platform=tiktok&account_id=a&creator_id=c&kind=tracked&media_type=reel,image&posted_after=2026-01-01&posted_before=2026-02-01" +
    "&min_views=1000&q=salt&is_active=false&is_unavailable=true&layout=grid&sort=-likes";
  assert.deepEqual(contentFilters(view(query)), {
    platform: "tiktok",
    account_id: "a",
    creator_id: "c",
    kind: "tracked",
    media_type: ["reel", "image"],
    posted_after: "2026-01-01",
    posted_before: "2026-02-01",
    min_views: 1000,
    q: "salt",
    is_active: false,
    is_unavailable: true,
  });
  assert.deepEqual(contentFilters(view("")), {});
});

test("invalid filters are left out", () => {
  assert.deepEqual(contentFilters(view("kind=both&min_views=-3&is_active=maybe")), {});
  assert.deepEqual(contentFilters(view("min_views=1e999")), {});
});

test("a metric sorts the ranking, everything else the list", () => {
  assert.deepEqual(contentOrder(view("")), { metric: "views", direction: "desc", text: "-views" });
  assert.deepEqual(contentOrder(view("metric=likes")).metric, "likes");
  assert.deepEqual(contentOrder(view("sort=-comments&metric=likes")).text, "-comments");
  assert.deepEqual(contentOrder(view("sort=create_time")), {
    field: "create_time",
    direction: "asc",
    text: "create_time",
  });
  assert.equal(contentMetric(view("sort=create_time&metric=likes")), "likes");
  assert.equal(contentOrder(view("sort=-love")).text, "-views");
});

test("a search or a filter that the ranking lacks shows the list", () => {
  assert.equal(accountOrder(parseView("/accounts", "")).text, "-views");
  assert.equal(accountOrder(parseView("/accounts", "sort=-likes&q=salt")).text, "-likes");
  assert.equal(accountOrder(parseView("/accounts", "sort=-views&failure=transient")).text, "-follower_count");
  assert.equal(accountOrder(parseView("/accounts", "sort=username&linked=true")).text, "username");
  assert.equal(creatorOrder(parseView("/creators", "sort=-followers")).metric, "followers");
  assert.equal(creatorOrder(parseView("/creators", "sort=-followers&q=salt")).field, "name");
  assert.equal(creatorOrder(parseView("/creators", "sort=name&q=salt&category=coffee")).metric, "views");
  assert.equal(creatorOrder(parseView("/creators", "sort=name&metadata.team=north")).metric, "views");
});
