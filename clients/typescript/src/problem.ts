import type { Problem as ProblemBody, Violation } from "../schema.js";

/** An error response. `code` is for programs, the message for people. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  /** Quote it when you report a problem. */
  readonly requestId: string | undefined;
  /** The fields that are wrong; of a 422 only. */
  readonly errors: Violation[];
  /** Seconds until the request may be retried: the header `Retry-After`. */
  readonly retryAfter: number | undefined;

  constructor(status: number, body: Partial<ProblemBody>, retryAfter?: number) {
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

  static async from(response: Response): Promise<Problem> {
    const body = (await response.json().catch(() => ({}))) as Partial<ProblemBody>;
    const seconds = Number(response.headers.get("Retry-After") ?? Number.NaN);
    return new Problem(response.status, body, Number.isFinite(seconds) ? seconds : undefined);
  }
}
