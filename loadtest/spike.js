// What happens beyond the limit? For half a minute far more is asked than the key may: what is refused must say when to
// come back (429 or 503 with Retry-After), nothing may break, and the minute after it must be as if nothing had been.
// TIDEMARK_API_KEY should be a key with the usual limit of 600 requests a minute, which refuses most of it with 429; how the
// 503 of too many questions looks is asked by crowd.js.

import http from 'k6/http';
import { check, sleep } from 'k6';
import { Counter, Trend } from 'k6/metrics';
import { get, retryable } from './lib/api.js';
import { period } from './lib/choice.js';
import { STATS, byRoute, summary } from './lib/summary.js';

const refused = new Counter('refused');
const answered = new Counter('answered');
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
    // The next clock minute, in which the key may ask again.
    recovery: { executor: 'per-vu-iterations', vus: 1, iterations: 1, startTime: '33s', maxDuration: '2m', exec: 'recovery' },
  },
  summaryTrendStats: STATS,
  thresholds: {
    checks: ['rate==1'],
    broken_answers: ['rate==0'],
    refused: ['count>0'],
    answered: ['count>0'],
    recovered_requests: ['p(99)<250'],
    ...byRoute(['GET /overview']),
  },
};

const ANY = http.expectedStatuses(200, 429, 503);

export function spike() {
  const answer = get('/overview', '/overview', period(), {}, ANY);
  (answer.status === 200 ? answered : refused).add(1);
  check(answer, {
    '200, 429 or 503': ({ status }) => status === 200 || status === 429 || status === 503,
    'a refusal says when to come back': (it) => it.status === 200 || retryable(it),
  });
}

export function recovery() {
  const { headers, status } = get('/overview', '/overview', { period: '30d' }, {}, ANY);
  // Who is refused waits as told. Who is not waits for the end of the window too: the spike may have used most of it.
  const ends = Number(headers['X-Ratelimit-Reset']) - Date.parse(headers.Date) / 1000;
  const left = status === 429 ? Number(headers['Retry-After']) : ends;
  check(left, { 'an answer says when the window ends': (seconds) => seconds <= 60 });
  // And a second for the clocks.
  sleep(Math.max(left, 0) + 1);
  for (let n = 0; n < 100; n += 1) {
    const answer = get('/overview', '/overview', { period: '30d' }, {}, ANY);
    check(answer, { 'afterwards all is answered': (it) => it.status === 200 });
    recovered.add(answer.timings.duration);
  }
}

export const handleSummary = summary('spike');
