// Where a person was on a page: how far it was scrolled and how many rows it showed. Kept with the entry of the browser's history, so
// that going back and loading again show the same.

interface Place {
  scroll?: number;
  rows?: { of: string; count: number };
}

/** Tests without a browser have no history. */
function place(): Place {
  return typeof history === "undefined" ? {} : ((history.state ?? {}) as Place);
}

function keep(change: Place): void {
  if (typeof history !== "undefined") history.replaceState({ ...place(), ...change }, "");
}

/** How many rows of a list were shown; 0 if that is not known. */
export function rowsBefore(of: string): number {
  const { rows } = place();
  return rows?.of === of ? rows.count : 0;
}

export function keepRows(of: string, count: number): void {
  if (rowsBefore(of) !== count) keep({ rows: { of, count } });
}

export function keepScroll(): void {
  if ((place().scroll ?? 0) !== scrollY) keep({ scroll: scrollY });
}

/** What has to be there before a page has its height. */
const LOADING = "body:not(:has(main h1)), main [aria-busy=true], main .skeleton";
/** A page that loads for longer is left where it is. */
const MAX_RESTORE_MS = 5_000;
const SAVE_DELAY_MS = 200;
const INTERRUPTIONS = ["wheel", "touchstart", "pointerdown", "keydown"] as const;

let isRestoring = false;

/** Scrolls to where the page was once it is as long as then, unless the person scrolls. */
function restore(): void {
  const wanted = place().scroll ?? 0;
  const start = performance.now();
  let frames = 0;
  isRestoring = true;
  const end = () => {
    isRestoring = false;
    for (const type of INTERRUPTIONS) removeEventListener(type, end);
  };
  for (const type of INTERRUPTIONS) addEventListener(type, end, { once: true, passive: true });
  const step = () => {
    if (!isRestoring) return;
    if (Math.abs(scrollY - wanted) > 1) scrollTo(0, wanted);
    const isThere = ++frames > 3 && !document.querySelector(LOADING);
    if (isThere || performance.now() - start > MAX_RESTORE_MS) end();
    else requestAnimationFrame(step);
  };
  step();
}

/** Keeps the place, and returns to it when the browser goes back or loads the page again. */
export function followPlace(): void {
  history.scrollRestoration = "manual";
  let timer: ReturnType<typeof setTimeout> | undefined;
  addEventListener(
    "scroll",
    () => {
      clearTimeout(timer);
      if (!isRestoring) timer = setTimeout(keepScroll, SAVE_DELAY_MS);
    },
    { passive: true },
  );
  addEventListener("popstate", () => {
    clearTimeout(timer);
    restore();
  });
  if (place().scroll) restore();
}
