// Accounts that were added a moment ago: the table loads again until their first posts are there.

import { useEffect, useRef } from "preact/hooks";

import { isLive } from "../../api/live.ts";
import { useNews } from "../../api/news.ts";
import type { PagedResource } from "../../api/pages.ts";
import type { AccountPage } from "../../loads/account-rows.ts";

/** The table loads again after news, at most this often. */
const LIVE_MS = 2_000;
/** How soon it loads again without news; each time it waits half as long again. */
const FIRST_MS = 5_000;
/** Then it is left to the person: accounts of a platform without a source wait for ever. */
const MAX_RELOADS = 10;

/** Loads again while accounts wait for their first read, and once after it: pictures are copied later. */
export function useArrivals({ data, refresh }: Pick<PagedResource<AccountPage>, "data" | "refresh">): void {
  const waiting = data?.rows.filter(({ tracking }) => tracking?.status === "pending").length ?? 0;
  const isWaiting = waiting > 0;
  const hasWaited = useRef(false);
  const reloads = useRef(0);
  useNews(LIVE_MS, isLive.value && isWaiting, () => {
    if (reloads.current++ < MAX_RELOADS) refresh();
  });
  // Begins again when others wait, or fewer.
  useEffect(() => {
    reloads.current = 0;
    if (!isWaiting && !hasWaited.current) return;
    hasWaited.current = isWaiting;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const wait = () => {
      if (reloads.current >= MAX_RELOADS) return;
      timer = setTimeout(
        () => {
          refresh();
          if (isWaiting) wait();
        },
        FIRST_MS * 1.5 ** reloads.current++,
      );
    };
    wait();
    return () => clearTimeout(timer);
  }, [waiting]);
}
