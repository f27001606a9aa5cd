// The stream of events: server-sent events, read until the connection ends.

import type { Event } from "../schema.js";

/** Figures changed: ask again for what you show. It has no id. */
export interface DataChanged {
  type: "data.changed";
}

export type StreamedEvent = Event | DataChanged;

/** Parses chunks of a stream; blocks end with an empty line. */
export async function* parse(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<StreamedEvent, void> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of chunks) {
    text += decoder.decode(chunk, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = block.split("\n");
      const field = (name: string) =>
        fields.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      const [type, data] = [field("event"), field("data")];
      if (type === "data.changed") yield { type };
      else if (data !== undefined) yield JSON.parse(data) as Event;
    }
  }
}
