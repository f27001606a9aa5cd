// Settings of an account: what its owner calls it, its creator, whether it is tracked. With scope `write` only.

import { useState } from "preact/hooks";

import { useAction } from "../api/action.ts";
import { api, unwrap } from "../api/client.ts";
import type { paths, components } from "../api/schema.d.ts";
import { useResource } from "../api/resource.ts";
import { exact } from "../format.ts";
import { navigate } from "../state/view.ts";
import { ConfirmDialog } from "./confirm.tsx";
import type { Option } from "./picker.tsx";
import { ProblemNotice } from "./parts.tsx";
import { NewCreatorPicker, resolveCreator } from "./record-pickers.tsx";
import { Tags } from "./tags.tsx";

export type Account = components["schemas"]["Account"];
type Change = NonNullable<paths["/accounts/{account_id}"]["patch"]["requestBody"]>["content"]["application/json"];

interface Props {
  account: Account;
  onChanged: () => void;
}

async function patch(account_id: string, body: Change, signal: AbortSignal) {
  return unwrap(api.PATCH("/accounts/{account_id}", { params: { path: { account_id } }, body, signal }));
}

/** Pauses or resumes the account. */
export function PauseButton({ account, onChanged }: Props) {
  const toggle = useAction((signal) => patch(account.id, { is_active: !account.is_active }, signal).then(onChanged));
  return (
    <>
      <button type="button" disabled={toggle.isRunning} onClick={() => toggle.run()}>{account.is_active ? "Pause tracking" : "Resume tracking"}</button>
      {toggle.problem && <ProblemNotice problem={toggle.problem} retry={toggle.retry} />}
    </>
  );
}

interface Draft {
  username: string;
  category: string;
  creator: Option | null;
  interval: string;
  tags: readonly (readonly [string, string])[];
}

function draftOf(account: Account): Draft {
  return {
    username: account.username,
    category: account.category ?? "",
    creator: account.creator_id ? { id: account.creator_id, name: account.creator_name ?? "" } : null,
    interval: String(account.scrape_interval_hours),
    tags: Object.entries(account.metadata),
  };
}

/** Only what differs, so that a change by someone else meanwhile stays. */
async function changeOf(before: Draft, draft: Draft, signal: AbortSignal): Promise<Change> {
  const isSame = (name: keyof Draft) => JSON.stringify(before[name]) === JSON.stringify(draft[name]);
  return {
    ...(isSame("username") ? {} : { username: draft.username.trim() }),
    ...(isSame("category") ? {} : { category: draft.category.trim() || null }),
    ...(isSame("creator") ? {} : { creator_id: draft.creator && (await resolveCreator(draft.creator, signal)) }),
    ...(isSame("interval") ? {} : { scrape_interval_hours: Number(draft.interval) }),
    ...(isSame("tags") ? {} : { metadata: Object.fromEntries(draft.tags) }),
  };
}

export function AccountSettings({ account, onChanged }: Props) {
  const before = draftOf(account);
  const [draft, setDraft] = useState(before);
  const [isSaved, setSaved] = useState(false);
  const set = (change: Partial<Draft>) => (setDraft({ ...draft, ...change }), setSaved(false));
  const categories = useResource((signal) => unwrap(api.GET("/accounts/categories", { signal })), []);
  const save = useAction(async (signal) => {
    const { data } = await patch(account.id, await changeOf(before, draft, signal), signal);
    setDraft(draftOf(data));
    setSaved(true);
    onChanged();
  });
  const isChanged = JSON.stringify(before) !== JSON.stringify(draft);
  const submit = (event: Event) => (event.preventDefault(), void save.run());
  return (
    <form class="settings" onSubmit={submit}>
      {account.is_unavailable || account.last_scrape_time === null ? (
        <label class="field">Username on the platform
          <input type="text" required maxLength={500} value={draft.username} spellcheck={false} onInput={(event) => set({ username: event.currentTarget.value })} />
        </label>
      ) : null}
      <label class="field">Category
        <input type="text" maxLength={128} list="categories" value={draft.category} placeholder="None" onInput={(event) => set({ category: event.currentTarget.value })} />
      </label>
      <datalist id="categories">{categories.data?.data.map(({ category }) => <option key={category} value={category} />)}</datalist>
      <div class="field">Creator
        {draft.creator
          ? <button type="button" class="chip" onClick={() => set({ creator: null })}><span dir="auto">{draft.creator.name}</span><span aria-hidden="true">×</span><span class="hidden-text">: unlink</span></button>
          : <NewCreatorPicker label="Creator" placeholder="None: type a name" onPick={(creator) => set({ creator })} />}
      </div>
      <label class="field">Hours between reads
        <input type="number" required min={6} max={720} value={draft.interval} onInput={(event) => set({ interval: event.currentTarget.value })} />
      </label>
      <Tags tags={draft.tags} onChange={(tags) => set({ tags })} />
      {save.problem && <ProblemNotice problem={save.problem} retry={save.retry} />}
      <div class="controls">
        <button type="submit" class="primary" disabled={!isChanged || save.isRunning}>{save.isRunning ? "Saving…" : "Save"}</button>
        <span class="small quiet" role="status">{isSaved && !isChanged ? "Saved" : ""}</span>
        <span class="grow" />
        <RemoveButton account={account} />
      </div>
    </form>
  );
}

function RemoveButton({ account }: { account: Account }) {
  const [isAsking, setAsking] = useState(false);
  const remove = useAction(async (signal) => {
    await unwrap(api.DELETE("/accounts/{account_id}", { params: { path: { account_id: account.id } }, signal }));
    navigate({ path: "/accounts", filters: new Map() });
  });
  return (
    <>
      <button type="button" class="plain danger-text" onClick={() => setAsking(true)}>Remove account…</button>
      {isAsking && (
        <ConfirmDialog title={`Remove @${account.username}?`} action="Remove" isRunning={remove.isRunning} onConfirm={() => void remove.run()} onClose={() => setAsking(false)}>
          <p>Its {exact(account.total_post_count)} posts and their history are deleted with it. This cannot be undone. To stop reading it and keep the history, pause it instead.</p>
          {remove.problem && <ProblemNotice problem={remove.problem} retry={remove.retry} />}
        </ConfirmDialog>
      )}
    </>
  );
}
