// A client of the Tidemark API: paths, parameters and responses have the types of its OpenAPI document.

import type { paths } from "../schema.js";
import { parse, type StreamedEvent } from "./events.js";
import type {
  Arguments,
  Entry,
  ExportPath,
  Input,
  ListPage,
  ListPath,
  Method,
  Operation,
  Page,
  Parameters,
  PathOf,
  Result,
} from "./operations.js";
import { Problem } from "./problem.js";
import {
  chunks,
  isRetryable,
  locate,
  type Options,
  randomKey,
  type Settings,
  send,
  sleep,
  type Values,
} from "./request.js";

export type * from "../schema.js";
export type { DataChanged, StreamedEvent } from "./events.js";
export type {
  Entry,
  ExportPath,
  FileBody,
  Input,
  ListPath,
  Page,
  Parameters,
  PathOf,
  Result,
} from "./operations.js";
export { Problem } from "./problem.js";
export type { Options } from "./request.js";

export interface TidemarkOptions {
  /** URL of the API, with or without `/v2`; by default `TIDEMARK_URL` of the environment. */
  url?: string;
  /** API key; by default `TIDEMARK_API_KEY` of the environment. */
  key?: string;
  /** Milliseconds after which a request or a stalled export fails; by default a minute. */
  timeout?: number;
  /** How often a request is repeated; by default 4 times. */
  retries?: number;
}

/** The service sends a comment every 15 seconds. */
const STREAM_TIMEOUT_MS = 45_000;
/** The service takes an hour for a file, and aborts a transfer that stalls. */
const UPLOAD_TIMEOUT_MS = 3_600_000;
/** The position before all events. */
const START = "00000000-0000-0000-0000-000000000000";

type Of<P extends keyof paths, M extends Method> = Arguments<Input<Operation<P, M>>, Options>;

/** Entries of all pages of a list, requested as they are needed. */
export interface List<P extends ListPath> extends AsyncIterable<Entry<P>> {
  pages(): AsyncGenerator<Page<P>, void>;
}

/**
 * A client for one API key.
 *
 * Requests are repeated after a lost connection, 429, 500 and 502 to 504, as `Retry-After` says. That is safe: creates are sent
 * with an `Idempotency-Key`, and other operations may be repeated. Other error responses are thrown as a `Problem`.
 */
export class Tidemark {
  readonly #settings: Settings;

  constructor(options: TidemarkOptions = {}) {
    const environment =
      (globalThis as { process?: { env: Record<string, string | undefined> } }).process?.env ?? {};
    const url = options.url ?? environment.TIDEMARK_URL;
    const key = options.key ?? environment.TIDEMARK_API_KEY;
    if (!url) throw new TypeError("the URL of the API is missing: set url or TIDEMARK_URL");
    if (!key) throw new TypeError("the API key is missing: set key or TIDEMARK_API_KEY");
    const root = url.replace(/\/+$/, "").replace(/\/v2$/, "");
    this.#settings = { root, key, timeout: options.timeout ?? 60_000, retries: options.retries ?? 4 };
  }

  get<P extends PathOf<"get">>(
    path: P,
    ...[input, options]: Of<P, "get">
  ): Promise<Result<Operation<P, "get">>> {
    return this.#request("GET", path, input, options);
  }

  post<P extends PathOf<"post">>(
    path: P,
    ...[input, options]: Of<P, "post">
  ): Promise<Result<Operation<P, "post">>> {
    return this.#request("POST", path, input, options);
  }

  patch<P extends PathOf<"patch">>(
    path: P,
    ...[input, options]: Of<P, "patch">
  ): Promise<Result<Operation<P, "patch">>> {
    return this.#request("PATCH", path, input, options);
  }

  put<P extends PathOf<"put">>(
    path: P,
    ...[input, options]: Of<P, "put">
  ): Promise<Result<Operation<P, "put">>> {
    return this.#request("PUT", path, input, options);
  }

  delete<P extends PathOf<"delete">>(
    path: P,
    ...[input, options]: Of<P, "delete">
  ): Promise<Result<Operation<P, "delete">>> {
    return this.#request("DELETE", path, input, options);
  }

  list<P extends ListPath>(path: P, ...[input, options]: Of<P, "get">): List<P> {
    const request = (cursor: string | undefined) =>
      this.#request<Page<P>>("GET", path, cursor === undefined ? input : { ...input, cursor }, options);
    async function* pages(): AsyncGenerator<Page<P>, void> {
      for (let cursor: string | undefined; ; ) {
        const page = await request(cursor);
        yield page;
        const { has_next, next_cursor } = (page as ListPage).pagination;
        if (!has_next || next_cursor === null) return;
        cursor = next_cursor;
      }
    }
    async function* entries(): AsyncGenerator<Entry<P>, void> {
      for await (const page of pages()) yield* page.data as Entry<P>[];
    }
    return { pages, [Symbol.asyncIterator]: entries };
  }

  /** The file in chunks. A file that is incomplete ends with an error. */
  async *export<P extends ExportPath>(
    path: P,
    ...[input, options = {}]: Arguments<Parameters<Operation<P, "get">>, Options>
  ): AsyncGenerator<Uint8Array<ArrayBuffer>, void> {
    const url = locate(this.#settings.root, path, (input ?? {}) as Values);
    yield* await this.#open(url, {}, options);
  }

  /**
   * Events as they become known, without end: from now on, or after an id. A lost connection is continued without a gap or a
   * repetition. Store the id of the last event to continue after a restart.
   */
  async *events(
    options: { lastEventId?: string; signal?: AbortSignal } = {},
  ): AsyncGenerator<StreamedEvent, void> {
    const { signal } = options;
    const url = locate(this.#settings.root, "/events/stream", {});
    const latest = async () =>
      (await this.get("/events", { limit: 1 }, signal ? { signal } : {})).data[0]?.id ?? START;
    let position = options.lastEventId ?? (await latest());
    const streaming = { timeout: STREAM_TIMEOUT_MS, ...(signal && { signal }) };
    for (;;) {
      const headers = { Accept: "text/event-stream", "Last-Event-ID": position };
      try {
        for await (const event of parse(await this.#open(url, headers, streaming))) {
          if ("id" in event) position = event.id;
          yield event;
        }
      } catch (error) {
        const isFinal = error instanceof Problem ? !isRetryable(error) : error instanceof SyntaxError;
        if (isFinal || signal?.aborted) throw error;
      }
      await sleep(500 + Math.random() * 500, signal);
    }
  }

  #open(url: string, headers: Record<string, string>, options: Options) {
    return send(this.#settings, url, { headers }, options, async (response, deadline) =>
      chunks(response, deadline),
    );
  }

  async #request<T>(method: string, path: string, input: Values = {}, options: Options = {}): Promise<T> {
    const { body, ...values } = input;
    const isFile =
      typeof body === "string" ||
      body instanceof Blob ||
      body instanceof ArrayBuffer ||
      ArrayBuffer.isView(body);
    const headers: Record<string, string> = { Accept: "application/json" };
    if (method === "POST" || method === "PATCH")
      headers["Idempotency-Key"] = options.idempotencyKey ?? randomKey();
    if (body !== undefined)
      headers["Content-Type"] = isFile ? "application/octet-stream" : "application/json";
    const content = isFile ? (body as BodyInit) : body === undefined ? null : JSON.stringify(body);
    const url = locate(this.#settings.root, path, values);
    const limits = isFile ? { timeout: UPLOAD_TIMEOUT_MS, ...options } : options;
    return send(this.#settings, url, { method, headers, body: content }, limits, async (response) =>
      response.status === 204 ? undefined : await response.json(),
    ) as Promise<T>;
  }
}
