// Search as you type. Each iteration types part of a caption with a request for several lengths, then searches for an absent
// text.

import { check } from 'k6';
import { get, ok } from './lib/api.js';
import { inventory, pick, excerpt } from './lib/choice.js';
import { STATS, summary } from './lib/summary.js';
import { contains } from './lib/text.js';

const LENGTHS = [1, 2, 3, 5, 8, 12, 20];

const routes = LENGTHS.map((length) => `GET /search of ${length}`).concat('GET /search of nothing');

export const options = {
  scenarios: {
    typing: {
      executor: 'constant-vus',
      vus: Number(__ENV.CLIENTS || 8),
      duration: __ENV.DURATION || '45s',
    },
  },
  summaryTrendStats: STATS,
  thresholds: {
    checks: ['rate==1'],
    broken_responses: ['rate==0'],
    http_req_failed: ['rate==0'],
    ...Object.fromEntries(
      routes.flatMap((name) => [
        [`http_req_duration{name:${name}}`, ['p(50)<50', 'p(99)<250']],
        [`http_reqs{name:${name}}`, ['count>0']],
      ]),
    ),
  },
};

export function setup() {
  return inventory(2000, ['captions']);
}

export default function ({ captions }) {
  const word = excerpt(pick(captions), 20);
  for (const length of LENGTHS) {
    const q = Array.from(word).slice(0, length).join('');
    if (q.trim() === '') continue;
    const response = get(`/search of ${length}`, '/search', { q, limit: 25 });
    if (!ok(response)) continue;
    check(response, {
      'a text of a caption is found': () => response.json('data.videos').length > 0,
      'every video found has the text': () => response.json('data.videos').every(({ caption }) => contains(caption, q)),
    });
  }
  const nothing = get('/search of nothing', '/search', { q: `absent ${Math.random()}` });
  if (ok(nothing)) {
    check(nothing, { 'an absent text is not found': () => nothing.json('data.videos').length === 0 });
  }
}

export const handleSummary = summary('search');
