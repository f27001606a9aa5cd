import type { Problem as ProblemBody, Violation } from "../schema.js";
/** An error response. `code` is for programs, the message for people. */
export declare class Problem extends Error {
    readonly name = "Problem";
    readonly status: number;
    readonly code: string;
    readonly detail: string;
    /** Quote it when you report a problem. */
    readonly requestId: string | undefined;
    /** The fields that are wrong; of a 422 only. */
    readonly errors: Violation[];
    /** Seconds until the request may be retried: the header `Retry-After`. */
    readonly retryAfter: number | undefined;
    constructor(status: number, body: Partial<ProblemBody>, retryAfter?: number);
    static from(response: Response): Promise<Problem>;
}
