// Requests: their URL and body, timeouts, and retries.
import { Problem } from "./problem.js";
/** Files have no version. */
const UNVERSIONED = /^\/(export\/|import$)/;
const RETRYABLE = new Set([429, 500, 502, 503, 504]);
/** A longer `Retry-After` is an error at once. */
const MAX_RETRY_AFTER_SECONDS = 120;
export function isRetryable({ status, retryAfter = 0 }) {
    return RETRYABLE.has(status) && retryAfter <= MAX_RETRY_AFTER_SECONDS;
}
/** Unique, which is all that a key has to be: `crypto` is not everywhere. */
export function randomKey() {
    return [Date.now(), Math.random(), Math.random()].map((number) => number.toString(36)).join("-");
}
/** Fills the path in; what it does not name becomes the query. */
export function locate(root, template, values) {
    const query = new URLSearchParams();
    const rest = new Map(Object.entries(values));
    const path = template.replace(/\{(\w+)\}/g, (_, name) => {
        const value = rest.get(name);
        if (value === undefined || value === null || value === "")
            throw new TypeError(`${template} needs ${name}`);
        rest.delete(name);
        return encodeURIComponent(String(value));
    });
    for (const [name, value] of rest) {
        if (value === undefined || value === null)
            continue;
        if (Array.isArray(value))
            for (const item of value)
                query.append(name, String(item));
        else if (typeof value === "object")
            for (const [tag, text] of Object.entries(value))
                query.append(`${name}.${tag}`, String(text));
        else
            query.append(name, String(value));
    }
    const version = UNVERSIONED.test(template) ? "" : "/v2";
    return `${root}${version}${path}${query.size > 0 ? `?${query}` : ""}`;
}
/** Aborts a request that makes no progress. */
class Deadline {
    timeout;
    signal;
    #controller = new AbortController();
    #timer;
    constructor(timeout, signal) {
        this.timeout = timeout;
        this.signal = signal ? AbortSignal.any([signal, this.#controller.signal]) : this.#controller.signal;
        this.extend();
    }
    extend() {
        this.stop();
        const reason = () => new DOMException(`no progress for ${this.timeout} ms`, "TimeoutError");
        this.#timer = setTimeout(() => this.#controller.abort(reason()), this.timeout);
    }
    stop() {
        clearTimeout(this.#timer);
    }
}
/** Sends a request until it is answered; `read` takes what it needs of the response. */
export async function send(settings, url, init, options, read) {
    const headers = { Authorization: `Bearer ${settings.key}`, ...init.headers };
    for (let attempt = 0, wasLost = false;; attempt++) {
        const deadline = new Deadline(options.timeout ?? settings.timeout, options.signal);
        let wait = Math.min(500 * 2 ** attempt, 8000);
        try {
            const response = await fetch(url, { ...init, headers, redirect: "error", signal: deadline.signal });
            if (response.ok)
                return await read(response, deadline);
            throw await Problem.from(response);
        }
        catch (error) {
            if (error instanceof Problem) {
                // The first request of an idempotency key may still run, if its connection was lost.
                if (!isRetryable(error) && !(wasLost && error.status === 409))
                    throw error;
                if (error.retryAfter !== undefined)
                    wait = error.retryAfter * 1000;
            }
            else
                wasLost = true;
            if (options.signal?.aborted || attempt >= settings.retries)
                throw error;
        }
        finally {
            deadline.stop();
        }
        await sleep(wait + Math.random() * 250, options.signal);
    }
}
/** The chunks of a response, as they arrive. */
export async function* chunks(response, deadline) {
    const reader = response.body?.getReader();
    if (!reader)
        return;
    try {
        for (;;) {
            deadline.extend();
            const { done, value } = await reader.read();
            if (done)
                return;
            deadline.stop();
            yield value;
        }
    }
    finally {
        deadline.stop();
        await reader.cancel().catch(() => { });
    }
}
export function sleep(milliseconds, signal) {
    return new Promise((resolve, reject) => {
        const end = () => {
            clearTimeout(timer);
            signal?.removeEventListener("abort", end);
            if (signal?.aborted)
                reject(signal.reason);
            else
                resolve();
        };
        const timer = setTimeout(end, signal?.aborted ? 0 : milliseconds);
        signal?.addEventListener("abort", end);
    });
}
