import assert from "node:assert/strict";
import { test } from "node:test";

import { COUNTER_METRICS, chartOf, metricOf, SERIES_METRICS, shortFormat } from "../src/state/metrics.ts";

test("metrics are shown as what they are", () => {
  assert.equal(shortFormat("views")(1_200), "+1.20k");
  assert.equal(shortFormat("new_posts")(1_200), "1.20k");
  assert.equal(shortFormat("engagement_rate")(0.0483), "4.83\u2009%");
  assert.equal(shortFormat("followers")(null), "–");
});

test("followers are a level, everything else belongs to its day", () => {
  assert.deepEqual(
    [chartOf("followers").title, chartOf("followers").base],
    ["Followers at the end of each day", "least"],
  );
  assert.deepEqual([chartOf("views").title, chartOf("views").base], ["Views per day", "zero"]);
  assert.equal(chartOf("engagement_rate").isRate, true);
});

test("a metric that something does not have falls back to views", () => {
  assert.equal(metricOf(SERIES_METRICS, "followers"), "followers");
  assert.equal(metricOf(SERIES_METRICS, "engagement_rate"), "views");
  assert.equal(metricOf(COUNTER_METRICS, "followers"), "views");
  assert.equal(metricOf(COUNTER_METRICS, undefined), "views");
});
