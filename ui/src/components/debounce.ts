// Text that is still being typed.

import { useEffect, useState } from "preact/hooks";

/** Typing that pauses for this long is taken, in milliseconds. */
const TYPING_PAUSE = 200;

/** The text as it was when typing paused. */
export function useDebounced(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), TYPING_PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
