// Throughput of heavy analytics queries: batches of a hundred ids, rankings and custom windows, from a fixed number of clients
// that send the next request as soon as they have a response.

import { get, ok, requireScope, send } from './lib/api.js';
import { days, inventory, pick, period, sample } from './lib/choice.js';
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
    broken_responses: ['rate==0'],
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
      'GET /export/content.csv',
      'GET /content/ages',
      'GET /content/breakouts',
      'GET /accounts/{account_id}/benchmarks',
    ]),
  },
};

export function setup() {
  requireScope('write');
  return inventory(5000, ['accounts', 'creators', 'videos']);
}

export default function ({ accounts, creators, videos }) {
  const window = days(7, 180);
  const body = { period: 'custom', ...window };
  ok(send('POST', '/videos/metrics', '/videos/metrics', { video_ids: sample(videos, IDS), ...body }));
  ok(send('POST', '/videos/deltas', '/videos/deltas', { video_ids: sample(videos, IDS), windows: [1, 7, 30, 90] }));
  ok(send('POST', '/accounts/metrics', '/accounts/metrics', { account_ids: sample(accounts, 50), ...body }));
  ok(get('/videos/{video_id}/analytics', `/videos/${pick(videos)}/analytics`, days(7, 30)));
  const path = `/creators/${pick(creators)}/analytics/timeseries`;
  ok(get('/creators/{creator_id}/analytics/timeseries', path, { period: '90d' }));
  ok(get('/overview', '/overview', window));
  ok(get('/creators/top', '/creators/top', { ...period(), limit: 25 }));
  ok(get('/analytics/timeseries', '/analytics/timeseries', { ...window, account_id: pick(accounts) }));
  ok(get('/export/content.csv', '/export/content.csv', { ...window, account_id: pick(accounts) }));
  ok(get('/content/ages', '/content/ages', { ids: sample(videos, IDS).join(',') }));
  ok(get('/content/breakouts', '/content/breakouts', { age_days: pick([1, 3, 7, 14, 30]), min_multiple: 2 }));
  ok(get('/accounts/{account_id}/benchmarks', `/accounts/${pick(accounts)}/benchmarks`, { ages: '3,7' }));
}

export const handleSummary = summary('analytics');
