// A dashboard with a growing number of users.
//
// Each iteration is one visit: overview, timeseries, ranking and newest posts in parallel, then one account and its posts, then
// everything again with ETags, as a reloading browser does.

import { check } from 'k6';
import http from 'k6/http';
import { Rate } from 'k6/metrics';
import { get, ok, page } from './lib/api.js';
import { inventory, pick, period } from './lib/choice.js';
import { STATS, byRoute, summary } from './lib/summary.js';

const reloads = new Rate('reloads_without_a_body');

const ROUTES = [
  'GET /overview',
  'GET /analytics/timeseries',
  'GET /creators/top',
  'GET /account-videos',
  'GET /accounts',
  'GET /accounts/{account_id}',
  'GET /accounts/{account_id}/analytics',
  'GET /accounts/{account_id}/videos',
];

const PEAK = Number(__ENV.LOOKS_PER_SECOND || 10);

export const options = {
  scenarios: {
    looks: {
      executor: 'ramping-arrival-rate',
      startRate: 1,
      timeUnit: '1s',
      preAllocatedVUs: 20,
      maxVUs: 200,
      stages: [
        { target: Math.ceil(PEAK / 2), duration: '20s' },
        { target: PEAK, duration: '20s' },
        { target: PEAK, duration: '60s' },
        { target: 1, duration: '5s' },
      ],
    },
  },
  summaryTrendStats: STATS,
  thresholds: {
    checks: ['rate==1'],
    broken_responses: ['rate==0'],
    http_req_failed: ['rate==0'],
    dropped_iterations: ['count==0'],
    http_req_duration: ['p(50)<25', 'p(99)<250'],
    reloads_without_a_body: ['rate>0.9'],
    ...byRoute(ROUTES),
  },
};

export function setup() {
  return inventory(50);
}

export default function ({ accounts }) {
  const window = period();
  const opened = [
    ['/overview', '/overview', window],
    ['/analytics/timeseries', '/analytics/timeseries', window],
    ['/creators/top', '/creators/top', { ...window, limit: 10 }],
    ['/account-videos', '/account-videos', { order_by: 'create_time', limit: 50 }],
    ['/accounts', '/accounts', { order_by: 'follower_count', limit: 50 }],
  ];
  const responses = page(opened);
  responses.forEach((response) => ok(response));

  const account = pick(accounts);
  const path = `/accounts/${account}`;
  ok(get('/accounts/{account_id}', path));
  ok(get('/accounts/{account_id}/analytics', `${path}/analytics`, { period: '30d' }));
  ok(get('/accounts/{account_id}/videos', `${path}/videos`, { limit: 20 }));

  const expected = http.expectedStatuses(200, 304);
  opened.forEach(([name, where, query], at) => {
    const again = get(name, where, query, { 'If-None-Match': responses[at].headers.Etag }, expected);
    check(again, { 'a reload is 200 or 304': ({ status }) => status === 200 || status === 304 });
    reloads.add(again.status === 304);
  });
}

export const handleSummary = summary('dashboard');
