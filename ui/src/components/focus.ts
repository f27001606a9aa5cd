// Where the keyboard goes when something appears because a person asked for it. It goes there before the next key, so the hooks do
// not wait for the page to be painted.

import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

/** Focus for a field. The attribute `autofocus` works only while the page loads. */
export function useFocus<Field extends HTMLElement>(): RefObject<Field | null> {
  const field = useRef<Field>(null);
  useLayoutEffect(() => field.current?.focus(), []);
  return field;
}

/** A dialog that is shown as long as it is rendered, above everything else. */
export function useModal(): RefObject<HTMLDialogElement | null> {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return dialog;
}
