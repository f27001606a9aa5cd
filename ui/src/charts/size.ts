// The width that a chart has: its card's, which is known before the chart is there, so that it is drawn once.

import { type Signal, signal } from "@preact/signals-core";
import { createContext, type RefObject } from "preact";
import { useContext, useLayoutEffect } from "preact/hooks";

/** In pixels; 0 until it is known. */
export const CardWidth = createContext<Signal<number>>(signal(0));

export function useWidth(): number {
  return useContext(CardWidth).value;
}

/** Keeps the width of an element, also when the window changes. */
export function useObservedWidth(element: RefObject<HTMLElement | null>, width: Signal<number>): void {
  useLayoutEffect(() => {
    if (!element.current) return;
    const observer = new ResizeObserver(([entry]) => {
      if (entry) width.value = Math.round(entry.contentRect.width);
    });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
}
