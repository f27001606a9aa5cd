// Degradation over time: a light mixed load for DURATION (an hour by default). The first and the last tenth must be fast, and the
// p50 of an observer's queries in the last tenth must stay below 1.5 times that of the first.

import { sleep } from 'k6';
import { Trend } from 'k6/metrics';
import { get, ok, page, requireScope, send } from './lib/api.js';
import { days, inventory, pick, excerpt, period, sample } from './lib/choice.js';
import { STATS, byRoute, summary } from './lib/summary.js';

const DURATION = __ENV.DURATION || '1h';
const RATE = Number(__ENV.LOOKS_PER_SECOND || 5);
const seconds = toSeconds(DURATION);
const tenth = Math.max(1, Math.floor(seconds / 10));

// By query. k6 cannot compare its own metrics with each other, so the observer does.
const slowdown = new Trend('p50_last_over_first');

function toSeconds(text) {
  const units = { h: 3600, m: 60, s: 1 };
  return Array.from(text.matchAll(/(\d+)([hms])/g)).reduce((sum, [, count, unit]) => sum + count * units[unit], 0);
}

// A part of the run with a tag of its own, for separate metrics.
function phase(name, startTime, duration) {
  return {
    executor: 'constant-arrival-rate',
    rate: RATE,
    timeUnit: '1s',
    startTime: `${startTime}s`,
    duration: `${duration}s`,
    preAllocatedVUs: 10,
    maxVUs: 100,
    tags: { phase: name },
  };
}

export const options = {
  scenarios: {
    first: phase('first', 0, tenth),
    middle: phase('middle', tenth, Math.max(1, seconds - 2 * tenth)),
    last: phase('last', seconds - tenth, tenth),
    observer: { executor: 'per-vu-iterations', vus: 1, iterations: 1, maxDuration: `${seconds + 60}s`, exec: 'observe' },
  },
  summaryTrendStats: STATS,
  thresholds: {
    checks: ['rate==1'],
    broken_responses: ['rate==0'],
    http_req_failed: ['rate==0'],
    dropped_iterations: ['count==0'],
    'http_req_duration{phase:first}': ['p(99)<250'],
    'http_req_duration{phase:last}': ['p(99)<250'],
    // Both are 0 without a comparison.
    p50_last_over_first: ['min>0', 'max<1.5'],
    ...byRoute(['GET /overview', 'GET /creators/top', 'GET /account-videos', 'POST /videos/metrics', 'GET /search']),
  },
};

export function setup() {
  requireScope('write');
  return inventory(2000, ['accounts', 'videos', 'captions']);
}

export default function ({ accounts, videos, captions }) {
  const window = period();
  page([
    ['/overview', '/overview', window],
    ['/analytics/timeseries', '/analytics/timeseries', window],
    ['/creators/top', '/creators/top', window],
    ['/account-videos', '/account-videos', { order_by: 'view_count', limit: 50 }],
  ]).forEach((response) => ok(response));
  ok(get('/accounts/{account_id}/analytics', `/accounts/${pick(accounts)}/analytics`, { period: '30d' }));
  ok(send('POST', '/videos/metrics', '/videos/metrics', { video_ids: sample(videos, 50), period: '30d' }));
  ok(get('/search', '/search', { q: excerpt(pick(captions), 6) }));
}

// Uncached queries: a cached response would not measure the query.
function uncachedQueries({ videos, captions }) {
  const responses = {
    'GET /overview': get('/overview', '/overview', days(7, 180)),
    'GET /account-videos': get('/account-videos', '/account-videos', { order_by: 'view_count', limit: 50 }),
    'POST /videos/metrics': send('POST', '/videos/metrics', '/videos/metrics', {
      video_ids: sample(videos, 50),
      period: 'custom',
      ...days(7, 180),
    }),
  };
  responses['GET /search'] = get('/search', '/search', { q: excerpt(pick(captions), 6) });
  return responses;
}

// The p50 by query, sent twice a second until a time.
function medians(found, until) {
  const times = {};
  do {
    for (const [name, response] of Object.entries(uncachedQueries(found))) {
      ok(response);
      (times[name] ??= []).push(response.timings.duration);
    }
    sleep(0.5);
  } while (Date.now() < until);
  const middle = (all) => all.sort((a, b) => a - b)[Math.floor(all.length / 2)];
  return Object.fromEntries(Object.entries(times).map(([name, all]) => [name, middle(all)]));
}

export function observe(found) {
  const started = Date.now();
  const first = medians(found, started + tenth * 1000);
  sleep(seconds - 2 * tenth);
  const last = medians(found, started + seconds * 1000);
  for (const name of Object.keys(first)) {
    slowdown.add(last[name] / first[name], { name });
    console.info(`${name}: p50 ${first[name].toFixed(1)} ms in the first tenth, ${last[name].toFixed(1)} ms in the last`);
  }
}

export const handleSummary = summary('soak');
