// Writes stay fast, and a retry never writes twice. Each iteration creates a creator, an account and a link, changes and deletes
// them; every create is sent twice with one Idempotency-Key.

import { check } from 'k6';
import { data, ok, requireScope, send } from './lib/api.js';
import { STATS, byRoute, summary } from './lib/summary.js';

export const options = {
  scenarios: {
    work: {
      executor: 'constant-arrival-rate',
      rate: Number(__ENV.ITERATIONS_PER_SECOND || 10),
      timeUnit: '1s',
      duration: __ENV.DURATION || '45s',
      preAllocatedVUs: 30,
      maxVUs: 200,
    },
  },
  summaryTrendStats: STATS,
  thresholds: {
    checks: ['rate==1'],
    broken_responses: ['rate==0'],
    http_req_failed: ['rate==0'],
    dropped_iterations: ['count==0'],
    http_req_duration: ['p(50)<25', 'p(99)<250'],
    ...byRoute([
      'POST /creators',
      'POST /accounts',
      'PATCH /accounts/{account_id}',
      'PATCH /creators/{creator_id}',
      'PUT /creators/{creator_id}/accounts/{account_id}',
      'DELETE /creators/{creator_id}/accounts/{account_id}',
      'DELETE /accounts/{account_id}',
      'DELETE /creators/{creator_id}',
    ]),
  },
};

export const setup = () => requireScope('write');

// Creates a record and retries as if the response were lost.
function create(path, body) {
  const headers = { 'Idempotency-Key': `${path}-${unique()}` };
  const first = send('POST', path, path, body, headers);
  const again = send('POST', path, path, body, headers);
  ok(first, 201);
  check(again, {
    'a retry gets the first response': (response) => response.status === 201 && response.body === first.body,
    'a retry is marked as replayed': (response) => response.headers['Idempotent-Replayed'] === 'true',
  });
  return data(first, 201).id;
}

function unique() {
  return `${Date.now().toString(36)}.${Math.floor(Math.random() * 2 ** 32).toString(36)}`;
}

export default function () {
  const creator = create('/creators', { name: `Load ${unique()}` });
  const account = create('/accounts', { platform: 'tiktok', username: `l${unique()}`.slice(0, 24) });
  const [atCreator, atAccount] = [`/creators/${creator}`, `/accounts/${account}`];
  const [ofCreator, ofAccount] = ['/creators/{creator_id}', '/accounts/{account_id}'];
  const [link, ofLink] = [atCreator + atAccount, ofCreator + ofAccount];

  ok(send('PATCH', ofAccount, atAccount, { is_active: false, category: 'load', metadata: { run: 'writes' } }));
  ok(send('PUT', ofLink, link), 201);
  ok(send('PUT', ofLink, link));
  ok(send('PATCH', ofCreator, atCreator, { is_active: false }));
  ok(send('DELETE', ofLink, link), 204);
  ok(send('DELETE', ofAccount, atAccount), 204);
  ok(send('DELETE', ofCreator, atCreator), 204);
}

export const handleSummary = summary('writes');
