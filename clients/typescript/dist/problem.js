/** An error response. `code` is for programs, the message for people. */
export class Problem extends Error {
    name = "Problem";
    status;
    code;
    detail;
    /** Quote it when you report a problem. */
    requestId;
    /** The fields that are wrong; of a 422 only. */
    errors;
    /** Seconds until the request may be retried: the header `Retry-After`. */
    retryAfter;
    constructor(status, body, retryAfter) {
        const errors = body.errors ?? [];
        const detail = body.detail ?? `the response has status ${status} and is not from Tidemark`;
        super(`${status}: ${[detail, ...errors.map(({ field, message }) => `${field} ${message}`)].join("; ")}`);
        this.status = status;
        this.code = body.code ?? "UNKNOWN";
        this.detail = detail;
        this.requestId = body.request_id;
        this.errors = errors;
        this.retryAfter = retryAfter;
    }
    static async from(response) {
        const body = (await response.json().catch(() => ({})));
        const seconds = Number(response.headers.get("Retry-After") ?? Number.NaN);
        return new Problem(response.status, body, Number.isFinite(seconds) ? seconds : undefined);
    }
}
