// The API key of the person who is signed in. In `sessionStorage`, or in `localStorage` if they stay signed in; never in a cookie.

import { signal } from "@preact/signals-core";

const STORAGE_KEY = "tidemark.key";
const KEY_PATTERN = /^[\x21-\x7e]{1,200}$/;

/** Null while signed out. */
export const key = signal<string | null>(null);
/** Why the last session ended, shown above the sign-in form. */
export const endedBecause = signal<string | null>(null);

/** Whether a text can be a key: what a header can carry. */
export function isKey(text: string): boolean {
  return KEY_PATTERN.test(text);
}

/** Signs in by the key of a link (`#key=…`), and removes it from the address. */
function followKeyLink(): void {
  const linked = new URLSearchParams(location.hash.slice(1)).get("key");
  if (linked === null) return;
  history.replaceState(null, "", location.pathname + location.search);
  if (isKey(linked)) signIn(linked, false);
}

/** Takes the key from the browser's storage or from the address, also when a link is pasted later. */
export function restoreSession(): void {
  key.value = sessionStorage.getItem(STORAGE_KEY) ?? localStorage.getItem(STORAGE_KEY);
  followKeyLink();
  addEventListener("hashchange", followKeyLink);
  addEventListener("storage", ({ key: name, newValue, oldValue }) => {
    if (name === STORAGE_KEY && newValue === null && oldValue === key.value)
      signOut("You signed out in another tab.");
  });
}

export function signIn(text: string, staySignedIn: boolean): void {
  sessionStorage.removeItem(STORAGE_KEY);
  (staySignedIn ? localStorage : sessionStorage).setItem(STORAGE_KEY, text);
  key.value = text;
  endedBecause.value = null;
}

/** A session that ended for a reason leaves the stored key of others. */
export function signOut(reason: string | null): void {
  sessionStorage.removeItem(STORAGE_KEY);
  if (reason === null || localStorage.getItem(STORAGE_KEY) === key.value)
    localStorage.removeItem(STORAGE_KEY);
  key.value = null;
  endedBecause.value = reason;
}
