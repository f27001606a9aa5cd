// What happens with more questions than there are places (TIDEMARK_ANALYTICS_CONCURRENCY)? Each is a new one, so that none is
// answered from memory, and they come whether or not the ones before were answered. Who gets no turn within three seconds
// must be told when to come back (503 with Retry-After); whoever reads records must notice nothing (p99 below 250 ms), and
// afterwards every question must be answered. TIDEMARK_API_KEY has to be a key that no limit holds back. Where nobody is
// refused, the load was too small: raise QUESTIONS_PER_SECOND.

import http from 'k6/http';
import { check } from 'k6';
import { Counter } from 'k6/metrics';
import { get, ok, retryable } from './lib/api.js';
import { days } from './lib/choice.js';
import { STATS, byRoute, summary } from './lib/summary.js';

const RATE = Number(__ENV.QUESTIONS_PER_SECOND || 100);
const SECONDS = Number(__ENV.SECONDS || 10);
// The longest that an answer takes, the three seconds for a turn among them.
const SETTLED = 5;

const answered = new Counter('answered');
const unavailable = new Counter('unavailable');

export const options = {
  scenarios: {
    crowd: {
      executor: 'constant-arrival-rate',
      rate: RATE,
      timeUnit: '1s',
      duration: `${SECONDS}s`,
      // As many as can wait at once: k6 drops a question for which it has nobody.
      preAllocatedVUs: RATE * SETTLED,
      exec: 'crowd',
    },
    // On time too, so that one that waits does not keep the next from being asked.
    records: {
      executor: 'constant-arrival-rate',
      rate: 25,
      timeUnit: '1s',
      duration: `${SECONDS}s`,
      preAllocatedVUs: 25 * SETTLED,
      exec: 'records',
    },
    afterwards: {
      executor: 'per-vu-iterations',
      vus: 1,
      iterations: 20,
      startTime: `${SECONDS + SETTLED}s`,
      exec: 'afterwards',
    },
  },
  summaryTrendStats: STATS,
  thresholds: {
    checks: ['rate==1'],
    broken_answers: ['rate==0'],
    answered: ['count>0'],
    unavailable: ['count>0'],
    dropped_iterations: ['count==0'],
    ...byRoute(['GET /overview', 'GET /accounts']),
    'http_req_duration{name:GET /accounts}': ['p(99)<250'],
  },
};

const ANY = http.expectedStatuses(200, 503);

export function crowd() {
  const answer = get('/overview', '/overview', days(7, 180), {}, ANY);
  (answer.status === 200 ? answered : unavailable).add(1);
  check(answer, {
    '200 or 503': ({ status }) => status === 200 || status === 503,
    'a refusal says when to come back': (it) => it.status === 200 || retryable(it),
  });
}

export function records() {
  ok(get('/accounts', '/accounts', { limit: 25 }));
}

export function afterwards() {
  const answer = get('/overview', '/overview', days(7, 180));
  check(answer, { 'afterwards all is answered': ({ status }) => status === 200 });
}

export const handleSummary = summary('crowd');
