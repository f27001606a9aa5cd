// The token of a share. It stays in the fragment of the report's address, which no server sees, so that a reload shows the report.

import { signal } from "@preact/signals-core";

export const SHARE_PATH = "/shared";
const TOKEN_PATTERN = /^#(tds_[\w-]{1,200})$/;

/** Null without one in the address. */
export const shareToken = signal<string | null>(null);

function readToken(): void {
  shareToken.value = TOKEN_PATTERN.exec(location.hash)?.[1] ?? null;
}

/** Takes the token from the address, also when another link is pasted later. */
export function followShare(): void {
  readToken();
  addEventListener("hashchange", readToken);
}
