// What is loaded about the rows of a list once they are there, all rows of a page at once.

import { requestsOf } from "./requests.ts";
import { type Resource, useResource } from "./resource.ts";

interface Details<Detail, Meta> {
  /** By the id of the row. */
  details: ReadonlyMap<string, Detail>;
  meta: Meta;
  /** URLs of the requests for all rows. */
  requests: readonly string[];
  rows: readonly { id: string }[];
}

/** The most ids that a request may have. */
const MAX_IDS = 100;

/** Loads details of new rows only. Those of earlier rows stay until the list starts over and its details are there. */
export function useDetails<Detail, Meta>(
  rows: readonly { id: string }[] | undefined,
  load: (ids: string[], signal: AbortSignal) => Promise<{ details: ReadonlyMap<string, Detail>; meta: Meta }>,
): Resource<Details<Detail, Meta | undefined>> {
  return useResource(
    rows?.length
      ? async (signal, before) => {
          const isMore = before !== undefined && before.rows[0] === rows[0];
          const ids = rows.slice(isMore ? before.rows.length : 0).map(({ id }) => id);
          const chunks = Array.from({ length: Math.ceil(ids.length / MAX_IDS) }, (_, n) =>
            ids.slice(n * MAX_IDS, (n + 1) * MAX_IDS),
          );
          const loaded = await Promise.all(chunks.map((chunk) => load(chunk, signal)));
          return {
            details: new Map([
              ...(isMore ? before.details : []),
              ...loaded.flatMap(({ details }) => [...details]),
            ]),
            meta: loaded[0]?.meta,
            requests: [...(isMore ? before.requests : []), ...requestsOf(signal)],
            rows,
          };
        }
      : null,
    [rows],
  );
}
