// A file that was dropped on a page, until the page of imports takes it.

import { signal } from "@preact/signals-core";

export const dropped = signal<File | null>(null);

/** Whether a file is dragged over the page. */
export const isDragged = signal(false);

/** Follows files over the page, wherever they are dropped, until the result is called. */
export function followFiles(mayDrop: () => boolean, onDrop: (file: File) => void): () => void {
  const controller = new AbortController();
  const on = (name: "dragover" | "dragleave" | "drop", handle: (event: DragEvent) => void) =>
    addEventListener(name, handle, { signal: controller.signal });
  on("dragover", (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    // Otherwise the browser would leave the page for the file.
    event.preventDefault();
    isDragged.value = mayDrop();
  });
  on("dragleave", (event) => {
    if (event.relatedTarget === null) isDragged.value = false;
  });
  on("drop", (event) => {
    const file = event.dataTransfer?.files[0];
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    isDragged.value = false;
    if (file && mayDrop()) onDrop(file);
  });
  return () => {
    controller.abort();
    isDragged.value = false;
  };
}
