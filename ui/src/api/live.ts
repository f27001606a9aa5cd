// What the server says by itself: events as they become known, and when figures changed. One stream per visible tab. By `fetch`,
// because `EventSource` cannot send a key.

import { signal } from "@preact/signals-core";

import { key } from "../state/session.ts";
import type { components } from "./schema.d.ts";

export type HappenedEvent = components["schemas"]["Event"];

/** Whether the stream is open: nothing needs to be asked for again and again. */
export const isLive = signal(false);

const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;

type Listener = (event: HappenedEvent | null) => void;

const listeners = new Set<Listener>();

/** Calls back with each event, and with null when figures changed; the result ends this. */
export function onNews(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(event: HappenedEvent | null): void {
  for (const listener of [...listeners]) listener(event);
}

export interface Message {
  type: string;
  id: string;
  data: string;
}

/** Puts together the messages of a stream of server-sent events, whose text comes in pieces. */
export function messageReader(onMessage: (message: Message) => void): (text: string) => void {
  let rest = "";
  return (text) => {
    const blocks = (rest + text).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const message = { type: "", id: "", data: "" };
      for (const line of block.split("\n")) {
        const [, name, value = ""] = /^(event|id|data): ?(.*)$/.exec(line) ?? [];
        if (name === "event") message.type = value;
        else if (name === "id") message.id = value;
        else if (name === "data") message.data += value;
      }
      if (message.type) onMessage(message);
    }
  };
}

/** The position from which a stream goes on. */
interface Position {
  lastId: string;
}

async function readStream(position: Position, signal: AbortSignal): Promise<void> {
  const headers = {
    Accept: "text/event-stream",
    Authorization: `Bearer ${key.value}`,
    ...(position.lastId ? { "Last-Event-ID": position.lastId } : {}),
  };
  const response = await fetch("/v2/events/stream", { headers, signal, cache: "no-store" });
  if (!response.ok || !response.body) throw new Error(`the stream answered ${response.status}`);
  isLive.value = true;
  const read = messageReader(({ type, id, data }) => {
    if (id) position.lastId = id;
    tell(type === "data.changed" ? null : (JSON.parse(data) as HappenedEvent));
  });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    read(value);
  }
}

/**
 * Keeps a stream open while the page is visible, until the result is called. `onEnd` is called whenever a stream was not opened or
 * ended: the key may be revoked.
 */
export function followNews(onEnd: () => void): () => void {
  const position: Position = { lastId: "" };
  let controller: AbortController | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let wait = FIRST_RETRY_MS;
  let wasOpen = false;
  const close = () => {
    clearTimeout(timer);
    controller?.abort();
    controller = null;
    isLive.value = false;
  };
  const open = async () => {
    close();
    const own = new AbortController();
    controller = own;
    const start = performance.now();
    // What changed while there was no stream is not told.
    if (wasOpen) tell(null);
    wasOpen = true;
    await readStream(position, own.signal).catch(() => {});
    if (own.signal.aborted) return;
    close();
    onEnd();
    wait = performance.now() - start > MAX_RETRY_MS ? FIRST_RETRY_MS : Math.min(2 * wait, MAX_RETRY_MS);
    timer = setTimeout(open, wait);
  };
  const onVisibilityChange = () => {
    if (document.hidden) close();
    else void open();
  };
  document.addEventListener("visibilitychange", onVisibilityChange);
  if (!document.hidden) void open();
  return () => {
    document.removeEventListener("visibilitychange", onVisibilityChange);
    close();
  };
}
