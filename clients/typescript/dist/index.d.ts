import type { paths } from "../schema.js";
import { type StreamedEvent } from "./events.js";
import type { Arguments, Entry, ExportPath, Input, ListPath, Method, Operation, Page, Parameters, PathOf, Result } from "./operations.js";
import { type Options } from "./request.js";
export type * from "../schema.js";
export type { DataChanged, StreamedEvent } from "./events.js";
export type { Entry, ExportPath, FileBody, Input, ListPath, Page, Parameters, PathOf, Result, } from "./operations.js";
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
export declare class Tidemark {
    #private;
    constructor(options?: TidemarkOptions);
    get<P extends PathOf<"get">>(path: P, ...[input, options]: Of<P, "get">): Promise<Result<Operation<P, "get">>>;
    post<P extends PathOf<"post">>(path: P, ...[input, options]: Of<P, "post">): Promise<Result<Operation<P, "post">>>;
    patch<P extends PathOf<"patch">>(path: P, ...[input, options]: Of<P, "patch">): Promise<Result<Operation<P, "patch">>>;
    put<P extends PathOf<"put">>(path: P, ...[input, options]: Of<P, "put">): Promise<Result<Operation<P, "put">>>;
    delete<P extends PathOf<"delete">>(path: P, ...[input, options]: Of<P, "delete">): Promise<Result<Operation<P, "delete">>>;
    list<P extends ListPath>(path: P, ...[input, options]: Of<P, "get">): List<P>;
    /** The file in chunks. A file that is incomplete ends with an error. */
    export<P extends ExportPath>(path: P, ...[input, options]: Arguments<Parameters<Operation<P, "get">>, Options>): AsyncGenerator<Uint8Array<ArrayBuffer>, void>;
    /**
     * Events as they become known, without end: from now on, or after an id. A lost connection is continued without a gap or a
     * repetition. Store the id of the last event to continue after a restart.
     */
    events(options?: {
        lastEventId?: string;
        signal?: AbortSignal;
    }): AsyncGenerator<StreamedEvent, void>;
}
