// The order in which a page fills: what is below waits until what is above is drawn.

/** The longest that it waits, in milliseconds. */
const MAX_WAIT = 300;

let running = 0;
const waiting = new Set<() => void>();

/** Calls back once the browser has drawn the next frame; there is none while the page is hidden. */
function afterFrame(done: () => void): void {
  requestAnimationFrame(() => setTimeout(done));
}

/** A part above starts to load; the result ends this. */
export function startAbove(): () => void {
  running++;
  let hasEnded = false;
  return () => {
    if (hasEnded) return;
    hasEnded = true;
    if (--running === 0) for (const done of waiting) afterFrame(done);
  };
}

/** Resolves once nothing above loads. */
export async function afterAbove(): Promise<void> {
  if (running === 0) return;
  await new Promise<void>((resolve) => {
    const done = () => {
      clearTimeout(timer);
      waiting.delete(done);
      resolve();
    };
    const timer = setTimeout(done, MAX_WAIT);
    waiting.add(done);
  });
}
