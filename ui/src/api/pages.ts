// Pages of a list that grow: the first page, and more when asked for.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { keepRows, rowsBefore } from "../state/place.ts";
import { requestsOf } from "./requests.ts";
import { mapResource, type Resource, useResource } from "./resource.ts";

export interface Page<Row> {
  rows: readonly Row[];
  next: string | null;
  /** Whether there are more rows although none can be loaded. */
  isPart?: boolean;
}

export interface Pages<P extends Page<unknown>> {
  rows: P["rows"];
  /** The page that was loaded last; its own rows are among `rows`. */
  page: P;
  /** URLs of the requests of all pages. */
  requests: readonly string[];
  /** The request of the last page. */
  request: PageRequest;
}

/** A page of a list in an order. */
interface PageRequest {
  key: string;
  sort: string;
  cursor: string | null;
  /** From the start on: how many rows are loaded at least, as far as there are. */
  count: number;
}

function nameOf({ key, sort }: Pick<PageRequest, "key" | "sort">): string {
  return `${key} ${sort}`;
}

export type PagedResource<P extends Page<unknown>> = Resource<Pages<P>> & {
  hasMore: boolean;
  loadMore: () => void;
  /** Sends the last request again; `reload` and `refresh` load all rows that are shown again. */
  retry: () => void;
};

type Compare<P extends Page<unknown>> = (left: P["rows"][number], right: P["rows"][number]) => number;

/** Longer lists stay as they are while figures change: each page of them is a request. */
const MAX_LIVE_ROWS = 200;

/** The order of the rows. */
export interface RowOrder<P extends Page<unknown>> {
  sort: string;
  /** How rows of a page are put in this order; null if they lack what it needs. */
  comparison?: (page: P) => Compare<P> | null;
}

/** How all rows are put in an order; null if they are in it, or have to be loaded in it. */
function comparisonOf<P extends Page<unknown>>(
  loaded: Pages<P> | undefined,
  key: string,
  { sort, comparison }: RowOrder<P>,
): Compare<P> | null {
  const isComplete = loaded?.request.key === key && loaded.page.next === null && !loaded.page.isPart;
  return isComplete && loaded.request.sort !== sort ? (comparison?.(loaded.page) ?? null) : null;
}

/** The rest of as many pages as were shown before. */
async function loadUntil<P extends Page<unknown>>(
  count: number,
  first: P,
  load: (cursor: string) => Promise<P>,
): Promise<{ rows: P["rows"]; page: P }> {
  let [page, rows]: [P, P["rows"]] = [first, first.rows];
  while (page.next && rows.length < count) {
    page = await load(page.next);
    rows = [...rows, ...page.rows];
  }
  return { rows, page };
}

/** How many rows there are in all; null until that is known. They are counted if not all are there. */
export function useTotal(
  { data, hasMore }: PagedResource<Page<unknown>>,
  count: (signal: AbortSignal) => Promise<number | null>,
): number | null {
  const counted = useResource(hasMore ? count : null, [data?.request.key], { isBelow: true });
  if (hasMore) return counted.data ?? null;
  return data && !data.page.isPart ? data.rows.length : null;
}

/**
 * Starts over when `key` or the order changes; the old rows stay until the first new page is there. Once all rows are there, they
 * are put in another order without a request.
 */
export function usePages<P extends Page<unknown>>(
  key: string,
  load: (cursor: string | null, signal: AbortSignal) => Promise<P>,
  order: RowOrder<P>,
): PagedResource<P> {
  const loaded = useRef<Pages<P> | undefined>(undefined);
  const compare = comparisonOf(loaded.current, key, order);
  const start = { key, sort: order.sort, cursor: null };
  const [latest, setRequest] = useState<PageRequest>(() => ({ ...start, count: rowsBefore(nameOf(start)) }));
  const isSorted = compare !== null && loaded.current?.request === latest;
  const isCurrent = latest.key === key && (latest.sort === order.sort || isSorted);
  const request = isCurrent ? latest : { ...start, count: rowsBefore(nameOf(start)) };
  // Forgets the cursor of another list or order, which would be sent again when that is shown again.
  if (request !== latest) setRequest(request);
  /** At least so many rows are loaded, unless more are added to those of `request`. */
  const shownRows = () =>
    Math.max(request.count, loaded.current?.request === request ? loaded.current.rows.length : 0);
  const resource = useResource<Pages<P>>(
    async (signal, before) => {
      const isSame = before?.request.key === key && before.request.sort === request.sort;
      const earlier = request.cursor && isSame ? before : undefined;
      const first = await load(earlier ? request.cursor : null, signal);
      const { rows: loadedRows, page } = await loadUntil(earlier ? 0 : shownRows(), first, (cursor) =>
        load(cursor, signal),
      );
      const rows = [...(earlier?.rows ?? []), ...loadedRows];
      return { rows, page, request, requests: [...(earlier?.requests ?? []), ...requestsOf(signal)] };
    },
    [request],
    { isLive: shownRows() <= MAX_LIVE_ROWS },
  );
  loaded.current = resource.data;
  useEffect(() => {
    if (resource.status === "ready") keepRows(nameOf(resource.data.request), resource.data.rows.length);
  }, [resource.data]);
  const sorted = useMemo(
    () => compare && resource.data && { ...resource.data, rows: [...resource.data.rows].sort(compare) },
    [resource.data, compare && order.sort],
  );
  const next = resource.data?.page.next ?? null;
  return {
    ...(sorted ? mapResource(resource, () => sorted) : resource),
    requests: resource.data?.requests ?? resource.requests,
    hasMore: next !== null,
    loadMore: () => next && setRequest({ ...request, cursor: next }),
    retry: resource.reload,
    reload: () => setRequest({ ...start, count: loaded.current?.rows.length ?? 0 }),
  };
}
