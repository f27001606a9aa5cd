// Does everything work? Every operation of the API's own document is asked once, on things that this script makes and
// deletes again, and every answer is compared with the shape that the document promises.

import { check, group } from 'k6';
import http from 'k6/http';
import { BASE, data, get, send } from './lib/api.js';
import { STATS, byRoute, summary } from './lib/summary.js';
import { wrong } from './lib/shape.js';

export const options = {
  vus: 1,
  iterations: 1,
  summaryTrendStats: STATS,
  thresholds: { checks: ['rate==1'], broken_answers: ['rate==0'], ...byRoute(['GET /health', 'GET /overview', 'GET /search']) },
};

// One operation: its answer has the status and the shape of the document.
function operation(document, asked, method, name, status, path, body, headers) {
  const answer = method === 'GET' ? get(name, path) : send(method, name, path, body, headers);
  const promised = document.paths[name]?.[method.toLowerCase()];
  const schema = promised?.responses?.[status]?.content?.['application/json']?.schema;
  const faults = [];
  if (!promised) faults.push('not in the document');
  if (answer.status !== status) faults.push(`${answer.status} instead of ${status}: ${answer.body}`);
  if (schema && answer.status === status) faults.push(...wrong(document, schema, answer.json()));
  check(answer, { [`${method} ${name}`]: () => faults.length === 0 });
  if (faults.length) console.error(`${method} ${name}: ${faults.join('; ')}`);
  asked.add(`${method} ${name}`);
  return answer;
}

export default function () {
  const document = http.get(`${BASE}/openapi.json`).json();
  const asked = new Set();
  const ask = (...request) => operation(document, asked, ...request);
  const suffix = `${Date.now().toString(36)}${Math.floor(Math.random() * 1e6).toString(36)}`;

  group('system', () => {
    ask('GET', '/health', 200, '/health');
    ask('GET', '/meta', 200, '/meta');
    ask('GET', '/openapi.json', 200, '/openapi.json');
    ask('GET', '/whoami', 200, '/whoami');
  });

  const creator = data(ask('POST', '/creators', 201, '/creators', { name: `Smoke ${suffix}` }), 201).id;
  const tracked = { platform: 'tiktok', username: `s${suffix}`.slice(0, 24) };
  const account = data(ask('POST', '/accounts', 201, '/accounts', tracked), 201).id;
  const post = { platform: 'tiktok', identifier: String(7e18 + Math.floor(Math.random() * 1e15) * 1024) };
  const video = data(ask('POST', '/videos', 201, '/videos', post), 201).id;
  const [atCreator, atAccount, atVideo] = [`/creators/${creator}`, `/accounts/${account}`, `/videos/${video}`];

  group('creators and accounts', () => {
    const [route, link] = ['/creators/{creator_id}/accounts/{account_id}', `${atCreator}${atAccount}`];
    ask('PUT', route, 201, link);
    ask('PUT', route, 200, link);
    ask('GET', route, 200, link);
    ask('GET', '/creators', 200, '/creators?include_total=true');
    ask('GET', '/creators/{creator_id}', 200, atCreator);
    ask('PATCH', '/creators/{creator_id}', 200, atCreator, { is_active: true });
    ask('GET', '/accounts', 200, `/accounts?creator_id=${creator}`);
    ask('GET', '/accounts/{account_id}', 200, atAccount);
    ask('PATCH', '/accounts/{account_id}', 200, atAccount, { category: 'smoke' });
    ask('GET', '/accounts/stats', 200, '/accounts/stats');
    ask('GET', '/accounts/{account_id}/videos', 200, `${atAccount}/videos`);
    ask('DELETE', route, 204, link);
  });

  group('videos', () => {
    ask('GET', '/videos', 200, '/videos?limit=200');
    ask('GET', '/videos/{video_id}', 200, atVideo);
    ask('PATCH', '/videos/{video_id}', 200, atVideo, { is_active: false });
    const found = data(ask('GET', '/account-videos', 200, '/account-videos?limit=5'));
    if (found.length) ask('GET', '/account-videos/{video_id}', 200, `/account-videos/${found[0].id}`);
    else ask('GET', '/account-videos/{video_id}', 404, `/account-videos/${video}`);
  });

  group('analytics', () => {
    ask('GET', '/overview', 200, '/overview?period=7d');
    ask('GET', '/analytics/timeseries', 200, '/analytics/timeseries?period=7d');
    ask('GET', '/creators/top', 200, '/creators/top?limit=3');
    ask('GET', '/creators/{creator_id}/analytics', 200, `${atCreator}/analytics`);
    ask('GET', '/creators/{creator_id}/analytics/timeseries', 200, `${atCreator}/analytics/timeseries`);
    ask('GET', '/accounts/{account_id}/analytics', 200, `${atAccount}/analytics`);
    ask('GET', '/videos/{video_id}/analytics', 200, `${atVideo}/analytics`);
    ask('GET', '/accounts/metrics', 200, `/accounts/metrics?account_ids=${account}`);
    ask('POST', '/accounts/metrics', 200, '/accounts/metrics', { account_ids: [account] });
    ask('GET', '/videos/metrics', 200, `/videos/metrics?video_ids=${video}`);
    ask('POST', '/videos/metrics', 200, '/videos/metrics', { video_ids: [video] });
    ask('GET', '/videos/deltas', 200, `/videos/deltas?video_ids=${video}`);
    ask('POST', '/videos/deltas', 200, '/videos/deltas', { video_ids: [video], windows: [1, 7] });
    ask('GET', '/account-videos/metrics', 200, '/account-videos/metrics?tiktok_video_ids=1');
    ask('POST', '/account-videos/metrics', 200, '/account-videos/metrics', { tiktok_video_ids: [1] });
  });

  ask('GET', '/search', 200, '/search?q=a');

  group('the way back', () => {
    ask('DELETE', '/videos/{video_id}', 204, atVideo);
    ask('DELETE', '/accounts/{account_id}', 204, atAccount);
    ask('DELETE', '/creators/{creator_id}', 204, atCreator);
  });

  const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
  const left = Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const missed = left.filter((name) => !asked.has(name));
  check(missed, { 'every operation of the document was asked': () => missed.length === 0 });
  if (missed.length) console.error(`not asked: ${missed.join(', ')}`);
}

export const handleSummary = summary('smoke');
