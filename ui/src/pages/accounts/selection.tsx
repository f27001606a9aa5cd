// What can be done with selected accounts: compare, pause, resume, link to a creator.

import { type Action, useAction } from "../../api/action.ts";
import { itemMessage, MAX_BATCH } from "../../api/batch.ts";
import { api, unwrap } from "../../api/client.ts";
import { CompareButton } from "../../components/compared.tsx";
import { ProblemNotice } from "../../components/parts.tsx";
import { NewCreatorPicker, resolveCreator } from "../../components/record-pickers.tsx";
import * as css from "../accounts.module.css";

interface Props {
  ids: readonly string[];
  canWrite: boolean;
  /** Says what changed. */
  onChanged: (outcome: string) => void;
  onClear: () => void;
}

type Change = { is_active: boolean } | { creator_id: string | null };

/** Changes all accounts; resolves to why some did not change. */
async function changeAll(ids: readonly string[], set: Change, signal: AbortSignal): Promise<string[]> {
  const problems: string[] = [];
  for (let start = 0; start < ids.length; start += MAX_BATCH) {
    const body = { ids: ids.slice(start, start + MAX_BATCH), set };
    const { data } = await unwrap(api.PATCH("/accounts/batch", { body, signal }));
    problems.push(...data.flatMap((item) => (item.status < 300 ? [] : [itemMessage(item)])));
  }
  return problems;
}

export function SelectionBar({ ids, canWrite, onChanged, onClear }: Props) {
  const change = useAction(
    async (signal, done: string, findBody: (signal: AbortSignal) => Promise<Change>) => {
      const problems = await changeAll(ids, await findBody(signal), signal);
      const changed = ids.length - problems.length;
      onChanged([`${changed} ${done}`, ...new Set(problems)].join(". "));
    },
  );
  const count = `${ids.length} selected`;
  return (
    <>
      <div class={css.selection} role="toolbar" aria-label="Selected accounts">
        <b>{count}</b>
        <CompareButton kind="accounts" ids={ids} />
        {canWrite && <Changes change={change} />}
        <button type="button" class="plain" onClick={onClear}>
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
  change: Action<[done: string, findBody: (signal: AbortSignal) => Promise<Change>]>;
}

function Changes({ change }: ChangesProps) {
  return (
    <>
      <button
        type="button"
        disabled={change.isRunning}
        onClick={() => change.run("paused", async () => ({ is_active: false }))}
      >
        Pause
      </button>
      <button
        type="button"
        disabled={change.isRunning}
        onClick={() => change.run("resumed", async () => ({ is_active: true }))}
      >
        Resume
      </button>
      <NewCreatorPicker
        label="Link the selected accounts to a creator"
        placeholder="Link to creator…"
        disabled={change.isRunning}
        onPick={(option) => {
          let creator_id: string | null = null;
          // A second attempt does not create another one.
          void change.run(`linked to ${option.name}`, async (signal) => {
            creator_id ??= await resolveCreator(option, signal);
            return { creator_id };
          });
        }}
      />
      <button
        type="button"
        disabled={change.isRunning}
        onClick={() => change.run("unlinked", async () => ({ creator_id: null }))}
      >
        Unlink
      </button>
    </>
  );
}
