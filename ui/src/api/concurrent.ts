// Many requests at a time, but not too many.

import { ApiProblem } from "./client.ts";

/** Requests of one person that run at the same time. */
const CONCURRENCY = 4;

function wait(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, seconds * 1_000);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

/** A request, sent again after the time that a rate limit asks for. */
async function withinRateLimit<T>(signal: AbortSignal, request: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await request();
    } catch (cause) {
      if (!(cause instanceof ApiProblem) || cause.status !== 429 || signal.aborted) throw cause;
      await wait(cause.retryAfter ?? 1, signal);
    }
  }
}

/** Sends a request for each item and reports each outcome. Starts none after an abort, and reports none. */
export async function requestEach<Item, Result>(
  items: readonly Item[],
  signal: AbortSignal,
  send: (item: Item) => Promise<Result>,
  report: (index: number, outcome: Result | ApiProblem) => void,
): Promise<void> {
  let next = 0;
  const work = async () => {
    for (let index = next++; index < items.length && !signal.aborted; index = next++) {
      const item = items[index] as Item;
      const outcome = await withinRateLimit(signal, () => send(item)).catch(ApiProblem.from);
      if (!signal.aborted) report(index, outcome);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
}
