// When what is shown is loaded again because the server has news.

import { useEffect, useRef } from "preact/hooks";

import { isLive, onNews } from "./live.ts";

/** Figures are loaded again at most this often, in milliseconds. */
const FIGURES_MS = 60_000;
/** News come in groups. */
const PAUSE_MS = 500;

/**
 * Calls back after news, at most once in an interval, and once in each interval while no stream is open. The result ends this.
 */
function whenever(everyMs: number, mayPoll: boolean, callBack: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let last = performance.now() - everyMs;
  const run = () => {
    timer = undefined;
    last = performance.now();
    if (!document.hidden) callBack();
  };
  const end = onNews(() => {
    timer ??= setTimeout(run, Math.max(PAUSE_MS, last + everyMs - performance.now()));
  });
  const poll = mayPoll ? setInterval(() => isLive.peek() || run(), everyMs) : undefined;
  return () => {
    end();
    clearTimeout(timer);
    clearInterval(poll);
  };
}

/** Loads again after news while `isOn`; every so often if there is no stream. */
export function useNews(everyMs: number, isOn: boolean, reload: () => void): void {
  const latest = useRef(reload);
  latest.current = reload;
  useEffect(() => (isOn ? whenever(everyMs, true, () => latest.current()) : undefined), [everyMs, isOn]);
}

/** Calls back when figures that are shown may be old; the result ends this. */
export function onOldFigures(callBack: () => void): () => void {
  return whenever(FIGURES_MS, false, callBack);
}
