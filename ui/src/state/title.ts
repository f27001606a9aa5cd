// The document's title: the record or page that is shown.

import { useEffect } from "preact/hooks";

/** Null keeps the title of the page. */
export function useTitle(name: string | null | undefined): void {
  useEffect(() => {
    if (name) document.title = `${name} · Tidemark`;
  }, [name]);
}
