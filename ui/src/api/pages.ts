// Pages of a list that grow: the first page, and more when asked for.

import { useMemo, useRef, useState } from "preact/hooks";

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
  key: string;
  sort: string;
}

export type PagedResource<P extends Page<unknown>> = Resource<Pages<P>> & {
  hasMore: boolean;
  loadMore: () => void;
  /** Sends the last request again; `reload` starts over. */
  retry: () => void;
};

type Compare<P extends Page<unknown>> = (left: P["rows"][number], right: P["rows"][number]) => number;

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
  const isComplete = loaded?.key === key && loaded.page.next === null && !loaded.page.isPart;
  return isComplete && loaded.sort !== sort ? (comparison?.(loaded.page) ?? null) : null;
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
  const sort = (compare && loaded.current?.sort) ?? order.sort;
  const start = JSON.stringify([key, sort]);
  const [asked, ask] = useState({ start, cursor: null as string | null, attempt: 0 });
  const { cursor, attempt } = asked.start === start ? asked : { cursor: null, attempt: 0 };
  const resource = useResource<Pages<P>>(
    async (signal, before) => {
      const page = await load(cursor, signal);
      const [rows, requests] = cursor && before ? [before.rows, before.requests] : [[], []];
      const all = { rows: [...rows, ...page.rows], requests: [...requests, ...requestsOf(signal)] };
      return { ...all, page, key, sort };
    },
    [start, cursor, attempt],
  );
  loaded.current = resource.data;
  const sorted = useMemo(
    () => compare && resource.data && { ...resource.data, rows: [...resource.data.rows].sort(compare) },
    [resource.data, compare && order.sort],
  );
  const next = resource.data?.page.next ?? null;
  return {
    ...(sorted ? mapResource(resource, () => sorted) : resource),
    requests: resource.data?.requests ?? resource.requests,
    hasMore: next !== null,
    loadMore: () => next && ask({ start, cursor: next, attempt: attempt + 1 }),
    retry: resource.reload,
    reload: () => ask({ start, cursor: null, attempt: attempt + 1 }),
  };
}
