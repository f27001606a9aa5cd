// Pages of a list that grow: the first page, and more when asked for.

import { useLayoutEffect, useMemo, useState } from "preact/hooks";

import { ApiProblem } from "../api/client.ts";
import { requestsOf } from "../api/requests.ts";

export interface Page<Row> {
  rows: readonly Row[];
  next: string | null;
  /** Whether there are more rows although none can be loaded. */
  isPart?: boolean;
}

export interface PagedRows<P extends Page<unknown>> {
  rows: P["rows"] | null;
  /** The page that was loaded last; its own rows are among `rows`. */
  page: P | null;
  problem: ApiProblem | null;
  isLoading: boolean;
  /** URLs of the requests of all pages. */
  requests: readonly string[];
  hasMore: boolean;
  loadMore: () => void;
  /** Sends the last request again. */
  retry: () => void;
  reload: () => void;
}

type Compare<P extends Page<unknown>> = (left: P["rows"][number], right: P["rows"][number]) => number;

/** The order of the rows. */
export interface Order<P extends Page<unknown>> {
  sort: string;
  /** How rows of a page are put in this order; null if they lack what it needs. */
  comparison: (page: P) => Compare<P> | null;
}

interface Request {
  key: string;
  sort: string;
  cursor: string | null;
  attempt: number;
}

type State<P extends Page<unknown>> = Pick<
  PagedRows<P>,
  "rows" | "page" | "problem" | "isLoading" | "requests"
> & { request: Request | null };

/**
 * Starts over when `key` or the order changes; the old rows stay until the first new page is there. Once all rows are there, they
 * are put in another order without a request.
 */
export function usePages<P extends Page<unknown>>(
  key: string,
  load: (cursor: string | null, signal: AbortSignal) => Promise<P>,
  order: Order<P> = { sort: "", comparison: () => null },
): PagedRows<P> {
  const [request, setRequest] = useState<Request>({ key, sort: order.sort, cursor: null, attempt: 0 });
  const [state, setState] = useState<State<P>>({
    rows: null,
    page: null,
    problem: null,
    isLoading: true,
    requests: [],
    request: null,
  });
  const isComplete = state.request?.key === key && state.page?.next === null && !state.page.isPart;
  const compare =
    isComplete && state.page && state.request?.sort !== order.sort ? order.comparison(state.page) : null;
  const isCurrent =
    request.key === key && (request.sort === order.sort || (compare !== null && state.request === request));
  const current = isCurrent ? request : { key, sort: order.sort, cursor: null, attempt: 0 };
  useLayoutEffect(() => {
    const controller = new AbortController();
    setRequest(current);
    setState((state) => ({ ...state, isLoading: true }));
    load(current.cursor, controller.signal).then(
      (page) => {
        if (controller.signal.aborted) return;
        const requests = requestsOf(controller.signal);
        setState((state) => ({
          rows: current.cursor ? [...(state.rows ?? []), ...page.rows] : page.rows,
          requests: current.cursor ? [...state.requests, ...requests] : requests,
          page,
          problem: null,
          isLoading: false,
          request: current,
        }));
      },
      (cause: unknown) => {
        if (controller.signal.aborted) return;
        const problem = ApiProblem.from(cause);
        setState((state) => ({
          ...state,
          problem,
          isLoading: false,
          requests: state.rows ? state.requests : requestsOf(controller.signal),
        }));
      },
    );
    return () => controller.abort();
  }, [current.key, current.sort, current.cursor, current.attempt]);
  const rows = useMemo(
    () => (compare && state.rows ? [...state.rows].sort(compare) : state.rows),
    [state.rows, compare && order.sort],
  );
  const next = state.page?.next ?? null;
  return {
    ...state,
    rows,
    hasMore: next !== null,
    loadMore: () => next && setRequest({ ...current, cursor: next, attempt: current.attempt + 1 }),
    retry: () => setRequest({ ...current, attempt: current.attempt + 1 }),
    reload: () => setRequest({ key, sort: order.sort, cursor: null, attempt: current.attempt + 1 }),
  };
}
