// More analytics queries than permits (TIDEMARK_ANALYTICS_CONCURRENCY). Windows are random, so no response is cached, and the
// arrival rate is constant; the API needs TIDEMARK_ROLLUP_CACHE=0, because answers from memory need no permit. A query without
// a permit after three seconds must get 503 with Retry-After; lists must stay fast (p99 below 250 ms), and afterwards every
// query must succeed. TIDEMARK_API_KEY needs a high rate limit. If nothing is rejected, the load is too small: raise
// QUESTIONS_PER_SECOND.

import http from 'k6/http';
import { check } from 'k6';
import { Counter } from 'k6/metrics';
import { get, ok, retryable } from './lib/api.js';
import { days, inventory } from './lib/choice.js';
import { STATS, byRoute, summary } from './lib/summary.js';

const RATE = Number(__ENV.QUESTIONS_PER_SECOND || 100);
const SECONDS = Number(__ENV.SECONDS || 10);
// The longest response time in seconds, including three seconds for a permit.
const MAX_RESPONSE_SECONDS = 5;

const succeeded = new Counter('succeeded');
const unavailable = new Counter('unavailable');

export const options = {
  scenarios: {
    crowd: {
      executor: 'constant-arrival-rate',
      rate: RATE,
      timeUnit: '1s',
      duration: `${SECONDS}s`,
      // One client for each query that may wait at once: k6 drops iterations without a free client.
      preAllocatedVUs: RATE * MAX_RESPONSE_SECONDS,
      exec: 'crowd',
    },
    // Also at a constant rate, so that a slow response does not delay the next request.
    records: {
      executor: 'constant-arrival-rate',
      rate: 25,
      timeUnit: '1s',
      duration: `${SECONDS}s`,
      preAllocatedVUs: 25 * MAX_RESPONSE_SECONDS,
      exec: 'records',
    },
    afterwards: {
      executor: 'per-vu-iterations',
      vus: 1,
      iterations: 20,
      startTime: `${SECONDS + MAX_RESPONSE_SECONDS}s`,
      exec: 'afterwards',
    },
  },
  summaryTrendStats: STATS,
  thresholds: {
    checks: ['rate==1'],
    broken_responses: ['rate==0'],
    succeeded: ['count>0'],
    unavailable: ['count>0'],
    dropped_iterations: ['count==0'],
    ...byRoute(['GET /overview', 'GET /accounts']),
    'http_req_duration{name:GET /accounts}': ['p(99)<250'],
  },
};

export function setup() {
  inventory(1);
}

const ANY = http.expectedStatuses(200, 503);

export function crowd() {
  const response = get('/overview', '/overview', days(7, 180), {}, ANY);
  (response.status === 200 ? succeeded : unavailable).add(1);
  check(response, {
    '200 or 503': ({ status }) => status === 200 || status === 503,
    'a rejection has Retry-After': (it) => it.status === 200 || retryable(it),
  });
}

export function records() {
  ok(get('/accounts', '/accounts', { limit: 25 }));
}

export function afterwards() {
  const response = get('/overview', '/overview', days(7, 180));
  check(response, { 'all requests succeed afterwards': ({ status }) => status === 200 });
}

export const handleSummary = summary('crowd');
