// Does anything wear out? A quiet mixture for as long as one likes (DURATION, an hour by default): the last part of the
// run has to be as quick as the first.

import { get, ok, page, send } from './lib/api.js';
import { inventory, one, part, period, some } from './lib/choice.js';
import { STATS, byRoute, summary } from './lib/summary.js';

const DURATION = __ENV.DURATION || '1h';
const RATE = Number(__ENV.LOOKS_PER_SECOND || 5);
const seconds = toSeconds(DURATION);
const tenth = Math.max(1, Math.floor(seconds / 10));

function toSeconds(text) {
  const units = { h: 3600, m: 60, s: 1 };
  return Array.from(text.matchAll(/(\d+)([hms])/g)).reduce((sum, [, count, unit]) => sum + count * units[unit], 0);
}

// A part of the run with a name of its own, so that the first can be compared with the last.
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
  },
  summaryTrendStats: STATS,
  thresholds: {
    checks: ['rate==1'],
    broken_answers: ['rate==0'],
    http_req_failed: ['rate==0'],
    dropped_iterations: ['count==0'],
    'http_req_duration{phase:first}': ['p(99)<250'],
    'http_req_duration{phase:last}': ['p(99)<250'],
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

export const handleSummary = summary('soak');
