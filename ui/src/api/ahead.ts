// Requests that start before the code of their page is there, and are answered once it asks for the same.

import type { RecordedRequest } from "./requests.ts";

/** Marks requests whose answers are for later. It never aborts. */
export const AHEAD = new AbortController().signal;

interface Started {
  response: Promise<Response>;
  controller: AbortController;
}

const started = new Map<string, Started>();

function nameOf(request: Request): string {
  return `${request.headers.get("Authorization")} ${request.url}`;
}

export async function fetchOnce(request: Request): Promise<Response> {
  if (request.method !== "GET") return fetch(request);
  if ((request as RecordedRequest).mark === AHEAD) {
    const controller = new AbortController();
    started.set(nameOf(request), { response: fetch(request, { signal: controller.signal }), controller });
    return new Promise(() => {});
  }
  const { response, controller } = started.get(nameOf(request)) ?? {};
  if (!response) return fetch(request);
  started.delete(nameOf(request));
  request.signal.addEventListener("abort", () => controller?.abort());
  return response;
}

/** The page that is shown has asked for everything that it needs at first. */
export function forgetStarted(): void {
  for (const { controller } of started.values()) controller.abort();
  started.clear();
}
