// Pages of a list that grow: the first page, and more when asked for.

import { useEffect, useState } from "preact/hooks";

import { ApiProblem } from "../api/client.ts";
import { requestsOf } from "../api/requests.ts";

export interface Page<Row> {
  rows: Row[];
  next: string | null;
}

export interface PagedRows<Row> {
  rows: readonly Row[] | null;
  problem: ApiProblem | null;
  isLoading: boolean;
  /** URLs of the requests of all pages. */
  requests: readonly string[];
  hasMore: boolean;
  loadMore: () => void;
  reload: () => void;
}

type State<Row> = Pick<PagedRows<Row>, "rows" | "problem" | "isLoading" | "requests"> & { next: string | null };

interface Request {
  key: string;
  cursor: string | null;
  attempt: number;
}

/** Starts over when `key` changes; the old rows stay until the first new page is there. */
export function usePages<Row>(key: string, load: (cursor: string | null, signal: AbortSignal) => Promise<Page<Row>>): PagedRows<Row> {
  const [request, setRequest] = useState<Request>({ key, cursor: null, attempt: 0 });
  const [state, setState] = useState<State<Row>>({ rows: null, next: null, problem: null, isLoading: true, requests: [] });
  const current = request.key === key ? request : { key, cursor: null, attempt: 0 };
  useEffect(() => {
    const controller = new AbortController();
    setState((state) => ({ ...state, isLoading: true }));
    load(current.cursor, controller.signal).then(
      ({ rows, next }) => {
        if (controller.signal.aborted) return;
        const requests = requestsOf(controller.signal);
        setState((state) => ({
          rows: current.cursor ? [...(state.rows ?? []), ...rows] : rows,
          requests: current.cursor ? [...state.requests, ...requests] : requests,
          next, problem: null, isLoading: false,
        }));
      },
      (cause: unknown) => {
        if (controller.signal.aborted) return;
        const problem = ApiProblem.from(cause);
        setState((state) => ({ ...state, problem, isLoading: false, requests: state.rows ? state.requests : requestsOf(controller.signal) }));
      },
    );
    return () => controller.abort();
  }, [current.key, current.cursor, current.attempt]);
  return {
    rows: state.rows,
    problem: state.problem,
    isLoading: state.isLoading,
    requests: state.requests,
    hasMore: state.next !== null,
    loadMore: () => state.next && setRequest({ ...current, cursor: state.next }),
    reload: () => setRequest({ key, cursor: null, attempt: current.attempt + 1 }),
  };
}
