import assert from "node:assert/strict";
import { test } from "node:test";
import { contentFilters, sortOf } from "../src/components/content-rows.ts";
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

test("a gain sorts the ranking, everything else the list", () => {
  assert.deepEqual(sortOf(view("")), { order_by: null, metric: "views", direction: "desc", text: "-views" });
  assert.deepEqual(sortOf(view("metric=likes")), {
    order_by: null,
    metric: "likes",
    direction: "desc",
    text: "-likes",
  });
  assert.deepEqual(sortOf(view("sort=-comments&metric=likes")), {
    order_by: null,
    metric: "comments",
    direction: "desc",
    text: "-comments",
  });
  assert.deepEqual(sortOf(view("sort=create_time")), {
    order_by: "create_time",
    metric: "views",
    direction: "asc",
    text: "create_time",
  });
  assert.equal(sortOf(view("sort=-love")).text, "-views");
});
