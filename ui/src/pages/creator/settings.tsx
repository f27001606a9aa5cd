// Settings of a creator: name, tags, whether its accounts are tracked. With scope `write` only.

import { useState } from "preact/hooks";

import { useAction } from "../../api/action.ts";
import { api, unwrap } from "../../api/client.ts";
import type { components } from "../../api/schema.d.ts";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { useDraft } from "../../components/draft.ts";
import { ProblemNotice } from "../../components/parts.tsx";
import * as css from "../../components/settings.module.css";
import { Tags } from "../../components/tags.tsx";
import { goTo } from "../../state/view.ts";

export type Creator = components["schemas"]["Creator"];

interface Props {
  creator: Creator;
  onChanged: () => void;
}

async function patch(
  creator_id: string,
  body: { name?: string; is_active?: boolean; metadata?: Record<string, string> },
  signal: AbortSignal,
) {
  return unwrap(api.PATCH("/creators/{creator_id}", { params: { path: { creator_id } }, body, signal }));
}

/** Pauses or resumes all accounts of the creator. */
export function PauseCreatorButton({ creator, onChanged }: Props) {
  const toggle = useAction((signal) =>
    patch(creator.id, { is_active: !creator.is_active }, signal).then(onChanged),
  );
  return (
    <>
      <button type="button" disabled={toggle.isRunning} onClick={() => toggle.run()}>
        {creator.is_active ? "Pause all its accounts" : "Resume its accounts"}
      </button>
      <ProblemNotice of={toggle} />
    </>
  );
}

function fieldsOf({ name, metadata }: Creator) {
  return { name, tags: Object.entries(metadata) as readonly (readonly [string, string])[] };
}

export function CreatorSettings({ creator, onChanged }: Props) {
  const {
    fields: { name, tags },
    changes,
    isChanged,
    isSaved,
    change,
    saved,
  } = useDraft(fieldsOf(creator));
  const save = useAction(async (signal) => {
    const body = {
      ...(changes.name === undefined ? {} : { name: changes.name.trim() }),
      ...(changes.tags === undefined ? {} : { metadata: Object.fromEntries(changes.tags) }),
    };
    const { data } = await patch(creator.id, body, signal);
    saved(fieldsOf(data));
    onChanged();
  });
  const submit = (event: Event) => {
    event.preventDefault();
    void save.run();
  };
  return (
    <form class={css.settings} onSubmit={submit}>
      <label class="field">
        Name
        <input
          type="text"
          required
          maxLength={255}
          dir="auto"
          value={name}
          onInput={(event) => change({ name: event.currentTarget.value })}
        />
      </label>
      <Tags tags={tags} onChange={(tags) => change({ tags })} />
      <ProblemNotice of={save} />
      <div class="controls">
        <button type="submit" class="primary" disabled={!isChanged || save.isRunning}>
          {save.isRunning ? "Saving…" : "Save"}
        </button>
        <PauseCreatorButton creator={creator} onChanged={onChanged} />
        <span class="small quiet" role="status">
          {isSaved ? "Saved" : ""}
        </span>
        <span class="grow" />
        <RemoveCreator creator={creator} />
      </div>
    </form>
  );
}

function RemoveCreator({ creator }: { creator: Creator }) {
  const [isAsking, setAsking] = useState(false);
  const remove = useAction(async (signal) => {
    await unwrap(
      api.DELETE("/creators/{creator_id}", { params: { path: { creator_id: creator.id } }, signal }),
    );
    goTo("/creators");
  });
  return (
    <>
      <button type="button" class="plain danger-text" onClick={() => setAsking(true)}>
        Remove creator…
      </button>
      {isAsking && (
        <ConfirmDialog
          title={`Remove ${creator.name}?`}
          action="Remove"
          isRunning={remove.isRunning}
          onConfirm={() => void remove.run()}
          onClose={() => setAsking(false)}
        >
          <p>Its accounts stay, with their history, and have no creator then.</p>
          <ProblemNotice of={remove} />
        </ConfirmDialog>
      )}
    </>
  );
}
