// The pages. The code of each is a file of its own, which is loaded when the page is shown.

import { signal } from "@preact/signals-core";
import type { ComponentType } from "preact";

import { ApiProblem } from "../api/client.ts";
import type { PageProps } from "../pages/props.ts";
import type { View } from "../state/view.ts";
import type { IconName } from "./icons.tsx";

type Component = ComponentType<PageProps>;
export type PageCode = () => Promise<{ default: Component }>;

interface Page {
  name: string;
  icon: IconName;
  list: PageCode;
  single?: PageCode;
  /** Where the address asks to create a record, or to change the one it names. */
  edit?: PageCode;
}

/** By the first segment of the path. */
export const PAGES: Readonly<Record<string, Page>> = {
  "": { name: "Overview", icon: "overview", list: () => import("../pages/overview.tsx") },
  content: {
    name: "Content",
    icon: "content",
    list: () => import("../pages/content.tsx"),
    single: () => import("../pages/video.tsx"),
  },
  accounts: {
    name: "Accounts",
    icon: "accounts",
    list: () => import("../pages/accounts.tsx"),
    single: () => import("../pages/account.tsx"),
  },
  creators: {
    name: "Creators",
    icon: "creators",
    list: () => import("../pages/creators.tsx"),
    single: () => import("../pages/creator.tsx"),
  },
  collections: {
    name: "Collections",
    icon: "collections",
    list: () => import("../pages/collections.tsx"),
    single: () => import("../pages/collection.tsx"),
    edit: () => import("../pages/editor.tsx"),
  },
  events: { name: "Events", icon: "events", list: () => import("../pages/events.tsx") },
  tracking: { name: "Tracking", icon: "tracking", list: () => import("../pages/tracking.tsx") },
  imports: { name: "Import", icon: "imports", list: () => import("../pages/imports.tsx") },
  api: { name: "API", icon: "api", list: () => import("../pages/api.tsx") },
};

/** The report of a share. */
export const SHARE_CODE: PageCode = () => import("../pages/collection.tsx");

/** The page of an address, and its code; that of a single record if the path has an id. */
export function pageOf({ path, filters }: Pick<View, "path" | "filters">): {
  root: string;
  id: string;
  page?: Page;
  code?: PageCode;
} {
  const [, root = "", id = ""] = path.split("/");
  const page = PAGES[root];
  const code = (filters.has("edit") && page?.edit) || (id ? page?.single : page?.list);
  return { root, id, ...(page ? { page } : {}), ...(code ? { code } : {}) };
}

const loaded = signal<ReadonlyMap<PageCode, Component>>(new Map());

/** The component, if its code was loaded. */
export function loadedPage(code: PageCode): Component | undefined {
  return loaded.value.get(code);
}

const NOT_LOADED = "The server did not answer, or was upgraded. Try again to load the page anew.";

export async function loadPage(code: PageCode): Promise<void> {
  const module = await code().catch(() => Promise.reject(new ApiProblem(0, { detail: NOT_LOADED })));
  loaded.value = new Map(loaded.value).set(code, module.default);
}
