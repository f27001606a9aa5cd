// Beyond the rate limit: for half a minute far more requests than the key allows. Rejections must have Retry-After (429 or 503),
// nothing may break, and the next minute must be normal. TIDEMARK_API_KEY needs the default limit of 600 requests a minute.
// crowd.js covers 503 for too many analytics queries.

import http from 'k6/http';
import { check, sleep } from 'k6';
import { Counter, Trend } from 'k6/metrics';
import { get, retryable } from './lib/api.js';
import { period } from './lib/choice.js';
import { STATS, byRoute, summary } from './lib/summary.js';

const rejected = new Counter('rejected');
const succeeded = new Counter('succeeded');
const recovered = new Trend('recovered_requests', true);

export const options = {
  scenarios: {
    spike: {
      executor: 'ramping-arrival-rate',
      startRate: 10,
      timeUnit: '1s',
      preAllocatedVUs: 100,
      maxVUs: 500,
      stages: [
        { target: Number(__ENV.REQUESTS_PER_SECOND || 400), duration: '5s' },
        { target: Number(__ENV.REQUESTS_PER_SECOND || 400), duration: '25s' },
        { target: 0, duration: '2s' },
      ],
      exec: 'spike',
    },
    // The next clock minute, in which the key has requests left again.
    recovery: { executor: 'per-vu-iterations', vus: 1, iterations: 1, startTime: '33s', maxDuration: '2m', exec: 'recovery' },
  },
  summaryTrendStats: STATS,
  thresholds: {
    checks: ['rate==1'],
    broken_responses: ['rate==0'],
    rejected: ['count>0'],
    succeeded: ['count>0'],
    recovered_requests: ['p(99)<250'],
    ...byRoute(['GET /overview']),
  },
};

const ANY = http.expectedStatuses(200, 429, 503);

export function spike() {
  const response = get('/overview', '/overview', period(), {}, ANY);
  (response.status === 200 ? succeeded : rejected).add(1);
  check(response, {
    '200, 429 or 503': ({ status }) => status === 200 || status === 429 || status === 503,
    'a rejection has Retry-After': (it) => it.status === 200 || retryable(it),
  });
}

export function recovery() {
  const { headers, status } = get('/overview', '/overview', { period: '30d' }, {}, ANY);
  // Wait for Retry-After or, without a rejection, for the end of the window, because the spike may have used most of it.
  const ends = Number(headers['X-Ratelimit-Reset']) - Date.parse(headers.Date) / 1000;
  const left = status === 429 ? Number(headers['Retry-After']) : ends;
  check(left, { 'a response says when the window ends': (seconds) => seconds <= 60 });
  // One second for clock differences.
  sleep(Math.max(left, 0) + 1);
  for (let n = 0; n < 100; n += 1) {
    const response = get('/overview', '/overview', { period: '30d' }, {}, ANY);
    check(response, { 'all requests succeed afterwards': (it) => it.status === 200 });
    recovered.add(response.timings.duration);
  }
}

export const handleSummary = summary('spike');
