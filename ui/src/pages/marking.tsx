// The dialog that puts posts into a collection, keeps them out, or leaves them to its rule.

import { useState } from "preact/hooks";

import { useAction } from "../api/action.ts";
import { MAX_BATCH } from "../api/batch.ts";
import { ApiProblem, api, unwrap } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { useModal } from "../components/focus.ts";
import type { Marking } from "../components/marks.tsx";
import { markChanges } from "../components/marks.tsx";
import { ProblemNotice } from "../components/parts.tsx";
import { type Option, Picker } from "../components/picker.tsx";
import { Chip, findCollections } from "../components/record-pickers.tsx";
import { plural } from "../format.ts";
import { linkTo } from "../state/view.ts";
import * as css from "./marking.module.css";

type Mark = "included" | "excluded" | null;

const CHOICES: readonly { mark: Mark; name: string; meaning: string; done: string }[] = [
  { mark: "included", name: "Include", meaning: "always in it", done: "included" },
  { mark: "excluded", name: "Exclude", meaning: "never in it", done: "excluded" },
  { mark: null, name: "As the rule says", meaning: "no mark", done: "left to the rule" },
];

/** Null without a mark; undefined of several posts, which may differ. */
async function fetchMark(
  collection_id: string,
  [video_id, ...others]: readonly string[],
  signal: AbortSignal,
): Promise<{ mark: Mark | undefined }> {
  if (!video_id || others.length > 0) return { mark: undefined };
  const params = { path: { collection_id, video_id } };
  try {
    const { data } = await unwrap(
      api.GET("/collections/{collection_id}/videos/{video_id}", { params, signal }),
    );
    return { mark: data.state };
  } catch (cause) {
    if (cause instanceof ApiProblem && cause.status === 404) return { mark: null };
    throw cause;
  }
}

/** Resolves to how many have the mark now. */
async function markAll(
  collection_id: string,
  ids: readonly string[],
  state: Mark,
  signal: AbortSignal,
): Promise<number> {
  let updated = 0;
  for (let start = 0; start < ids.length; start += MAX_BATCH) {
    const body = { video_ids: ids.slice(start, start + MAX_BATCH), state };
    const params = { path: { collection_id } };
    updated += (await unwrap(api.POST("/collections/{collection_id}/videos", { params, body, signal }))).data
      .updated;
  }
  return updated;
}

interface Props {
  posts: Marking;
  onClose: () => void;
}

export default function MarkingDialog({ posts, onClose }: Props) {
  const dialog = useModal();
  const [collection, setCollection] = useState<Option | null>(posts.collection ?? null);
  return (
    <dialog ref={dialog} class={css.marking} aria-labelledby="marking-title" onClose={onClose}>
      <header>
        <h2 id="marking-title">Add to a collection</h2>
        <button type="button" class="plain" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </header>
      <p class={`${css.posts} quiet`} dir="auto">
        {posts.name}
      </p>
      {collection?.id ? (
        <>
          <div class="controls">
            <Chip
              name={collection.name}
              action="choose another collection"
              onClick={() => setCollection(null)}
            />
          </div>
          <Marks key={collection.id} collection_id={collection.id} ids={posts.ids} />
        </>
      ) : (
        <>
          <Picker
            label="Collection"
            placeholder="Which collection?"
            find={findCollections}
            onPick={setCollection}
          />
          <p class="small">
            <a
              class="link"
              href={linkTo("/collections", { edit: "true" })}
              onClick={() => dialog.current?.close()}
            >
              New collection
            </a>
          </p>
        </>
      )}
    </dialog>
  );
}

function Marks({ collection_id, ids }: { collection_id: string; ids: readonly string[] }) {
  const [outcome, setOutcome] = useState("");
  const current = useResource((signal) => fetchMark(collection_id, ids, signal), [collection_id]);
  const change = useAction(async (signal, { mark, done }: (typeof CHOICES)[number]) => {
    const updated = await markAll(collection_id, ids, mark, signal);
    setOutcome(`${plural(updated, "post")} ${done}.`);
    current.reload();
    markChanges.value++;
  });
  return (
    <>
      <div class={css.choices}>
        {CHOICES.map((choice) => (
          <button
            key={choice.name}
            type="button"
            disabled={change.isRunning || current.data === undefined}
            aria-pressed={current.data?.mark === choice.mark}
            onClick={() => void change.run(choice)}
          >
            {choice.name}
            <small class="quiet small">{choice.meaning}</small>
          </button>
        ))}
      </div>
      <p class="small quiet" role="status">
        {change.isRunning ? "Changing…" : outcome}
      </p>
      <ProblemNotice of={current} />
      <ProblemNotice of={change} />
    </>
  );
}
