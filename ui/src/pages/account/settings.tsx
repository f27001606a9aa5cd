// Settings of an account: what its owner calls it, its creator, whether it is tracked. With scope `write` only.

import { useState } from "preact/hooks";

import { useAction } from "../../api/action.ts";
import { api, unwrap } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { components, paths } from "../../api/schema.d.ts";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { useDraft } from "../../components/draft.ts";
import { ProblemNotice } from "../../components/parts.tsx";
import type { Option } from "../../components/picker.tsx";
import { Chip, NewCreatorPicker, resolveCreator } from "../../components/record-pickers.tsx";
import * as css from "../../components/settings.module.css";
import { Tags } from "../../components/tags.tsx";
import { plural } from "../../format.ts";
import { fetchCategories } from "../../loads/tracking.ts";
import { goTo } from "../../state/view.ts";

export type Account = components["schemas"]["Account"];
type Change = NonNullable<
  paths["/accounts/{account_id}"]["patch"]["requestBody"]
>["content"]["application/json"];

interface Props {
  account: Account;
  onChanged: () => void;
}

async function patch(account_id: string, body: Change, signal: AbortSignal) {
  return unwrap(api.PATCH("/accounts/{account_id}", { params: { path: { account_id } }, body, signal }));
}

/** Pauses or resumes the account. */
export function PauseButton({ account, onChanged }: Props) {
  const toggle = useAction((signal) =>
    patch(account.id, { is_active: !account.is_active }, signal).then(onChanged),
  );
  return (
    <>
      <button type="button" disabled={toggle.isRunning} onClick={() => toggle.run()}>
        {account.is_active ? "Pause tracking" : "Resume tracking"}
      </button>
      <ProblemNotice of={toggle} />
    </>
  );
}

interface Fields {
  username: string;
  category: string;
  creator: Option | null;
  interval: string;
  tags: readonly (readonly [string, string])[];
}

function fieldsOf(account: Account): Fields {
  return {
    username: account.username,
    category: account.category ?? "",
    creator: account.creator_id ? { id: account.creator_id, name: account.creator_name ?? "" } : null,
    interval: String(account.scrape_interval_hours),
    tags: Object.entries(account.metadata),
  };
}

function changeOf({ username, category, creator, interval, tags }: Partial<Fields>): Change {
  return {
    ...(username === undefined ? {} : { username: username.trim() }),
    ...(category === undefined ? {} : { category: category.trim() || null }),
    ...(creator === undefined ? {} : { creator_id: creator?.id ?? null }),
    ...(interval === undefined ? {} : { scrape_interval_hours: Number(interval) }),
    ...(tags === undefined ? {} : { metadata: Object.fromEntries(tags) }),
  };
}

export function AccountSettings({ account, onChanged }: Props) {
  const { fields: draft, changes, isChanged, isSaved, change: set, saved } = useDraft(fieldsOf(account));
  const categories = useResource(fetchCategories, []);
  const save = useAction(async (signal) => {
    const { creator } = changes;
    if (creator && !creator.id) {
      // A second attempt does not create another one.
      changes.creator = { ...creator, id: await resolveCreator(creator, signal) };
      set({ creator: changes.creator });
    }
    const { data } = await patch(account.id, changeOf(changes), signal);
    saved(fieldsOf(data));
    onChanged();
  });
  const submit = (event: Event) => {
    event.preventDefault();
    void save.run();
  };
  return (
    <form class={css.settings} onSubmit={submit}>
      {account.is_unavailable || account.last_scrape_time === null ? (
        <label class="field">
          Username on the platform
          <input
            type="text"
            required
            maxLength={500}
            value={draft.username}
            spellcheck={false}
            onInput={(event) => set({ username: event.currentTarget.value })}
          />
        </label>
      ) : null}
      <label class="field">
        Category
        <input
          type="text"
          maxLength={128}
          list="categories"
          value={draft.category}
          placeholder="None"
          onInput={(event) => set({ category: event.currentTarget.value })}
        />
      </label>
      <datalist id="categories">
        {categories.data?.data.map(({ category }) => (
          <option key={category} value={category} />
        ))}
      </datalist>
      <div class="field">
        Creator
        {draft.creator ? (
          <Chip name={draft.creator.name} action="unlink" onClick={() => set({ creator: null })} />
        ) : (
          <NewCreatorPicker
            label="Creator"
            placeholder="None: type a name"
            onPick={(creator) => set({ creator })}
          />
        )}
      </div>
      <label class="field">
        Hours between reads
        <input
          type="number"
          required
          min={6}
          max={720}
          value={draft.interval}
          onInput={(event) => set({ interval: event.currentTarget.value })}
        />
      </label>
      <Tags tags={draft.tags} onChange={(tags) => set({ tags })} />
      <ProblemNotice of={save} />
      <div class="controls">
        <button type="submit" class="primary" disabled={!isChanged || save.isRunning}>
          {save.isRunning ? "Saving…" : "Save"}
        </button>
        <span class="small quiet" role="status">
          {isSaved ? "Saved" : ""}
        </span>
        <span class="grow" />
        <RemoveButton account={account} />
      </div>
    </form>
  );
}

function RemoveButton({ account }: { account: Account }) {
  const [isAsking, setAsking] = useState(false);
  const remove = useAction(async (signal) => {
    await unwrap(
      api.DELETE("/accounts/{account_id}", { params: { path: { account_id: account.id } }, signal }),
    );
    goTo("/accounts");
  });
  return (
    <>
      <button type="button" class="plain danger-text" onClick={() => setAsking(true)}>
        Remove account…
      </button>
      {isAsking && (
        <ConfirmDialog
          title={`Remove @${account.username}?`}
          action="Remove"
          isRunning={remove.isRunning}
          onConfirm={() => void remove.run()}
          onClose={() => setAsking(false)}
        >
          <p>
            Its {plural(account.total_post_count, "post")} and their history are deleted with it. This cannot
            be undone. To stop reading it and keep the history, pause it instead.
          </p>
          <ProblemNotice of={remove} />
        </ConfirmDialog>
      )}
    </>
  );
}
