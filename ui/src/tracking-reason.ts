// Why an account or a post is not updating, in plain words.

import type { components } from "./api/schema.d.ts";

type Tracking = components["schemas"]["Tracking"];
export type TrackingStatus = Tracking["status"];
export type FailureReason = components["schemas"]["FailureReason"];
export type SourceReason = components["schemas"]["PauseCause"];

export const STATUSES: readonly TrackingStatus[] = [
  "active",
  "pending",
  "failing",
  "unavailable",
  "paused",
  "paused_by_creator",
  "unsupported",
];

export const FAILURE_NAMES: Readonly<Record<FailureReason, string>> = {
  not_found: "The platform does not show it: it may be private, renamed or deleted.",
  transient: "The platform did not answer, or not in time.",
  malformed: "The platform’s answer does not have the documented format.",
  unsupported: "No source can look it up.",
  internal: "Tidemark could not record the answer.",
};

export const FAILURES = Object.keys(FAILURE_NAMES) as FailureReason[];

/** For choosing one. */
export const SHORT_FAILURE_NAMES: Readonly<Record<FailureReason, string>> = {
  not_found: "Not shown by the platform",
  transient: "No answer in time",
  malformed: "Answer not understood",
  unsupported: "No source for it",
  internal: "Not recorded",
};

export const PAUSE_NAMES: Readonly<Record<SourceReason, string>> = {
  rate_limit: "The platform’s limit, or the budget of the day, is used up.",
  credentials: "The platform refuses the credentials. The operator of this installation has to replace them.",
};

/** How the texts of errors begin. */
const ERROR_REASONS: readonly (readonly [string, FailureReason])[] = [
  ["not found", "not_found"],
  ["temporary failure", "transient"],
  ["malformed response", "malformed"],
  ["this source does not support", "unsupported"],
];

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

function knownReason(error: string): string | null {
  const reason = ERROR_REASONS.find(([start]) => error.startsWith(start))?.[1];
  return reason ? FAILURE_NAMES[reason] : null;
}

/** Null while nothing is wrong. */
export function reasonOf({ status, last_error }: Pick<Tracking, "status" | "last_error">): string | null {
  switch (status) {
    case "active":
      return null;
    case "pending":
      return "It was not read yet. The first read follows within seconds.";
    case "paused":
      return "Its tracking is paused. Its history stays.";
    case "paused_by_creator":
      return "Its creator is paused. Its history stays.";
    case "unsupported":
      return "No configured source can read this platform.";
    case "unavailable":
      return last_error && !knownReason(last_error)
        ? sentence(last_error)
        : "The platform no longer shows it: it may be private, renamed or deleted.";
    case "failing":
      return last_error ? (knownReason(last_error) ?? sentence(last_error)) : "The latest attempt failed.";
  }
}
