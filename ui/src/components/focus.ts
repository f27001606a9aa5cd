// Focus for a field that appears because a person asked for it. The attribute `autofocus` works only while the page loads.

import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

export function useFocus<Field extends HTMLElement>(): RefObject<Field | null> {
  const field = useRef<Field>(null);
  useEffect(() => field.current?.focus(), []);
  return field;
}
