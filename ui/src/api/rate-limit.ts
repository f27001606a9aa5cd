// What is left of the key's rate limit, by the latest response.

import { signal } from "@preact/signals-core";

export interface RateLimit {
  limit: number;
  remaining: number;
}

export const rateLimit = signal<RateLimit | null>(null);

export function noteRateLimit({ headers }: Response): void {
  const [limit, remaining] = [headers.get("X-RateLimit-Limit"), headers.get("X-RateLimit-Remaining")];
  if (limit !== null && remaining !== null)
    rateLimit.value = { limit: Number(limit), remaining: Number(remaining) };
}
