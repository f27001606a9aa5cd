// Who is signed in. Requested again while the page is visible, so that a revoked key ends the session without a click: when the
// stream of events ends, which it does with the key, or every two seconds without a stream.

import { useLayoutEffect, useState } from "preact/hooks";

import { ApiProblem, fetchIdentity, type Identity } from "./client.ts";
import { followNews, isLive } from "./live.ts";
import { noteAnswer } from "./reconnect.ts";
import type { Load } from "./resource.ts";

/** The API accepts a revoked key for up to 3 s. Together with this interval, the session ends within 5 s. */
const INTERVAL_MS = 1_900;
/** While a stream is open: what else is known of the key may change. */
const LIVE_INTERVAL_MS = 60_000;
/** Part of the key's requests that may be spent on this. An unchanged identity is a 304. */
const MAX_SHARE = 0.1;
const RETRY_MS = 10_000;

function isSame(a: Identity | undefined, b: Identity): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function delayAfter(outcome: Identity | ApiProblem): number {
  if (outcome instanceof ApiProblem) return Math.max(RETRY_MS, (outcome.retryAfter ?? 0) * 1_000);
  return isLive.peek() ? LIVE_INTERVAL_MS : Math.max(INTERVAL_MS, 60_000 / (outcome.rate_limit * MAX_SHARE));
}

/** The last identity stays while the API does not answer. */
export function useIdentity(): Load<Identity> {
  const [identity, setIdentity] = useState<Load<Identity>>({ status: "loading" });
  useLayoutEffect(() => {
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const check = async () => {
      const outcome = await fetchIdentity(controller.signal).catch(ApiProblem.from);
      if (controller.signal.aborted) return;
      if (!(outcome instanceof ApiProblem)) {
        noteAnswer();
        setIdentity((current) =>
          isSame(current.data, outcome) ? current : { status: "ready", data: outcome },
        );
      }
      clearTimeout(timer);
      if (!document.hidden) timer = setTimeout(check, delayAfter(outcome));
    };
    const onVisibilityChange = () => {
      clearTimeout(timer);
      if (!document.hidden) void check();
    };
    document.addEventListener("visibilitychange", onVisibilityChange);
    addEventListener("online", onVisibilityChange);
    let leave: (() => void) | undefined;
    void check().then(() => {
      if (!controller.signal.aborted) leave = followNews(check);
    });
    return () => {
      leave?.();
      removeEventListener("online", onVisibilityChange);
      controller.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisibilityChange);
    };
  }, []);
  return identity;
}

/** Whether the key may change anything; undefined until that is known. */
export function mayWrite({ data }: Load<Identity>): boolean | undefined {
  return data?.scopes.includes("write");
}
