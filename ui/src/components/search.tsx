// The search palette: accounts, creators, content and pages, by keyboard.

import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";

import { api, unwrap } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { compact } from "../format.ts";
import { linkTo, navigate, parseView } from "../state/view.ts";

const isOpen = signal(false);
/** Requests wait until typing pauses for this long, in milliseconds. */
const TYPING_PAUSE = 120;

interface Hit {
  href: string;
  name: string;
  detail: string;
}

const PAGE_HITS: readonly Hit[] = ["Overview", "Content", "Accounts", "Creators", "Tracking", "API"].map((name) => ({
  href: name === "Overview" ? "/" : `/${name.toLowerCase()}`,
  name,
  detail: "Page",
}));

export function openSearch(): void {
  isOpen.value = true;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

export function SearchPalette() {
  useEffect(() => {
    const open = (event: KeyboardEvent) => {
      const isShortcut = (event.key === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !isTyping(event.target));
      if (!isShortcut) return;
      event.preventDefault();
      openSearch();
    };
    addEventListener("keydown", open);
    return () => removeEventListener("keydown", open);
  }, []);
  return isOpen.value ? <Palette /> : null;
}

function useDebounced(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), TYPING_PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

async function findHits(text: string, signal: AbortSignal): Promise<Hit[]> {
  const pages = PAGE_HITS.filter(({ name }) => name.toLowerCase().startsWith(text.toLowerCase()));
  if (!text) return pages;
  const { data } = await unwrap(api.GET("/search", { params: { query: { q: text, limit: 6 } }, signal }));
  return [
    ...pages,
    ...data.accounts.map((hit) => ({ href: `/accounts/${hit.id}`, name: `@${hit.username}`, detail: `Account · ${compact(hit.follower_count)} followers` })),
    ...data.creators.map((hit) => ({ href: `/creators/${hit.id}`, name: hit.name, detail: "Creator" })),
    ...data.videos.map((hit) => ({ href: `/content/${hit.id}`, name: hit.caption ?? "Post without a caption", detail: `Post · ${compact(hit.view_count)} views` })),
  ];
}

function Palette() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const settled = useDebounced(text.trim());
  const { data: hits, problem } = useResource((signal) => findHits(settled, signal), [settled]);
  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => setChosen(0), [hits]);
  const close = () => {
    isOpen.value = false;
  };
  const go = (hit: Hit | undefined) => {
    if (!hit) return;
    const url = new URL(linkTo(hit.href), location.origin);
    navigate(parseView(url.pathname, url.search));
    close();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const count = hits?.length ?? 0;
    if (event.key === "Enter") go(hits?.[chosen]);
    else if (event.key === "ArrowDown") setChosen((chosen + 1) % Math.max(1, count));
    else if (event.key === "ArrowUp") setChosen((chosen + count - 1) % Math.max(1, count));
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={dialog} class="palette" aria-label="Search" onClose={close} onClick={(event) => event.target === dialog.current && close()}>
      <input
        type="search" list={undefined} role="combobox" aria-label="Search accounts, creators and content" aria-expanded="true" aria-controls="hits"
        aria-activedescendant={`hit-${chosen}`} placeholder="Search accounts, creators, content" value={text} autofocus
        onInput={(event) => setText(event.currentTarget.value)} onKeyDown={onKeyDown}
      />
      {problem && <p class="notice" role="alert">{problem.message}</p>}
      <ul id="hits" role="listbox" aria-label="Results">
        {hits?.map((hit, position) => (
          <li key={hit.href} id={`hit-${position}`} role="option" aria-selected={position === chosen} onClick={() => go(hit)}>
            <span dir="auto">{hit.name}</span><small class="quiet small">{hit.detail}</small>
          </li>
        ))}
        {hits?.length === 0 && <li class="empty">Nothing contains “{settled}”.</li>}
      </ul>
    </dialog>
  );
}
