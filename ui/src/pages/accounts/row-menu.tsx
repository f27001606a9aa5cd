// What can be done with one account, behind three dots at the end of its row. The table has the buttons only: rows are cheap.

import { useLayoutEffect, useMemo, useState } from "preact/hooks";

import { useAction } from "../../api/action.ts";
import { api, unwrap } from "../../api/client.ts";
import { PLATFORM_NAMES, PROFILE_LINKS } from "../../components/controls.tsx";
import { useModal } from "../../components/focus.ts";
import { ProblemNotice } from "../../components/parts.tsx";
import { refreshAnswer } from "../../components/refresh.tsx";
import type { Column } from "../../components/table.tsx";
import type { AccountRow } from "../../loads/account-rows.ts";
import { linkTo } from "../../state/view.ts";
import * as css from "../accounts.module.css";
import { changeAll, removeAll } from "./changes.ts";
import { RemoveDialog } from "./selection.tsx";

interface Opened {
  row: AccountRow;
  /** Where its button is on the screen. */
  button: DOMRect;
}

/** The column of the buttons, and the menu whose button was pressed. `onChanged` receives the outcome of a change. */
export function useRowMenu(canWrite: boolean, onChanged: (outcome: string) => void) {
  const [opened, open] = useState<Opened | null>(null);
  const column = useMemo(
    (): Column<AccountRow> => ({
      name: "More",
      isControl: true,
      render: (row) => (
        <button
          type="button"
          class="plain small"
          aria-haspopup="dialog"
          aria-label={`More: @${row.username}`}
          onClick={({ currentTarget }) => open({ row, button: currentTarget.getBoundingClientRect() })}
        >
          ⋯
        </button>
      ),
    }),
    [],
  );
  const menu = opened && (
    <RowMenu
      key={opened.row.id}
      {...opened}
      canWrite={canWrite}
      onChanged={onChanged}
      onClose={() => open(null)}
    />
  );
  return { column, menu };
}

interface Props extends Opened {
  canWrite: boolean;
  onChanged: (outcome: string) => void;
  onClose: () => void;
}

/** What is below the button needs so many pixels. */
const HEIGHT = 220;

/** Below the button, or above it where the screen ends. */
function placeAt({ top, bottom, right }: DOMRect) {
  const fromRight = `${document.documentElement.clientWidth - right}px`;
  return bottom + HEIGHT < innerHeight
    ? { top: `${bottom}px`, right: fromRight }
    : { bottom: `${innerHeight - top}px`, right: fromRight };
}

function RowMenu({ row, button, canWrite, onChanged, onClose }: Props) {
  const { id, username, platform, tracking } = row;
  const dialog = useModal();
  const [isRemoving, setRemoving] = useState(false);
  useLayoutEffect(() => {
    const top = scrollY;
    // It would stay where it is. The event of a scroll before the menu was opened may still come.
    const close = () => scrollY !== top && dialog.current?.close();
    addEventListener("scroll", close, { passive: true });
    return () => removeEventListener("scroll", close);
  }, []);
  const act = useAction(async (signal, change: (signal: AbortSignal) => Promise<string>) => {
    const outcome = await change(signal);
    dialog.current?.close();
    onChanged(`@${username}: ${outcome}`);
    onClose();
  });
  const item = (name: string, change: (signal: AbortSignal) => Promise<string>) => (
    <button type="button" disabled={act.isRunning} onClick={() => void act.run(change)}>
      {name}
    </button>
  );
  const setActive = (is_active: boolean) => async (signal: AbortSignal) =>
    (await changeAll([id], { is_active }, signal))[0] ?? (is_active ? "resumed" : "paused");
  if (isRemoving)
    return (
      <RemoveDialog
        count={1}
        isRunning={act.isRunning}
        onConfirm={() => void act.run(async (signal) => (await removeAll([id], signal))[0] ?? "removed")}
        onClose={onClose}
      />
    );
  return (
    <dialog
      ref={dialog}
      class={css.rowMenu}
      style={placeAt(button)}
      aria-label={`More: @${username}`}
      onClose={onClose}
      onClick={({ target, currentTarget }) => target === currentTarget && currentTarget.close()}
    >
      <div>
        <a href={linkTo("/content", { account_id: id })}>Its posts</a>
        <a href={PROFILE_LINKS[platform] + username} target="_blank" rel="noopener noreferrer">
          {PLATFORM_NAMES[platform]} ↗
        </a>
        {canWrite && (
          <>
            {item("Refresh now", async (signal) => refreshAnswer(await refreshAccount(id, signal)))}
            {tracking?.status === "paused"
              ? item("Resume tracking", setActive(true))
              : item("Pause tracking", setActive(false))}
            <button type="button" class={css.remove} onClick={() => setRemoving(true)}>
              Remove…
            </button>
          </>
        )}
        <ProblemNotice of={act} />
      </div>
    </dialog>
  );
}

async function refreshAccount(account_id: string, signal: AbortSignal) {
  const params = { path: { account_id } };
  return (await unwrap(api.POST("/accounts/{account_id}/refresh", { params, signal }))).data[0] ?? null;
}
