// Reading an account or a post now instead of when it is due.

import { useEffect, useState } from "preact/hooks";

import { useAction } from "../api/action.ts";
import type { components } from "../api/schema.d.ts";
import { time } from "../format.ts";
import { ProblemNotice } from "./parts.tsx";

type Refresh = components["schemas"]["Refresh"];

/** How often a record is requested again until it was read. */
const POLL_MS = 1_500;

/** After so many requests, the page stops asking. */
const MAX_POLLS = 80;

interface Props {
  record: {
    last_scrape_time: string | null;
    tracking: { last_attempt_at: string | null; last_error: string | null };
  };
  request: (signal: AbortSignal) => Promise<Refresh | null>;
  /** Loads the record again, in place. */
  onPoll: () => void;
  /** The record has new numbers. */
  onRead: () => void;
}

interface Asked extends Refresh {
  /** The record's latest attempt at the time of the request. */
  attemptBefore: string | null;
}

/** What became of a request; null if nothing was found to read. */
export function refreshAnswer(refresh: Refresh | null): string {
  if (!refresh) return "It is no longer tracked.";
  const { status, refreshable_at } = refresh;
  const until = refreshable_at ? ` until ${time(refreshable_at)}` : "";
  switch (status) {
    case "queued":
      return "Queued. New numbers follow within seconds.";
    case "in_flight":
      return "It is being read.";
    case "fresh":
      return `It was read a short time ago${refreshable_at ? `, and can be read again from ${time(refreshable_at)}` : ""}.`;
    case "paused":
      return "Its tracking is paused.";
    case "unavailable":
      return "The platform no longer shows it.";
    case "unsupported":
      return "No configured source can read it.";
    case "source_paused":
      return `The platform’s limit is used up${until}.`;
  }
}

const NOT_READ_YET = "It was not read yet: others may be before it. Reload the page later.";

/** What became of a request that was queued. */
function outcome({ tracking }: Props["record"]): string {
  return tracking.last_error ? `Not read: ${tracking.last_error}` : "Read.";
}

export function RefreshButton({ record, request, onPoll, onRead }: Props) {
  const [asked, setAsked] = useState<Asked | null>(null);
  const refresh = useAction(async (signal) => {
    const found = await request(signal);
    setGivenUp(false);
    setAsked(found && { ...found, attemptBefore: record.tracking.last_attempt_at });
  });
  const [hasGivenUp, setGivenUp] = useState(false);
  const isUnderway = asked?.status === "queued" || asked?.status === "in_flight";
  const isUnread = isUnderway && record.tracking.last_attempt_at === asked.attemptBefore;
  const isAwaited = isUnread && !hasGivenUp;
  useEffect(() => {
    if (!isAwaited) return;
    let polls = 0;
    const timer = setInterval(() => (polls++ < MAX_POLLS ? onPoll() : setGivenUp(true)), POLL_MS);
    return () => {
      clearInterval(timer);
      onRead();
    };
  }, [isAwaited]);
  return (
    <>
      <button type="button" disabled={refresh.isRunning || isAwaited} onClick={() => void refresh.run()}>
        Refresh now
      </button>
      <span class="small quiet" role="status">
        {asked &&
          (hasGivenUp && isUnread
            ? NOT_READ_YET
            : isUnderway && !isUnread
              ? outcome(record)
              : refreshAnswer(asked))}
      </span>
      <ProblemNotice of={refresh} />
    </>
  );
}
