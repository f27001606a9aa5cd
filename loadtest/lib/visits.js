// Visits to a front end: its pages one after the other, the requests of each in parallel. For scripts of loadtest/generate.

import { ok, page } from './api.js';
import { collect, inWords, pick } from './choice.js';
import { STATS, byRoute } from './summary.js';

// The options of a script.
export function optionsOf(pages) {
  return {
    scenarios: {
      visits: {
        executor: 'constant-arrival-rate',
        rate: Number(__ENV.VISITS_PER_SECOND || 5),
        timeUnit: '1s',
        duration: __ENV.DURATION || '60s',
        preAllocatedVUs: 20,
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
      ...byRoute(pages.flat().map(({ route }) => `GET ${route}`)),
    },
  };
}

// Ids for routes with one: by list, up to 200 of each.
export function collectIds(pages) {
  const lists = new Set(pages.flat().flatMap(({ ids }) => ids || []));
  return Object.fromEntries(Array.from(lists, (list) => [list, inWords(list, collect(list, 200)).map(({ id }) => id)]));
}

export function visit(pages, ids) {
  for (const requests of pages) {
    const sent = requests.map(({ route, path, ids: list, query }) => [
      route,
      list ? route.replace(/\{\w+\}/, pick(ids[list])) : path || route,
      query,
    ]);
    page(sent).forEach((response) => ok(response));
  }
}
