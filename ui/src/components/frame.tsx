// What surrounds every page: navigation, who is signed in, search.

import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";

import { api, unwrap } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { AccountPage } from "../pages/account.tsx";
import { AccountsPage } from "../pages/accounts.tsx";
import { ApiPage } from "../pages/api.tsx";
import { ContentPage } from "../pages/content.tsx";
import { CreatorPage } from "../pages/creator.tsx";
import { CreatorsPage } from "../pages/creators.tsx";
import { OverviewPage } from "../pages/overview.tsx";
import { TrackingPage } from "../pages/tracking.tsx";
import { VideoPage } from "../pages/video.tsx";
import { signOut } from "../state/session.ts";
import { linkTo, view } from "../state/view.ts";
import { Empty } from "./parts.tsx";
import { SearchPalette, openSearch } from "./search.tsx";

export type Identity = Awaited<ReturnType<typeof fetchIdentity>>;

export interface PageProps {
  identity: Identity | null;
  /** The id in the path of a single record's page. */
  id: string;
}

interface Page {
  name: string;
  list: ComponentType<PageProps>;
  single?: ComponentType<PageProps>;
}

const PAGES: Readonly<Record<string, Page>> = {
  "": { name: "Overview", list: OverviewPage },
  content: { name: "Content", list: ContentPage, single: VideoPage },
  accounts: { name: "Accounts", list: AccountsPage, single: AccountPage },
  creators: { name: "Creators", list: CreatorsPage, single: CreatorPage },
  tracking: { name: "Tracking", list: TrackingPage },
  api: { name: "API", list: ApiPage },
};

async function fetchIdentity(signal: AbortSignal) {
  return (await unwrap(api.GET("/whoami", { signal }))).data;
}

export function Frame() {
  const { data: identity } = useResource(fetchIdentity, []);
  const [, root = "", id = ""] = view.value.path.split("/");
  const page = PAGES[root];
  const Shown = id ? page?.single : page?.list;
  useEffect(() => {
    document.title = page ? `${page.name} · Tidemark` : "Tidemark";
  }, [page]);
  return (
    <>
      <a class="skip" href="#page">Skip to content</a>
      <div class="frame">
        <header class="sidebar">
          <a class="brand" href={linkTo("/")}><Mark />Tidemark</a>
          <nav aria-label="Pages">
            {Object.entries(PAGES).map(([path, { name }]) => (
              <a key={path} href={linkTo(`/${path}`)} {...(path === root ? { "aria-current": "page" as const } : {})}>{name}</a>
            ))}
          </nav>
          <button type="button" class="plain" onClick={openSearch}>Search <kbd>/</kbd></button>
          <footer class="small quiet">
            <p>{identity?.organization.name}</p>
            <button type="button" class="plain small" onClick={() => signOut(null)}>Sign out</button>
          </footer>
        </header>
        <main id="page" key={`${root}/${id}`}>
          {Shown ? <Shown identity={identity} id={id} /> : <Empty>There is no page at this address.</Empty>}
        </main>
      </div>
      <SearchPalette />
    </>
  );
}

/** The sign of the tide: a line that rises over a mark. */
function Mark() {
  return (
    <svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round">
      <path d="M1 13c3 0 3-4 6-4s3 4 6 4 3-4 6-4" /><path d="M3 5h14" opacity="0.45" />
    </svg>
  );
}
