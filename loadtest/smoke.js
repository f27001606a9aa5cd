// Every operation of the OpenAPI document once, on records that this script creates and deletes. Every response must match its
// schema.

import { check, group } from 'k6';
import http from 'k6/http';
import { BASE, data, get, requireScope, send } from './lib/api.js';
import { STATS, byRoute, summary } from './lib/summary.js';
import { violations as schemaViolations } from './lib/shape.js';

export const options = {
  vus: 1,
  iterations: 1,
  summaryTrendStats: STATS,
  thresholds: { checks: ['rate==1'], broken_responses: ['rate==0'], ...byRoute(['GET /health', 'GET /overview', 'GET /search']) },
};

// Sends one operation and checks status and schema of the response.
function operation(document, sent, method, name, status, path, body, headers) {
  const response = method === 'GET' ? get(name, path, {}, headers) : send(method, name, path, body, headers);
  const described = document.paths[name]?.[method.toLowerCase()];
  const schema = described?.responses?.[status]?.content?.['application/json']?.schema;
  const violations = [];
  if (!described) violations.push('not in the document');
  if (response.status !== status) violations.push(`${response.status} instead of ${status}: ${response.body}`);
  if (schema && response.status === status) violations.push(...schemaViolations(document, schema, response.json()));
  check(response, { [`${method} ${name}`]: () => violations.length === 0 });
  if (violations.length) console.error(`${method} ${name}: ${violations.join('; ')}`);
  sent.add(`${method} ${name}`);
  return response;
}

export const setup = () => requireScope('write');

export default function () {
  const document = http.get(`${BASE}/openapi.json`).json();
  const sent = new Set();
  const call = (...request) => operation(document, sent, ...request);
  const suffix = `${Date.now().toString(36)}${Math.floor(Math.random() * 1e6).toString(36)}`;

  group('system', () => {
    call('GET', '/health', 200, '/health');
    call('GET', '/meta', 200, '/meta');
    call('GET', '/openapi.json', 200, '/openapi.json');
    call('GET', '/whoami', 200, '/whoami');
    call('GET', '/events', 200, '/events');
    // A stream has no end, so one that cannot be answered is asked for.
    call('GET', '/events/stream', 406, '/events/stream', undefined, { Accept: 'application/json' });
  });

  group('webhooks', () => {
    const receiver = { url: 'https://127.0.0.1:1/', types: ['webhook.disabled'] };
    const webhook = data(call('POST', '/webhooks', 201, '/webhooks', receiver), 201).id;
    const [route, at] = ['/webhooks/{webhook_id}', `/webhooks/${webhook}`];
    call('GET', '/webhooks', 200, '/webhooks');
    call('GET', route, 200, at);
    call('PATCH', route, 200, at, { description: 'smoke' });
    call('POST', `${route}/rotate-secret`, 201, `${at}/rotate-secret`);
    call('POST', `${route}/test`, 202, `${at}/test`);
    call('GET', `${route}/deliveries`, 200, `${at}/deliveries`);
    const none = '00000000-0000-7000-8000-000000000000';
    call('POST', `${route}/deliveries/{delivery_id}/retry`, 404, `${at}/deliveries/${none}/retry`);
    call('DELETE', route, 204, at);
  });

  const creator = data(call('POST', '/creators', 201, '/creators', { name: `Smoke ${suffix}` }), 201).id;
  const tracked = { platform: 'tiktok', username: `s${suffix}`.slice(0, 24) };
  const account = data(call('POST', '/accounts', 201, '/accounts', tracked), 201).id;
  const post = { platform: 'tiktok', identifier: String(7e18 + Math.floor(Math.random() * 1e15) * 1024) };
  const video = data(call('POST', '/videos', 201, '/videos', post), 201).id;
  const [atCreator, atAccount, atVideo] = [`/creators/${creator}`, `/accounts/${account}`, `/videos/${video}`];

  group('creators and accounts', () => {
    const [route, link] = ['/creators/{creator_id}/accounts/{account_id}', `${atCreator}${atAccount}`];
    call('PUT', route, 201, link);
    call('PUT', route, 200, link);
    call('GET', route, 200, link);
    call('GET', '/creators', 200, '/creators?include_total=true');
    call('GET', '/creators/{creator_id}', 200, atCreator);
    call('PATCH', '/creators/{creator_id}', 200, atCreator, { is_active: true });
    call('GET', '/accounts', 200, `/accounts?creator_id=${creator}`);
    call('GET', '/accounts/{account_id}', 200, atAccount);
    call('PATCH', '/accounts/{account_id}', 200, atAccount, { category: 'smoke' });
    call('GET', '/accounts', 200, '/accounts?status=pending,active&linked=true&metadata.team=smoke&order_by=next_attempt_at');
    call('POST', '/accounts/batch', 200, '/accounts/batch', { items: [tracked] });
    call('PATCH', '/accounts/batch', 200, '/accounts/batch', { ids: [account], set: { category: 'smoke' } });
    call('POST', '/accounts/refresh', 202, '/accounts/refresh', { account_ids: [account] });
    call('POST', '/accounts/{account_id}/refresh', 202, `${atAccount}/refresh`);
    call('GET', '/accounts/categories', 200, '/accounts/categories');
    call('GET', '/accounts/stats', 200, '/accounts/stats');
    call('GET', '/accounts/{account_id}/videos', 200, `${atAccount}/videos`);
    call('DELETE', route, 204, link);
  });

  group('videos', () => {
    call('GET', '/videos', 200, '/videos?limit=200');
    call('GET', '/videos/{video_id}', 200, atVideo);
    call('PATCH', '/videos/{video_id}', 200, atVideo, { is_active: false });
    call('POST', '/videos/batch', 200, '/videos/batch', { items: [post] });
    call('POST', '/videos/{video_id}/refresh', 202, `${atVideo}/refresh`);
    const found = data(call('GET', '/account-videos', 200, '/account-videos?limit=5'));
    if (found.length) call('GET', '/account-videos/{video_id}', 200, `/account-videos/${found[0].id}`);
    else call('GET', '/account-videos/{video_id}', 404, `/account-videos/${video}`);
    call('GET', '/content', 200, '/content?kind=tracked&order_by=added_at&limit=5');
    call('GET', '/content/{video_id}', 200, `/content/${video}`);
  });

  group('analytics', () => {
    call('GET', '/overview', 200, '/overview?period=7d');
    call('GET', '/analytics/timeseries', 200, '/analytics/timeseries?period=7d');
    call('GET', '/creators/top', 200, '/creators/top?limit=3&order_direction=asc');
    call('GET', '/accounts/top', 200, '/accounts/top?metric=followers&include_all=true&limit=3');
    call('GET', '/content/top', 200, '/content/top?period=7d&posted=in_window&limit=3');
    call('GET', '/creators/metrics', 200, `/creators/metrics?creator_ids=${creator}`);
    call('POST', '/creators/metrics', 200, '/creators/metrics', { creator_ids: [creator] });
    call('GET', '/creators/timeseries', 200, `/creators/timeseries?creator_ids=${creator}&metric=followers`);
    call('GET', '/accounts/timeseries', 200, `/accounts/timeseries?account_ids=${account}`);
    call('GET', '/content/timeseries', 200, `/content/timeseries?ids=${video}`);
    call('GET', '/content/ages', 200, `/content/ages?ids=${video}`);
    call('GET', '/content/{video_id}/ages', 200, `/content/${video}/ages`);
    call('GET', '/content/breakouts', 200, '/content/breakouts?age_days=3&min_multiple=1.5');
    call('GET', '/accounts/{account_id}/benchmarks', 200, `${atAccount}/benchmarks`);
    call('GET', '/tracking', 200, '/tracking');
    call('GET', '/tracking/coverage', 200, '/tracking/coverage?period=7d');
    call('GET', '/creators/{creator_id}/analytics', 200, `${atCreator}/analytics`);
    call('GET', '/creators/{creator_id}/analytics/timeseries', 200, `${atCreator}/analytics/timeseries`);
    call('GET', '/accounts/{account_id}/analytics', 200, `${atAccount}/analytics`);
    call('GET', '/videos/{video_id}/analytics', 200, `${atVideo}/analytics`);
    call('GET', '/accounts/metrics', 200, `/accounts/metrics?account_ids=${account}`);
    call('POST', '/accounts/metrics', 200, '/accounts/metrics', { account_ids: [account] });
    call('GET', '/videos/metrics', 200, `/videos/metrics?video_ids=${video}`);
    call('POST', '/videos/metrics', 200, '/videos/metrics', { video_ids: [video] });
    call('GET', '/videos/deltas', 200, `/videos/deltas?video_ids=${video}`);
    call('POST', '/videos/deltas', 200, '/videos/deltas', { video_ids: [video], windows: [1, 7] });
    call('GET', '/account-videos/metrics', 200, '/account-videos/metrics?tiktok_video_ids=1');
    call('POST', '/account-videos/metrics', 200, '/account-videos/metrics', { tiktok_video_ids: [1] });
  });

  call('GET', '/search', 200, '/search?q=a');

  const payout = { currency: 'EUR', per_thousand_views: '2' };
  const campaign = { name: `Smoke ${suffix}`, rule: { hashtags: ['smoke'] }, payout };
  const collection = data(call('POST', '/collections', 201, '/collections', campaign), 201).id;
  const atCollection = `/collections/${collection}`;

  group('collections', () => {
    const route = '/collections/{collection_id}';
    call('GET', '/collections', 200, '/collections?q=smoke');
    call('GET', route, 200, atCollection);
    call('PATCH', route, 200, atCollection, { description: 'Smoke' });
    const [mark, atMark] = [`${route}/videos/{video_id}`, `${atCollection}/videos/${video}`];
    call('PUT', mark, 201, atMark, { state: 'included' });
    call('GET', mark, 200, atMark);
    call('DELETE', mark, 204, atMark);
    call('POST', `${route}/videos`, 200, `${atCollection}/videos`, { video_ids: [video], state: 'included' });
    for (const part of ['videos', 'overview', 'timeseries', 'accounts', 'creators', 'payouts', 'payouts/videos']) {
      call('GET', `${route}/${part}`, 200, `${atCollection}/${part}`);
    }
    call('GET', '/content/hashtags', 200, '/content/hashtags?period=7d');
    for (const name of ['payouts', 'payout-videos']) {
      call('GET', `/export/${name}.csv`, 200, `/export/${name}.csv?collection_id=${collection}`);
    }
    const parts = ['overview', 'timeseries', 'content', 'accounts', 'creators', 'payouts'];
    const shares = [`${route}/shares`, `${atCollection}/shares`];
    const share = data(call('POST', shares[0], 201, shares[1], { name: 'Smoke', show: parts }), 201);
    const bearer = { Authorization: `Bearer ${share.token}` };
    for (const path of ['/shared', ...parts.map((part) => `/shared/${part}`)]) {
      call('GET', path, 200, path, undefined, bearer);
    }
    call('GET', shares[0], 200, shares[1]);
    call('GET', `${shares[0]}/{share_id}`, 200, `${shares[1]}/${share.id}`);
    call('DELETE', `${shares[0]}/{share_id}`, 204, `${shares[1]}/${share.id}`);
  });

  group('imports', () => {
    // A dry run, which stores nothing.
    const file = 'platform,username,follower_count,observed_at\ntiktok,smoke,1,2026-01-01\n';
    const path = '/import?dry_run=true&filename=smoke.csv';
    const begun = data(call('POST', '/import', 202, path, file, { 'Content-Type': 'text/csv' }), 202).id;
    call('GET', '/imports', 200, '/imports');
    call('GET', '/imports/{import_id}', 200, `/imports/${begun}`);
    const cancelled = send('DELETE', '/imports/{import_id}', `/imports/${begun}`);
    check(cancelled, { 'DELETE /imports/{import_id}': () => [204, 409].includes(cancelled.status) });
    sent.add('DELETE /imports/{import_id}');
  });

  group('exports', () => {
    for (const name of ['accounts', 'content', 'creators', 'daily']) {
      const file = call('GET', `/export/${name}.csv`, 200, `/export/${name}.csv?period=7d`);
      check(file, { [`${name}.csv is complete`]: (file) => file.body.includes('views,plays') && file.body.endsWith('\r\n') });
      const parquet = call('GET', `/export/${name}.parquet`, 200, `/export/${name}.parquet?period=7d`);
      check(parquet, { [`${name}.parquet is complete`]: (file) => file.body.startsWith('PAR1') && file.body.endsWith('PAR1') });
    }
  });

  group('cleanup', () => {
    call('DELETE', '/collections/{collection_id}', 204, atCollection);
    call('DELETE', '/videos/{video_id}', 204, atVideo);
    call('DELETE', '/accounts/{account_id}', 204, atAccount);
    call('DELETE', '/creators/{creator_id}', 204, atCreator);
  });

  const METHODS = ['get', 'post', 'put', 'patch', 'delete'];
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const missed = operations.filter((name) => !sent.has(name));
  check(missed, { 'every operation of the document was sent': () => missed.length === 0 });
  if (missed.length) console.error(`not sent: ${missed.join(', ')}`);
}

export const handleSummary = summary('smoke');
