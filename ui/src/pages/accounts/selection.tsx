// What can be done with selected accounts: compare, pause, link to a creator, label, remove.

import { useState } from "preact/hooks";

import { type Action, useAction } from "../../api/action.ts";
import { CompareButton } from "../../components/compared.tsx";
import { ConfirmDialog } from "../../components/confirm.tsx";
import { Menu } from "../../components/menu.tsx";
import { ProblemNotice } from "../../components/parts.tsx";
import { Picker } from "../../components/picker.tsx";
import { NewCreatorPicker, resolveCreator } from "../../components/record-pickers.tsx";
import { findCategories, findTags, tagOf } from "../../components/scope-filters.tsx";
import { plural } from "../../format.ts";
import * as css from "../accounts.module.css";
import { addTag, changeAll, removeAll } from "./changes.ts";

interface Props {
  ids: readonly string[];
  canWrite: boolean;
  /** Says what changed. */
  onChanged: (outcome: string) => void;
  onClear: () => void;
}

/** Changes all of them; resolves to why some did not change. */
type Change = (ids: readonly string[], signal: AbortSignal) => Promise<readonly string[]>;
type ChangeAction = Action<[done: string, change: Change]>;

export function SelectionBar({ ids, canWrite, onChanged, onClear }: Props) {
  const change: ChangeAction = useAction(async (signal, done: string, change: Change) => {
    const problems = await change(ids, signal);
    onChanged([`${ids.length - problems.length} ${done}`, ...new Set(problems)].join(". "));
  });
  return (
    <>
      <div class={css.selection} role="toolbar" aria-label="Selected accounts">
        <b>{ids.length} selected</b>
        <CompareButton kind="accounts" ids={ids} />
        {canWrite && <Changes count={ids.length} change={change} />}
        <button type="button" class="plain" disabled={change.isRunning} onClick={onClear}>
          Clear
        </button>
        <span role="status" class="small quiet">
          {change.isRunning ? "Changing…" : ""}
        </span>
      </div>
      <ProblemNotice of={change} />
    </>
  );
}

interface ChangesProps {
  count: number;
  change: ChangeAction;
}

function Changes({ count, change }: ChangesProps) {
  const { isRunning } = change;
  const [isRemoving, setRemoving] = useState(false);
  const set = (done: string, fields: Parameters<typeof changeAll>[1]) =>
    void change.run(done, (ids, signal) => changeAll(ids, fields, signal));
  const button = (name: string, onClick: () => void) => (
    <button type="button" disabled={isRunning} onClick={onClick}>
      {name}
    </button>
  );
  return (
    <>
      {button("Pause", () => set("paused", { is_active: false }))}
      {button("Resume", () => set("resumed", { is_active: true }))}
      <NewCreatorPicker
        label="Link the selected accounts to a creator"
        placeholder="Link to creator…"
        disabled={isRunning}
        onPick={(option) => {
          let creator_id: string | null = null;
          // A second attempt does not create another one.
          void change.run(`linked to ${option.name}`, async (ids, signal) => {
            creator_id ??= await resolveCreator(option, signal);
            return changeAll(ids, { creator_id }, signal);
          });
        }}
      />
      <Picker
        label="Category of the selected accounts"
        placeholder="Set category…"
        find={findCategories}
        created="New category"
        disabled={isRunning}
        onPick={({ name }) => set(`in category ${name}`, { category: name })}
      />
      <Picker
        label="Tag of the selected accounts"
        placeholder="Add tag: value…"
        find={findTags}
        disabled={isRunning}
        onPick={(option) =>
          void change.run(`tagged ${option.name}`, (ids, signal) => addTag(ids, tagOf(option), signal))
        }
      />
      <Menu label="More changes">
        {button("Unlink from creator", () => set("unlinked", { creator_id: null }))}
        {button("Remove category", () => set("without a category", { category: null }))}
        {button("Remove accounts…", () => setRemoving(true))}
      </Menu>
      {isRemoving && (
        <RemoveDialog
          count={count}
          isRunning={isRunning}
          onConfirm={() => void change.run("removed", removeAll)}
          onClose={() => setRemoving(false)}
        />
      )}
    </>
  );
}

interface RemoveProps
  extends Pick<Parameters<typeof ConfirmDialog>[0], "isRunning" | "onConfirm" | "onClose"> {
  count: number;
}

export function RemoveDialog({ count, ...dialog }: RemoveProps) {
  return (
    <ConfirmDialog title={`Remove ${plural(count, "account")}?`} action="Remove" {...dialog}>
      <p>
        {count === 1 ? "Its" : "Their"} posts and history are deleted with {count === 1 ? "it" : "them"}. This
        cannot be undone. To stop reading {count === 1 ? "it" : "them"} and keep the history, pause{" "}
        {count === 1 ? "it" : "them"} instead.
      </p>
    </ConfirmDialog>
  );
}
