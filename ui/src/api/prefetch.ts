// Requests that start before the code of their page is there, and are answered once it asks for the same.

import type { RecordedRequest } from "./requests.ts";

/** Marks requests whose answers are for later. It never aborts. */
export const PREFETCH = new AbortController().signal;

interface Prefetched {
  response: Promise<Response>;
  controller: AbortController;
}

const prefetched = new Map<string, Prefetched>();

function nameOf(request: Request): string {
  return `${request.headers.get("Authorization")} ${request.url}`;
}

export async function fetchOnce(request: Request): Promise<Response> {
  if (request.method !== "GET") return fetch(request);
  if ((request as RecordedRequest).mark === PREFETCH) {
    const controller = new AbortController();
    const response = fetch(request, { signal: controller.signal });
    // The request that takes it rejects.
    response.catch(() => {});
    prefetched.set(nameOf(request), { response, controller });
    return new Promise(() => {});
  }
  const { response, controller } = prefetched.get(nameOf(request)) ?? {};
  if (!response) return fetch(request);
  prefetched.delete(nameOf(request));
  request.signal.addEventListener("abort", () => controller?.abort());
  return response;
}

/** The page that is shown has asked for everything that it needs at first. */
export function dropPrefetched(): void {
  for (const { controller } of prefetched.values()) controller.abort();
  prefetched.clear();
}
