// The API as the load tests see it: where it is, one request of each kind, and what every answer must have.

import http from 'k6/http';
import { check, fail } from 'k6';
import { Rate } from 'k6/metrics';

export const BASE = required('TIDEMARK_BASE_URL').replace(/\/+$/, '');
const KEY = required('TIDEMARK_API_KEY');

// Answers that no client should ever get: 500 and its like, and connections that break.
export const broken = new Rate('broken_answers');

function required(name) {
  const value = __ENV[name];
  if (!value) {
    throw new Error(`set ${name}: make loadtest does, or read it in .tidemark/demo.json as base_url and api_key`);
  }
  return value;
}

function options(name, headers = {}, expected = undefined) {
  return {
    headers: { Authorization: `Bearer ${KEY}`, 'Content-Type': 'application/json', ...headers },
    tags: { name },
    timeout: '30s',
    ...(expected && { responseCallback: expected }),
  };
}

function seen(response) {
  broken.add(response.status === 0 || (response.status >= 500 && response.status !== 503));
  return response;
}

export function url(path, query = {}) {
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return BASE + path + (pairs.length ? `?${pairs.join('&')}` : '');
}

// `name` is the route, by which requests are summed up: `/accounts/{account_id}`.
export function get(name, path, query = {}, headers = {}, expected = undefined) {
  return seen(http.get(url(path, query), options(`GET ${name}`, headers, expected)));
}

// Any other method; a body that is undefined is none.
export function send(method, name, path, body = undefined, headers = {}, expected = undefined) {
  const text = body === undefined ? null : JSON.stringify(body);
  return seen(http.request(method, BASE + path, text, options(`${method} ${name}`, headers, expected)));
}

// Several GETs at once, as a page that opens asks: entries of [name, path, query].
export function page(requests) {
  const batch = requests.map(([name, path, query]) => ['GET', url(path, query), null, options(`GET ${name}`)]);
  return http.batch(batch).map(seen);
}

// Whether an answer has the status and the headers that every answer of its kind has.
export function ok(response, status = 200) {
  if (response.status !== status) {
    console.warn(`${response.request.method} ${response.url} answered ${response.status}: ${response.error || response.body}`);
  }
  return check(response, {
    [`status ${status}`]: (answer) => answer.status === status,
    'has a request id': (answer) => Boolean(answer.headers['X-Request-Id']),
  });
}

// The `data` of an answer that has to be there for the test to make sense.
export function data(response, status = 200) {
  if (response.status !== status) {
    fail(`${response.request.method} ${response.url} answered ${response.status}: ${response.body}`);
  }
  return response.json('data');
}

// Whether a refusal says when to come back.
export function retryable(response) {
  const after = Number(response.headers['Retry-After']);
  return Number.isInteger(after) && after >= 0 && after <= 120;
}
