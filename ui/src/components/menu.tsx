// What is behind a small button: choices, or what can be done besides.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

import * as css from "./menu.module.css";

interface Props {
  /** What the button is called; three dots are shown without a `text`. */
  label: string;
  text?: string;
  /** Whether it is open at first. */
  isOpen?: boolean;
  children: ComponentChildren;
}

export function Menu({ label, text, isOpen = false, children }: Props) {
  const menu = useRef<HTMLDetailsElement>(null);
  // Before a person can open or leave it.
  useLayoutEffect(() => {
    if (menu.current) menu.current.open = isOpen;
    const close = ({ target }: Event) => {
      if (menu.current && target instanceof Node && !menu.current.contains(target)) menu.current.open = false;
    };
    document.addEventListener("pointerdown", close);
    document.addEventListener("focusin", close);
    return () => {
      document.removeEventListener("pointerdown", close);
      document.removeEventListener("focusin", close);
    };
  }, []);
  return (
    <details ref={menu} class={css.menu} onKeyDown={closeByEscape}>
      <summary class="plain small" {...(text ? {} : { "aria-label": label, title: label })}>
        {text ?? "⋯"}
      </summary>
      <div role="group" aria-label={label}>
        {children}
      </div>
    </details>
  );
}

function closeByEscape(event: KeyboardEvent & { currentTarget: HTMLDetailsElement }) {
  if (event.key !== "Escape" || !event.currentTarget.open) return;
  event.stopPropagation();
  event.currentTarget.open = false;
  event.currentTarget.querySelector("summary")?.focus();
}
