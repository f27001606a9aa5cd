// Imports: the list, one of them, and a file that is sent.

import { ApiProblem, api, unwrap } from "../api/client.ts";
import { isLive, onNews } from "../api/live.ts";
import type { Page } from "../api/pages.ts";
import type { components } from "../api/schema.d.ts";
import { key } from "../state/session.ts";
import type { Platform } from "../state/view.ts";

export type Import = components["schemas"]["Import"];

const PAGE_SIZE = 25;

export async function fetchImports(cursor: string | null, signal: AbortSignal): Promise<Page<Import>> {
  const query = { limit: PAGE_SIZE, ...(cursor ? { cursor } : {}) };
  const { data, pagination } = await unwrap(api.GET("/imports", { params: { query }, signal }));
  return { rows: data, next: pagination.next_cursor };
}

export async function fetchImport(import_id: string, signal: AbortSignal): Promise<Import> {
  return (await unwrap(api.GET("/imports/{import_id}", { params: { path: { import_id } }, signal }))).data;
}

export async function cancelImport(import_id: string, signal?: AbortSignal): Promise<void> {
  const options = { params: { path: { import_id } }, ...(signal ? { signal } : {}) };
  await unwrap(api.DELETE("/imports/{import_id}", options));
}

/** What a file does not say. */
export interface FileOptions {
  platform: Platform | null;
  username: string;
  /** A day, or empty. */
  observedAt: string;
  timeZone: string;
  dayFirst: boolean;
  track: boolean;
}

export const NO_OPTIONS: FileOptions = {
  platform: null,
  username: "",
  observedAt: "",
  timeZone: "",
  dayFirst: false,
  track: false,
};

/** The parameters of an upload. */
export function uploadQuery(filename: string, options: FileOptions, isPreview: boolean): URLSearchParams {
  const { platform, username, observedAt, timeZone, dayFirst, track } = options;
  const given = {
    filename: [...filename].slice(-255).join(""),
    platform: platform ?? "",
    username: username.trim(),
    observed_at: observedAt,
    time_zone: timeZone.trim(),
    day_first: dayFirst ? "true" : "",
    track: track ? "true" : "",
    dry_run: isPreview ? "true" : "",
  };
  return new URLSearchParams(Object.entries(given).filter(([, value]) => value !== ""));
}

/** Sends a file. Not by `fetch`, which does not tell how much is sent. */
export function sendFile(
  file: File,
  query: URLSearchParams,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): Promise<Import> {
  const request = new XMLHttpRequest();
  const response = new Promise<{ data?: { data: Import }; error?: unknown; response: Response }>(
    (resolve, reject) => {
      request.open("POST", `/import?${query}`);
      request.setRequestHeader("Authorization", `Bearer ${key.value}`);
      request.setRequestHeader("Content-Type", "application/octet-stream");
      request.upload.onprogress = ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0);
      request.onload = () => {
        const wait = request.getResponseHeader("Retry-After");
        const answer = new Response(null, {
          status: request.status,
          headers: wait === null ? {} : { "Retry-After": wait },
        });
        let body: unknown = null;
        try {
          body = JSON.parse(request.responseText || "null");
        } catch (cause) {
          // A proxy answered. What it says of an error is not known.
          if (answer.ok) return reject(cause);
        }
        resolve(
          answer.ok
            ? { data: body as { data: Import }, response: answer }
            : { error: body, response: answer },
        );
      };
      request.onerror = () => reject(new TypeError("the connection broke"));
      request.onabort = () => reject(new DOMException("aborted", "AbortError"));
      signal.addEventListener("abort", () => request.abort(), { once: true });
      request.send(file);
    },
  );
  return unwrap(response).then(({ data }) => data);
}

/** How often a running import is looked at, in milliseconds: seldom where news say when it ended. */
const [FOLLOW_MS, FOLLOW_LIVE_MS] = [1_000, 5_000];

/** Until a running import may have gone on. */
function afterNews(): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      stop();
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(end, isLive.peek() ? FOLLOW_LIVE_MS : FOLLOW_MS);
    const stop = onNews((event) => event?.type === "import.ended" && end());
  });
}

/** Whether the import may go on although its state is not known. */
function isPassing(cause: unknown): boolean {
  return cause instanceof ApiProblem && (cause.status === 0 || cause.status === 429 || cause.status >= 500);
}

/** Waits until an import has ended. */
export async function followImport(
  start: Import,
  onChange: (current: Import) => void,
  signal: AbortSignal,
): Promise<Import> {
  let current = start;
  while (isUnfinished(current)) {
    onChange(current);
    await afterNews();
    signal.throwIfAborted();
    current = await fetchImport(start.id, signal).catch((cause: unknown) => {
      if (isPassing(cause)) return current;
      throw cause;
    });
  }
  return current;
}

export function isUnfinished({ status }: Import): boolean {
  return status === "queued" || status === "running";
}
