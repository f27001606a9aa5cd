// The requests behind the data of a component, so that anyone can send them again: "copy as curl".

const sent = new WeakMap<AbortSignal, string[]>();

/** A request whose URL is remembered with the signal that aborts it. */
export class RecordedRequest extends Request {
  readonly mark: AbortSignal | null;

  constructor(input: RequestInfo | URL, init?: RequestInit) {
    super(input, init);
    this.mark = init?.signal ?? null;
    if (init?.signal) sent.set(init.signal, [...requestsOf(init.signal), this.url]);
  }
}

/** URLs of the requests that were sent with a signal. */
export function requestsOf(signal: AbortSignal): readonly string[] {
  return sent.get(signal) ?? [];
}

/** Shell commands that send GET requests with the key in `TIDEMARK_KEY`. */
export function asCurl(urls: readonly string[]): string {
  return [...new Set(urls)]
    .map((url) => `curl -H "Authorization: Bearer $TIDEMARK_KEY" '${url.replaceAll("'", "%27")}'\n`)
    .join("");
}
