// Requests to the API, typed by its OpenAPI document.

import createClient, { type Middleware } from "openapi-fetch";

import { key, signOut } from "../state/session.ts";
import { fetchOnce } from "./prefetch.ts";
import { noteRateLimit } from "./rate-limit.ts";
import { RecordedRequest } from "./requests.ts";
import type { components, paths } from "./schema.d.ts";

type ProblemBody = components["schemas"]["Problem"];

const REJECTED_KEY = "The API does not accept this key: it is wrong, expired or revoked.";

/** An error response, or no response at all (`status` 0). */
export class ApiProblem extends Error {
  readonly status: number;
  readonly code: string;
  readonly requestId: string | null;
  /** Whether the server did not answer. */
  readonly isUnanswered: boolean;
  /** What is wrong with each field of a request. */
  readonly fields: readonly { field: string; message: string }[];
  /** Seconds until the request may succeed; null if the response does not say. */
  readonly retryAfter: number | null;
  /** When it came, by `performance.now()`: what is below shows it later. */
  readonly at = performance.now();

  constructor(status: number, body: Partial<ProblemBody>, retryAfter: number | null = null) {
    super(body.detail ?? "The server did not answer. Check that it runs, then try again.");
    this.status = status;
    this.code = body.code ?? "UNREACHABLE";
    this.requestId = body.request_id ?? null;
    this.isUnanswered = status === 0 && body.detail === undefined;
    this.fields = body.errors ?? [];
    this.retryAfter = retryAfter;
  }

  /** Anything thrown, as a problem to show. */
  static from(cause: unknown): ApiProblem {
    return cause instanceof ApiProblem ? cause : new ApiProblem(0, { detail: String(cause) });
  }
}

const authenticate: Middleware = {
  onRequest({ request }) {
    if (key.value && !request.headers.has("Authorization"))
      request.headers.set("Authorization", `Bearer ${key.value}`);
    return request;
  },
  onResponse({ request, response }) {
    noteRateLimit(response);
    const isCurrent = request.headers.get("Authorization") === `Bearer ${key.value}`;
    if (response.status === 401 && isCurrent) signOut(REJECTED_KEY);
  },
};

/** How many entries a list has in all: of a request with `include_total`. */
export async function countOf(
  request: Promise<{
    data?: { pagination: { total_count?: number } };
    error?: unknown;
    response: Response;
  }>,
): Promise<number | null> {
  return (await unwrap(request)).pagination.total_count ?? null;
}

/** Lists are comma-separated, and the names of tags are parameters. */
export const api = createClient<paths>({
  baseUrl: "/v2",
  Request: RecordedRequest,
  fetch: fetchOnce,
  querySerializer: { array: { style: "form", explode: false }, object: { style: "form", explode: true } },
});
api.use(authenticate);

/** The data of a response, undefined of 204; throws an `ApiProblem` for an error. */
export async function unwrap<T>(
  request: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<T> {
  const { data, error, response } = await request.catch((cause: unknown) => {
    throw cause instanceof DOMException && cause.name === "AbortError" ? cause : new ApiProblem(0, {});
  });
  if (response.ok) return data as T;
  const body = (error ?? {}) as Partial<ProblemBody>;
  const wait = response.headers.get("Retry-After");
  const problem = new ApiProblem(
    response.status,
    response.status === 401 ? { ...body, detail: REJECTED_KEY } : body,
    wait === null ? null : Number(wait),
  );
  if (problem.code === "FORBIDDEN" && key.value !== null) signOut(problem.message);
  throw problem;
}

/** Lists are comma-separated, and the names of tags are parameters. */
function exportParameters(query: Readonly<Record<string, unknown>>): URLSearchParams {
  const entries = Object.entries(query).flatMap(([name, value]) =>
    typeof value === "object" && value && !Array.isArray(value) ? Object.entries(value) : [[name, value]],
  );
  return new URLSearchParams(entries.map(([name, value]) => [String(name), String(value)]));
}

/** A CSV of all rows that match. */
export async function fetchExport(
  name: string,
  query: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<Blob> {
  const request = new Request(`/export/${name}.csv?${exportParameters(query)}`, {
    headers: { Authorization: `Bearer ${key.value}` },
    signal,
  });
  const response = fetch(request).then(async (response) => ({
    response,
    ...(response.ok
      ? { data: await response.blob() }
      : { error: (await response.json().catch(() => null)) as unknown }),
  }));
  return unwrap<Blob>(response);
}

/** The caller that a key identifies. */
export async function fetchIdentity(signal?: AbortSignal, text = key.value) {
  const headers = { Authorization: `Bearer ${text}` };
  return (await unwrap(api.GET("/whoami", { headers, ...(signal ? { signal } : {}) }))).data;
}

export type Identity = Awaited<ReturnType<typeof fetchIdentity>>;
