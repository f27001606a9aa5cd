// Posts that are in a collection or kept out of it by hand, and undoing this.

import { useState } from "preact/hooks";

import { useAction } from "../../api/action.ts";
import { api, unwrap } from "../../api/client.ts";
import { usePages } from "../../api/pages.ts";
import { mapResource } from "../../api/resource.ts";
import { MoreButton } from "../../components/gain-columns.tsx";
import { Card, CardTitle, Empty, ProblemNotice } from "../../components/parts.tsx";
import { plural } from "../../format.ts";
import * as css from "../editor.module.css";
import { PreviewPost } from "./preview.tsx";

type State = "included" | "excluded";

const TEXTS = {
  included: { title: "Included by hand", none: "No post is included by hand." },
  excluded: { title: "Excluded by hand", none: "No post is excluded by hand." },
} as const;

async function fetchMarked(collection_id: string, state: State, cursor: string | null, signal: AbortSignal) {
  const query = { state, limit: 20, ...(cursor ? { cursor } : {}) };
  const params = { path: { collection_id }, query };
  const { data, pagination } = await unwrap(
    api.GET("/collections/{collection_id}/videos", { params, signal }),
  );
  return { rows: data, next: pagination.next_cursor ?? null };
}

interface Props {
  collection_id: string;
  state: State;
  /** How many there are. */
  count: number;
}

/** A list that opens when asked for. */
export function Marks({ count, ...marks }: Props) {
  const [isOpen, setOpen] = useState(false);
  const { title } = TEXTS[marks.state];
  if (isOpen) return <MarkList {...marks} />;
  return (
    <section class="card" aria-label={title}>
      <header>
        <CardTitle title={title} note={plural(count, "post")} />
        <div class="controls">
          <button type="button" disabled={count === 0} onClick={() => setOpen(true)}>
            Show
          </button>
        </div>
      </header>
    </section>
  );
}

function MarkList({ collection_id, state }: Omit<Props, "count">) {
  const pages = usePages(
    `${collection_id} ${state}`,
    (cursor, signal) => fetchMarked(collection_id, state, cursor, signal),
    { sort: "" },
  );
  const unmark = useAction(async (signal, video_id: string) => {
    const path = { collection_id, video_id };
    await unwrap(api.DELETE("/collections/{collection_id}/videos/{video_id}", { params: { path }, signal }));
    pages.reload();
  });
  const { title, none } = TEXTS[state];
  return (
    <Card title={title} resource={mapResource(pages, ({ rows }) => rows)} height={60}>
      {(rows) => (
        <>
          <ProblemNotice of={unmark} />
          {rows.length === 0 && <Empty>{none}</Empty>}
          <ul class={css.posts}>
            {rows.map((post) => (
              <li key={post.id}>
                <PreviewPost post={post} />
                <button
                  type="button"
                  class="plain small"
                  disabled={unmark.isRunning}
                  aria-label={`Undo: ${post.description || "post without a caption"}`}
                  onClick={() => void unmark.run(post.id)}
                >
                  Undo
                </button>
              </li>
            ))}
          </ul>
          <MoreButton pages={pages} />
        </>
      )}
    </Card>
  );
}
