// The API key of the person who is signed in. In `sessionStorage`, or in `localStorage` if they stay signed in; never in a cookie.
// A new tab asks the others for it, so that it lasts until the last tab is closed.

import { signal } from "@preact/signals-core";

const STORAGE_KEY = "tidemark.key";
const SIGNED_OUT_ELSEWHERE = "You signed out in another tab.";
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

/** Between the tabs of this origin. A key is for the tab that asked. */
type Message =
  | { type: "ask"; tab: number }
  | { type: "key"; tab: number; key: string }
  | { type: "signed-out"; key: string };

const TAB = Math.random();

/** How long a new tab shows nothing while others may answer, in milliseconds. A later answer signs in as well. */
const ANSWER_TIME = 150;

/** Open from the start of the page on. */
let channel: BroadcastChannel | null = null;

function send(message: Message): void {
  channel?.postMessage(message);
}

/** Whether the key of another tab signs in. */
let isAsking = false;

/** Ends the wait of this tab for the key of another. */
let answered = () => {};

/** Resolves once the key is known, or no other tab has one. */
export let isAsked: Promise<void> = Promise.resolve();

function askOtherTabs(): void {
  isAsking = true;
  isAsked = new Promise((resolve) => {
    answered = resolve;
    setTimeout(resolve, ANSWER_TIME);
  });
  send({ type: "ask", tab: TAB });
}

function onMessage({ data }: MessageEvent<Message>): void {
  if (data.type === "ask" && key.value !== null) send({ type: "key", tab: data.tab, key: key.value });
  if (data.type === "key" && data.tab === TAB && isAsking) {
    signIn(data.key, false);
    answered();
  }
  if (data.type === "signed-out" && data.key === key.value) signOut(SIGNED_OUT_ELSEWHERE);
}

/** Takes the key from the browser's storage or from the address, also when a link is pasted later. */
export function restoreSession(): void {
  key.value = sessionStorage.getItem(STORAGE_KEY) ?? localStorage.getItem(STORAGE_KEY);
  followKeyLink();
  addEventListener("hashchange", followKeyLink);
  addEventListener("storage", ({ key: name, newValue, oldValue }) => {
    if (name === STORAGE_KEY && newValue === null && oldValue === key.value) signOut(SIGNED_OUT_ELSEWHERE);
  });
  channel = new BroadcastChannel("tidemark");
  channel.addEventListener("message", onMessage);
  if (key.value === null) askOtherTabs();
}

export function signIn(text: string, staySignedIn: boolean): void {
  isAsking = false;
  sessionStorage.removeItem(STORAGE_KEY);
  (staySignedIn ? localStorage : sessionStorage).setItem(STORAGE_KEY, text);
  key.value = text;
  endedBecause.value = null;
}

/** A session that ended for a reason leaves the stored key of others. */
export function signOut(reason: string | null): void {
  isAsking = false;
  if (reason === null && key.value !== null) send({ type: "signed-out", key: key.value });
  sessionStorage.removeItem(STORAGE_KEY);
  if (reason === null || localStorage.getItem(STORAGE_KEY) === key.value)
    localStorage.removeItem(STORAGE_KEY);
  key.value = null;
  endedBecause.value = reason;
}
