// Requests to the API, typed by its OpenAPI document.

import createClient, { type Middleware } from "openapi-fetch";

import { key, signOut } from "../state/session.ts";
import { RecordedRequest } from "./requests.ts";
import type { components, paths } from "./schema.d.ts";

type ProblemBody = components["schemas"]["Problem"];

/** An error response, or no response at all (`status` 0). */
export class ApiProblem extends Error {
  readonly status: number;
  readonly code: string;
  readonly requestId: string | null;
  /** What is wrong with each field of a request. */
  readonly fields: readonly { field: string; message: string }[];

  constructor(status: number, body: Partial<ProblemBody>) {
    super(body.detail ?? "The server did not answer. Check that it runs, then try again.");
    this.status = status;
    this.code = body.code ?? "UNREACHABLE";
    this.requestId = body.request_id ?? null;
    this.fields = body.errors ?? [];
  }
}

const authenticate: Middleware = {
  onRequest({ request }) {
    if (key.value) request.headers.set("Authorization", `Bearer ${key.value}`);
    return request;
  },
  onResponse({ request, response }) {
    const isCurrent = request.headers.get("Authorization") === `Bearer ${key.value}`;
    if (response.status === 401 && isCurrent) signOut("The key is not valid any more. Paste another one.");
  },
};

/** Lists are comma-separated. */
export const api = createClient<paths>({
  baseUrl: "/v2",
  Request: RecordedRequest,
  querySerializer: { array: { style: "form", explode: false } },
});
api.use(authenticate);

/** The data of a response, undefined of 204; throws an `ApiProblem` for an error. */
export async function unwrap<T>(response: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response: { ok, status } } = await response.catch((cause: unknown) => {
    throw cause instanceof DOMException && cause.name === "AbortError" ? cause : new ApiProblem(0, {});
  });
  if (ok) return data as T;
  const problem = new ApiProblem(status, (error ?? {}) as Partial<ProblemBody>);
  if (problem.code === "FORBIDDEN") signOut(problem.message);
  throw problem;
}
