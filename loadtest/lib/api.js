// Requests to the API, and checks that hold for every response.

import http from 'k6/http';
import { check, fail } from 'k6';
import { Rate } from 'k6/metrics';

export const BASE = required('TIDEMARK_BASE_URL').replace(/\/+$/, '');
const KEY = required('TIDEMARK_API_KEY');

// Responses that no client should ever get: 5xx except 503, and broken connections.
export const broken = new Rate('broken_responses');

function required(name) {
  const value = __ENV[name];
  if (!value) {
    throw new Error(`set ${name}: use make loadtest, or base_url and api_key of .tidemark/demo.json`);
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

function record(response) {
  broken.add(response.status === 0 || (response.status >= 500 && response.status !== 503));
  return response;
}

// Files have no version.
function root(path) {
  return /^\/(export\/|import\b(?!s))/.test(path) ? BASE.replace(/\/v2$/, '') : BASE;
}

export function url(path, query = {}) {
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return root(path) + path + (pairs.length ? `?${pairs.join('&')}` : '');
}

// `name` is the route by which metrics are grouped: `/accounts/{account_id}`.
export function get(name, path, query = {}, headers = {}, expected = undefined) {
  return record(http.get(url(path, query), options(`GET ${name}`, headers, expected)));
}

// Any other method; an undefined body is not sent, and a text is a file.
export function send(method, name, path, body = undefined, headers = {}, expected = undefined) {
  const text = body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body);
  return record(http.request(method, root(path) + path, text, options(`${method} ${name}`, headers, expected)));
}

// Several parallel GETs, like a page load: entries of [name, path, query].
export function page(requests) {
  const batch = requests.map(([name, path, query]) => ['GET', url(path, query), null, options(`GET ${name}`)]);
  return http.batch(batch).map(record);
}

// Checks the status and the headers that every response has.
export function ok(response, status = 200) {
  if (response.status !== status) {
    console.warn(`${response.request.method} ${response.url} returned ${response.status}: ${response.error || response.body}`);
  }
  return check(response, {
    [`status ${status}`]: (response) => response.status === status,
    'has a request id': (response) => Boolean(response.headers['X-Request-Id']),
  });
}

// The `data` of a response that the test depends on.
export function data(response, status = 200) {
  if (response.status !== status) {
    fail(`${response.request.method} ${response.url} returned ${response.status}: ${response.body}`);
  }
  return response.json('data');
}

// Fails unless the key has a scope.
export function requireScope(scope) {
  const { api_key_name: name, scopes } = data(get('/whoami', '/whoami'));
  if (!scopes.includes(scope)) {
    fail(`the key ${name} lacks the scope ${scope}: create one with tidemark key create --scopes read,${scope}`);
  }
}

// Whether a rejection has a plausible Retry-After.
export function retryable(response) {
  const after = Number(response.headers['Retry-After']);
  return Number.isInteger(after) && after >= 0 && after <= 120;
}
