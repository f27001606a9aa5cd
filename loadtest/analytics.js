// How many heavy questions a second are answered? Batches of a hundred ids, rankings and windows of people's own, from
// a fixed number of clients that each ask again as soon as they have an answer.

import { get, ok, send } from './lib/api.js';
import { days, inventory, one, period, some } from './lib/choice.js';
import { STATS, byRoute, summary } from './lib/summary.js';

const IDS = 100;

export const options = {
  scenarios: {
    questions: {
      executor: 'constant-vus',
      vus: Number(__ENV.CLIENTS || 16),
      duration: __ENV.DURATION || '60s',
    },
  },
  summaryTrendStats: STATS,
  thresholds: {
    checks: ['rate==1'],
    broken_answers: ['rate==0'],
    http_req_failed: ['rate==0'],
    http_req_duration: ['p(99)<1000'],
    ...byRoute([
      'POST /videos/metrics',
      'POST /videos/deltas',
      'POST /accounts/metrics',
      'GET /videos/{video_id}/analytics',
      'GET /creators/{creator_id}/analytics/timeseries',
      'GET /overview',
      'GET /creators/top',
      'GET /analytics/timeseries',
    ]),
  },
};

export function setup() {
  return inventory(5000);
}

export default function ({ accounts, creators, videos }) {
  const window = days(7, 180);
  const body = { period: 'custom', ...window };
  ok(send('POST', '/videos/metrics', '/videos/metrics', { video_ids: some(videos, IDS), ...body }));
  ok(send('POST', '/videos/deltas', '/videos/deltas', { video_ids: some(videos, IDS), windows: [1, 7, 30, 90] }));
  ok(send('POST', '/accounts/metrics', '/accounts/metrics', { account_ids: some(accounts, 50), ...body }));
  ok(get('/videos/{video_id}/analytics', `/videos/${one(videos)}/analytics`, days(7, 30)));
  if (creators.length) {
    const path = `/creators/${one(creators)}/analytics/timeseries`;
    ok(get('/creators/{creator_id}/analytics/timeseries', path, { period: '90d' }));
  }
  ok(get('/overview', '/overview', window));
  ok(get('/creators/top', '/creators/top', { ...period(), limit: 25 }));
  ok(get('/analytics/timeseries', '/analytics/timeseries', { ...window, account_id: one(accounts) }));
}

export const handleSummary = summary('analytics');
