// Does anything wear out? A quiet mixture for as long as one likes (DURATION, an hour by default). Its first and its last
// tenth have to be quick, and what an observer asks in both must not become slower: the p50 of each question in the last
// tenth stays below 1.5 times that in the first.

import { sleep } from 'k6';
import { Trend } from 'k6/metrics';
import { get, ok, page, send } from './lib/api.js';
import { days, inventory, one, part, period, some } from './lib/choice.js';
import { STATS, byRoute, summary } from './lib/summary.js';

const DURATION = __ENV.DURATION || '1h';
const RATE = Number(__ENV.LOOKS_PER_SECOND || 5);
const seconds = toSeconds(DURATION);
const tenth = Math.max(1, Math.floor(seconds / 10));

// By question. k6 does not compare its own figures with one another; who asks can.
const slowdown = new Trend('p50_last_over_first');

function toSeconds(text) {
  const units = { h: 3600, m: 60, s: 1 };
  return Array.from(text.matchAll(/(\d+)([hms])/g)).reduce((sum, [, count, unit]) => sum + count * units[unit], 0);
}

// A part of the run with a name of its own, so that its figures are too.
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
    broken_answers: ['rate==0'],
    http_req_failed: ['rate==0'],
    dropped_iterations: ['count==0'],
    'http_req_duration{phase:first}': ['p(99)<250'],
    'http_req_duration{phase:last}': ['p(99)<250'],
    // Without a comparison both are 0.
    p50_last_over_first: ['min>0', 'max<1.5'],
    ...byRoute(['GET /overview', 'GET /creators/top', 'GET /account-videos', 'POST /videos/metrics', 'GET /search']),
  },
};

export function setup() {
  return inventory(2000);
}

export default function ({ accounts, videos, captions }) {
  const window = period();
  page([
    ['/overview', '/overview', window],
    ['/analytics/timeseries', '/analytics/timeseries', window],
    ['/creators/top', '/creators/top', window],
    ['/account-videos', '/account-videos', { order_by: 'view_count', limit: 50 }],
  ]).forEach((answer) => ok(answer));
  ok(get('/accounts/{account_id}/analytics', `/accounts/${one(accounts)}/analytics`, { period: '30d' }));
  ok(send('POST', '/videos/metrics', '/videos/metrics', { video_ids: some(videos, 50), period: '30d' }));
  if (captions.length) ok(get('/search', '/search', { q: part(one(captions), 6) }));
}

// Nothing of it is answered from memory, which would tell of what was asked before and not of what it costs.
function questions({ videos, captions }) {
  const asked = {
    'GET /overview': get('/overview', '/overview', days(7, 180)),
    'GET /account-videos': get('/account-videos', '/account-videos', { order_by: 'view_count', limit: 50 }),
    'POST /videos/metrics': send('POST', '/videos/metrics', '/videos/metrics', {
      video_ids: some(videos, 50),
      period: 'custom',
      ...days(7, 180),
    }),
  };
  if (captions.length) asked['GET /search'] = get('/search', '/search', { q: part(one(captions), 6) });
  return asked;
}

// The p50 by question, asked twice a second until then.
function medians(found, until) {
  const times = {};
  do {
    for (const [name, answer] of Object.entries(questions(found))) {
      ok(answer);
      (times[name] ??= []).push(answer.timings.duration);
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
    console.info(`${name}: p50 ${first[name].toFixed(1)} ms at first, ${last[name].toFixed(1)} ms in the end`);
  }
}

export const handleSummary = summary('soak');
