// A question before something that cannot be undone.

import type { ComponentChildren } from "preact";

import * as css from "./confirm.module.css";
import { useModal } from "./focus.ts";

interface Props {
  title: string;
  /** What the button says that does it. */
  action: string;
  isRunning: boolean;
  onConfirm: () => void;
  onClose: () => void;
  children: ComponentChildren;
}

export function ConfirmDialog({ title, action, isRunning, onConfirm, onClose, children }: Props) {
  const dialog = useModal();
  return (
    <dialog
      ref={dialog}
      class={css.confirm}
      aria-labelledby="confirm-title"
      onCancel={(event) => isRunning && event.preventDefault()}
      onClose={onClose}
    >
      <h2 id="confirm-title">{title}</h2>
      {children}
      <div class="controls">
        <button type="button" autofocus disabled={isRunning} onClick={() => dialog.current?.close()}>
          Keep it
        </button>
        <button type="button" class="danger" disabled={isRunning} onClick={onConfirm}>
          {action}
        </button>
      </div>
    </dialog>
  );
}
