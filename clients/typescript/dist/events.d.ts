import type { Event } from "../schema.js";
/** Figures changed: ask again for what you show. It has no id. */
export interface DataChanged {
    type: "data.changed";
}
export type StreamedEvent = Event | DataChanged;
/** Parses chunks of a stream; blocks end with an empty line. */
export declare function parse(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<StreamedEvent, void>;
