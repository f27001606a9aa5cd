// What is far below the screen is loaded when it comes near it.

import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const NEAR = "300px";

/** Whether an element was near the screen by now, and the reference that it needs. */
export function useSeen<E extends Element>(): [RefObject<E | null>, boolean] {
  const element = useRef<E>(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    if (isSeen || !element.current) return;
    const observer = new IntersectionObserver(
      (entries) => entries.some(({ isIntersecting }) => isIntersecting) && setSeen(true),
      { rootMargin: NEAR },
    );
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [isSeen]);
  return [element, isSeen];
}
