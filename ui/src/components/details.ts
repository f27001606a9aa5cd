// What is loaded about the rows of a list once they are there, all rows of a page at once.

import { useEffect, useRef, useState } from "preact/hooks";

import { ApiProblem } from "../api/client.ts";
import { requestsOf } from "../api/requests.ts";

interface State<Detail> {
  details: ReadonlyMap<string, Detail>;
  problem: ApiProblem | null;
  /** URLs of the requests. */
  requests: readonly string[];
}

/** The most ids that a request may have. */
const MAX_IDS = 100;

/** Loads details of new rows only. Those of earlier rows stay until the list starts over and its details are there. */
export function useDetails<Detail>(
  rows: readonly { id: string }[] | null,
  load: (ids: string[], signal: AbortSignal) => Promise<ReadonlyMap<string, Detail>>,
): State<Detail> & { reload: () => void } {
  const [state, setState] = useState<State<Detail>>({ details: new Map(), problem: null, requests: [] });
  const [attempt, setAttempt] = useState(0);
  const before = useRef<readonly { id: string }[]>([]);
  useEffect(() => {
    if (!rows) return;
    const isMore = before.current.length > 0 && before.current[0] === rows[0];
    const added = isMore ? rows.slice(before.current.length) : rows;
    if (added.length === 0) return;
    const controller = new AbortController();
    const end = (details: ReadonlyMap<string, Detail>, problem: ApiProblem | null) => {
      if (controller.signal.aborted) return;
      if (!problem) before.current = rows;
      const requests = requestsOf(controller.signal);
      setState((state) => ({
        details: isMore ? new Map([...state.details, ...details]) : details,
        requests: isMore ? [...state.requests, ...requests] : requests,
        problem,
      }));
    };
    const ids = added.map(({ id }) => id);
    const chunks = Array.from({ length: Math.ceil(ids.length / MAX_IDS) }, (_, n) =>
      ids.slice(n * MAX_IDS, (n + 1) * MAX_IDS),
    );
    Promise.all(chunks.map((chunk) => load(chunk, controller.signal))).then(
      (loaded) => end(new Map(loaded.flatMap((details) => [...details])), null),
      (cause: unknown) =>
        end(new Map(), cause instanceof ApiProblem ? cause : new ApiProblem(0, { detail: String(cause) })),
    );
    return () => controller.abort();
  }, [rows, attempt]);
  return { ...state, reload: () => setAttempt((attempt) => attempt + 1) };
}
