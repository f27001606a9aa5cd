// The width that a chart has.

import { type RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

/** The element's width in pixels, also when the window changes. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(640);
  useLayoutEffect(() => {
    if (!element.current) return;
    const observer = new ResizeObserver(([entry]) => entry && setWidth(Math.round(entry.contentRect.width)));
    observer.observe(element.current);
    setWidth(Math.round(element.current.getBoundingClientRect().width));
    return () => observer.disconnect();
  }, []);
  return width;
}
