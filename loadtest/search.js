// Is typing into the search box as quick as typing? Each iteration types a word of a caption, one character after the
// other, with a request for each, and now and then something that nobody wrote.

import { check } from 'k6';
import { get, ok } from './lib/api.js';
import { inventory, one, part } from './lib/choice.js';
import { STATS, summary } from './lib/summary.js';

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
    broken_answers: ['rate==0'],
    http_req_failed: ['rate==0'],
    ...Object.fromEntries(
      routes.flatMap((name) => [
        [`http_req_duration{name:${name}}`, ['p(50)<50', 'p(99)<250']],
        [`http_reqs{name:${name}}`, ['count>=0']],
      ]),
    ),
  },
};

export function setup() {
  return inventory(2000);
}

export default function ({ captions }) {
  const word = part(one(captions), 20);
  for (const length of LENGTHS) {
    const q = Array.from(word).slice(0, length).join('');
    if (q.trim() === '') continue;
    const answer = get(`/search of ${length}`, '/search', { q, limit: 25 });
    if (!ok(answer)) continue;
    check(answer, {
      'every video found has the text': () => answer.json('data.videos').every(({ caption }) => contains(caption, q)),
    });
  }
  const nothing = get('/search of nothing', '/search', { q: `nobody wrote ${Math.random()}` });
  if (ok(nothing)) {
    check(nothing, { 'what nobody wrote is not found': () => nothing.json('data.videos').length === 0 });
  }
}

// As exact as this language can be: it folds a few letters otherwise than the service, which are left alone.
function contains(caption, q) {
  return caption.toLowerCase().includes(q.trim().toLowerCase()) || /[^\x00-\x7f]/.test(q);
}

export const handleSummary = summary('search');
