import { Problem } from "./problem.js";
export interface Options {
    signal?: AbortSignal;
    /** Milliseconds after which a request or a stalled export fails. */
    timeout?: number;
    /** Of a create: by default a new one for each call, which its repetitions share. */
    idempotencyKey?: string;
}
export interface Settings {
    /** Of the API, with or without `/v2`. */
    root: string;
    key: string;
    timeout: number;
    retries: number;
}
export type Values = Record<string, unknown>;
export declare function isRetryable({ status, retryAfter }: Problem): boolean;
/** Unique, which is all that a key has to be: `crypto` is not everywhere. */
export declare function randomKey(): string;
/** Fills the path in; what it does not name becomes the query. */
export declare function locate(root: string, template: string, values: Values): string;
/** Aborts a request that makes no progress. */
declare class Deadline {
    #private;
    readonly timeout: number;
    readonly signal: AbortSignal;
    constructor(timeout: number, signal: AbortSignal | undefined);
    extend(): void;
    stop(): void;
}
/** Sends a request until it is answered; `read` takes what it needs of the response. */
export declare function send<T>(settings: Settings, url: string, init: RequestInit & {
    headers: Record<string, string>;
}, options: Options, read: (response: Response, deadline: Deadline) => Promise<T>): Promise<T>;
/** The chunks of a response, as they arrive. */
export declare function chunks(response: Response, deadline: Deadline): AsyncGenerator<Uint8Array<ArrayBuffer>, void>;
export declare function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void>;
export {};
