// The search palette: accounts, creators, content and pages, by keyboard.

import { signal } from "@preact/signals-core";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";

import { api, unwrap } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { useCombobox } from "../components/combobox.ts";
import { PLATFORM_NAMES } from "../components/controls.tsx";
import { useDebounced } from "../components/debounce.ts";
import { useModal } from "../components/focus.ts";
import { Highlighted } from "../components/highlighted.tsx";
import { Picture, type PictureProps } from "../components/picture.tsx";
import { compact, day, exact, plural } from "../format.ts";
import { goTo } from "../state/view.ts";
import { Icon, type IconName } from "./icons.tsx";
import { PAGES } from "./pages.ts";
import * as css from "./search.module.css";

const isOpen = signal(false);
const MAX_PER_GROUP = 5;

interface Hit {
  group: "Pages" | "Accounts" | "Creators" | "Content";
  href: string;
  name: string;
  detail: string;
  picture: PictureProps | IconName;
  /** Leads to the rest of a group. */
  isMore?: true;
}

const PAGE_HITS: readonly Hit[] = [
  ...Object.entries(PAGES).map(([root, { name, icon }]) => ({
    group: "Pages" as const,
    href: `/${root}`,
    name,
    detail: "",
    picture: icon,
  })),
  {
    group: "Pages",
    href: "/accounts?add=1",
    name: "Add accounts",
    detail: "Paste names or links",
    picture: "accounts",
  },
];

export function openSearch(): void {
  isOpen.value = true;
}

function isTyping(target: EventTarget | null): boolean {
  return (
    (target instanceof HTMLInputElement && !["checkbox", "radio", "button"].includes(target.type)) ||
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement
  );
}

export function SearchPalette() {
  useLayoutEffect(() => {
    const open = (event: KeyboardEvent) => {
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
      const isShortcut =
        (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) ||
        (event.key === "/" && isPlain && !isTyping(event.target));
      if (!isShortcut || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      openSearch();
    };
    addEventListener("keydown", open);
    return () => removeEventListener("keydown", open);
  }, []);
  return isOpen.value ? <Palette /> : null;
}

function matchingPages(text: string): Hit[] {
  return PAGE_HITS.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()));
}

/** The hits of a group, and the page of all of them where there are more. */
function capped(hits: readonly Hit[], path: string, text: string): Hit[] {
  const [first] = hits;
  if (!first || hits.length <= MAX_PER_GROUP) return [...hits];
  const name = `More in ${first.group.toLowerCase()}…`;
  const href = `${path}?${new URLSearchParams({ q: text })}`;
  const picture = first.group.toLowerCase() as IconName;
  return [
    ...hits.slice(0, MAX_PER_GROUP),
    { group: first.group, href, name, detail: "", picture, isMore: true },
  ];
}

async function findRecords(text: string, signal: AbortSignal): Promise<Hit[]> {
  if (!text) return [];
  const { data } = await unwrap(
    api.GET("/search", { params: { query: { q: text, limit: MAX_PER_GROUP + 1 } }, signal }),
  );
  const accounts = data.accounts.map(
    ({ id, platform, username, follower_count, creator_name, display_name, profile_pic_url }): Hit => ({
      group: "Accounts",
      href: `/accounts/${id}`,
      name: `@${username}`,
      picture: { id, name: username, src: profile_pic_url },
      detail: [
        creator_name ?? display_name,
        PLATFORM_NAMES[platform],
        `${compact(follower_count)} ${follower_count === 1 ? "follower" : "followers"}`,
      ]
        .filter(Boolean)
        .join(" · "),
    }),
  );
  const creators = data.creators.map(
    ({ id, name, accounts_summary: { total, total_followers } }): Hit => ({
      group: "Creators",
      href: `/creators/${id}`,
      name,
      picture: { id, name },
      detail: `${total} ${total === 1 ? "account" : "accounts"} · ${compact(total_followers)} ${total_followers === 1 ? "follower" : "followers"}`,
    }),
  );
  const videos = data.videos.map(
    ({ id, caption, account_username, create_time, view_count, cover_image_url }): Hit => ({
      group: "Content",
      href: `/content/${id}`,
      name: caption || "Post without a caption",
      picture: { id, name: account_username ?? "?", src: cover_image_url, kind: "cover" },
      detail: [
        account_username && `@${account_username}`,
        create_time && day(create_time.slice(0, 10)),
        `${compact(view_count)} views`,
      ]
        .filter(Boolean)
        .join(" · "),
    }),
  );
  return [
    ...capped(accounts, "/accounts", text),
    ...capped(creators, "/creators", text),
    ...capped(videos, "/content", text),
  ];
}

/** What a text finds: pages, and records once those of this very text are there. */
function useHits(text: string) {
  const settled = useDebounced(text);
  const records = useResource(
    async (signal) => ({ text: settled, hits: await findRecords(settled, signal) }),
    [settled],
  );
  const isCurrent = records.data?.text === text;
  return {
    hits: [...matchingPages(text), ...(isCurrent ? (records.data?.hits ?? []) : [])],
    isCurrent: isCurrent || records.status === "failed",
    problem: records.status === "failed" ? records.problem : undefined,
  };
}

function Palette() {
  const dialog = useModal();
  const [input, setInput] = useState("");
  const [isEntered, setEntered] = useState(false);
  const text = input.trim();
  const { hits, isCurrent, problem } = useHits(text);
  const go = (hit: Hit | undefined) => {
    if (!hit) return;
    dialog.current?.close();
    const { pathname, searchParams } = new URL(hit.href, location.origin);
    goTo(pathname, Object.fromEntries(searchParams), { isUnfiltered: true });
  };
  // Enter before the results of the text are there opens the first of them as soon as they are.
  useEffect(() => {
    if (!isEntered || !isCurrent) return;
    setEntered(false);
    go(hits[0]);
  }, [isEntered, isCurrent]);
  const combobox = useCombobox({
    label: "Search accounts, creators, content and pages",
    text: input,
    onText: (text) => {
      setInput(text);
      setEntered(false);
    },
    options: hits,
    onPick: (hit, position) => (isCurrent || position > 0 ? go(hit) : setEntered(true)),
    isOpen: true,
  });
  return (
    <dialog
      ref={dialog}
      class={css.palette}
      aria-label="Search"
      onClose={() => (isOpen.value = false)}
      onClick={(event) => event.target === event.currentTarget && event.currentTarget.close()}
    >
      <input
        {...combobox.input}
        inputMode="search"
        placeholder="Search accounts, creators, content"
        autofocus
      />
      {problem && (
        <p class="notice" role="alert">
          {problem.message}
        </p>
      )}
      <div id={combobox.list} class={css.hits} role="listbox" aria-label="Results" aria-busy={!isCurrent}>
        {[...new Set(hits.map(({ group }) => group))].map((group) => (
          <div key={group} role="group" aria-label={group}>
            <p class="small quiet" aria-hidden="true">
              {group}
            </p>
            {hits.map(
              (hit, position) =>
                hit.group === group && (
                  <div key={hit.href} class={css.hit} {...combobox.option(position)}>
                    <HitText hit={hit} needles={text.split(/\s+/)} />
                  </div>
                ),
            )}
          </div>
        ))}
      </div>
      <p class={`${css.paletteFoot} small quiet`}>
        <span role="status">
          {isCurrent ? (hits.length === 0 ? `Nothing contains “${text}”.` : resultCount(hits)) : "Searching…"}
        </span>
        <span aria-hidden="true">
          <kbd>↑</kbd> <kbd>↓</kbd> choose <kbd>Enter</kbd> open <kbd>Esc</kbd> close
        </span>
      </p>
    </dialog>
  );
}

function resultCount(hits: readonly Hit[]): string {
  const shown = hits.filter(({ isMore }) => !isMore).length;
  return shown === hits.length ? plural(shown, "result") : `The first ${exact(shown)} results`;
}

function HitText({ hit: { name, detail, picture }, needles }: { hit: Hit; needles: readonly string[] }) {
  return (
    <>
      {typeof picture === "string" ? (
        <span class={css.hitIcon}>
          <Icon name={picture} />
        </span>
      ) : (
        <Picture {...picture} />
      )}
      <span class={css.hitText}>
        <span dir="auto" title={name}>
          <Highlighted text={name} needles={needles} />
        </span>
        {detail && <small class="quiet small">{detail}</small>}
      </span>
    </>
  );
}
