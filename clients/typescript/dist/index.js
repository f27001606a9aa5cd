// A client of the Tidemark API: paths, parameters and responses have the types of its OpenAPI document.
import { parse } from "./events.js";
import { Problem } from "./problem.js";
import { chunks, isRetryable, locate, randomKey, send, sleep, } from "./request.js";
export { Problem } from "./problem.js";
/** The service sends a comment every 15 seconds. */
const STREAM_TIMEOUT_MS = 45_000;
/** The service takes an hour for a file, and aborts a transfer that stalls. */
const UPLOAD_TIMEOUT_MS = 3_600_000;
/** The position before all events. */
const START = "00000000-0000-0000-0000-000000000000";
/**
 * A client for one API key.
 *
 * Requests are repeated after a lost connection, 429, 500 and 502 to 504, as `Retry-After` says. That is safe: creates are sent
 * with an `Idempotency-Key`, and other operations may be repeated. Other error responses are thrown as a `Problem`.
 */
export class Tidemark {
    #settings;
    constructor(options = {}) {
        const environment = globalThis.process?.env ?? {};
        const url = options.url ?? environment.TIDEMARK_URL;
        const key = options.key ?? environment.TIDEMARK_API_KEY;
        if (!url)
            throw new TypeError("the URL of the API is missing: set url or TIDEMARK_URL");
        if (!key)
            throw new TypeError("the API key is missing: set key or TIDEMARK_API_KEY");
        const root = url.replace(/\/+$/, "").replace(/\/v2$/, "");
        this.#settings = { root, key, timeout: options.timeout ?? 60_000, retries: options.retries ?? 4 };
    }
    get(path, ...[input, options]) {
        return this.#request("GET", path, input, options);
    }
    post(path, ...[input, options]) {
        return this.#request("POST", path, input, options);
    }
    patch(path, ...[input, options]) {
        return this.#request("PATCH", path, input, options);
    }
    put(path, ...[input, options]) {
        return this.#request("PUT", path, input, options);
    }
    delete(path, ...[input, options]) {
        return this.#request("DELETE", path, input, options);
    }
    list(path, ...[input, options]) {
        const request = (cursor) => this.#request("GET", path, cursor === undefined ? input : { ...input, cursor }, options);
        async function* pages() {
            for (let cursor;;) {
                const page = await request(cursor);
                yield page;
                const { has_next, next_cursor } = page.pagination;
                if (!has_next || next_cursor === null)
                    return;
                cursor = next_cursor;
            }
        }
        async function* entries() {
            for await (const page of pages())
                yield* page.data;
        }
        return { pages, [Symbol.asyncIterator]: entries };
    }
    /** The file in chunks. A file that is incomplete ends with an error. */
    async *export(path, ...[input, options = {}]) {
        const url = locate(this.#settings.root, path, (input ?? {}));
        yield* await this.#open(url, {}, options);
    }
    /**
     * Events as they become known, without end: from now on, or after an id. A lost connection is continued without a gap or a
     * repetition. Store the id of the last event to continue after a restart.
     */
    async *events(options = {}) {
        const { signal } = options;
        const url = locate(this.#settings.root, "/events/stream", {});
        const latest = async () => (await this.get("/events", { limit: 1 }, signal ? { signal } : {})).data[0]?.id ?? START;
        let position = options.lastEventId ?? (await latest());
        const streaming = { timeout: STREAM_TIMEOUT_MS, ...(signal && { signal }) };
        for (;;) {
            const headers = { Accept: "text/event-stream", "Last-Event-ID": position };
            try {
                for await (const event of parse(await this.#open(url, headers, streaming))) {
                    if ("id" in event)
                        position = event.id;
                    yield event;
                }
            }
            catch (error) {
                const isFinal = error instanceof Problem ? !isRetryable(error) : error instanceof SyntaxError;
                if (isFinal || signal?.aborted)
                    throw error;
            }
            await sleep(500 + Math.random() * 500, signal);
        }
    }
    #open(url, headers, options) {
        return send(this.#settings, url, { headers }, options, async (response, deadline) => chunks(response, deadline));
    }
    async #request(method, path, input = {}, options = {}) {
        const { body, ...values } = input;
        const isFile = typeof body === "string" ||
            body instanceof Blob ||
            body instanceof ArrayBuffer ||
            ArrayBuffer.isView(body);
        const headers = { Accept: "application/json" };
        if (method === "POST" || method === "PATCH")
            headers["Idempotency-Key"] = options.idempotencyKey ?? randomKey();
        if (body !== undefined)
            headers["Content-Type"] = isFile ? "application/octet-stream" : "application/json";
        const content = isFile ? body : body === undefined ? null : JSON.stringify(body);
        const url = locate(this.#settings.root, path, values);
        const limits = isFile ? { timeout: UPLOAD_TIMEOUT_MS, ...options } : options;
        return send(this.#settings, url, { method, headers, body: content }, limits, async (response) => response.status === 204 ? undefined : await response.json());
    }
}
