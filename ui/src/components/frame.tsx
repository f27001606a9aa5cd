// What surrounds every page: navigation, who is signed in, search.

import type { ComponentType } from "preact";
import { useEffect, useRef } from "preact/hooks";

import type { Identity } from "../api/client.ts";
import { useIdentity } from "../api/identity.ts";
import type { Load } from "../api/resource.ts";
import { AccountPage } from "../pages/account.tsx";
import { AccountsPage } from "../pages/accounts.tsx";
import { ApiPage } from "../pages/api.tsx";
import { ContentPage } from "../pages/content.tsx";
import { CreatorPage } from "../pages/creator.tsx";
import { CreatorsPage } from "../pages/creators.tsx";
import { OverviewPage } from "../pages/overview.tsx";
import type { PageProps } from "../pages/props.ts";
import { TrackingPage } from "../pages/tracking.tsx";
import { VideoPage } from "../pages/video.tsx";
import { signOut } from "../state/session.ts";
import { linkTo, view } from "../state/view.ts";
import { Icon, type IconName, Mark } from "./icons.tsx";
import { Empty } from "./parts.tsx";
import { openSearch, SearchPalette } from "./search.tsx";

interface Page {
  name: string;
  icon: IconName;
  list: ComponentType<PageProps>;
  single?: ComponentType<PageProps>;
}

const PAGES: Readonly<Record<string, Page>> = {
  "": { name: "Overview", icon: "overview", list: OverviewPage },
  content: { name: "Content", icon: "content", list: ContentPage, single: VideoPage },
  accounts: { name: "Accounts", icon: "accounts", list: AccountsPage, single: AccountPage },
  creators: { name: "Creators", icon: "creators", list: CreatorsPage, single: CreatorPage },
  tracking: { name: "Tracking", icon: "tracking", list: TrackingPage },
  api: { name: "API", icon: "api", list: ApiPage },
};

export function Frame() {
  const identity = useIdentity();
  const [, root = "", id = ""] = view.value.path.split("/");
  const page = PAGES[root];
  const Shown = id ? page?.single : page?.list;
  const address = `${root}/${id}`;
  useArrival(address, page?.name ?? "No such page");
  return (
    <>
      {/* biome-ignore lint/a11y/useValidAnchor: a link, whose target must not enter the address */}
      <a
        class="skip"
        href="#page"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("page")?.focus();
        }}
      >
        Skip to content
      </a>
      <div class="frame">
        <Sidebar root={root} identity={identity} />
        <main id="page" key={address} tabIndex={-1}>
          {Shown ? <Shown identity={identity} id={id} /> : <NoPage />}
        </main>
      </div>
      <SearchPalette />
    </>
  );
}

/** Sets the title of a page, and after navigation moves the focus to its heading. */
function useArrival(address: string, name: string): void {
  const shown = useRef(address);
  useEffect(() => {
    document.title = `${name} · Tidemark`;
    if (shown.current === address) return;
    shown.current = address;
    const heading = document.querySelector<HTMLElement>("main h1");
    heading?.setAttribute("tabindex", "-1");
    heading?.focus({ preventScroll: true });
  }, [address]);
}

function Sidebar({ root, identity }: { root: string; identity: Load<Identity> }) {
  return (
    <header class="sidebar">
      <a class="brand" href={linkTo("/")} aria-label="Tidemark, overview">
        <Mark />
        Tidemark
      </a>
      <button type="button" class="search-button" onClick={openSearch} aria-keyshortcuts="Control+K /">
        <Icon name="search" />
        <span>Search</span>
        <kbd>Ctrl K</kbd>
      </button>
      <nav aria-label="Pages">
        {Object.entries(PAGES).map(([path, { name, icon }]) => (
          <a
            key={path}
            href={linkTo(`/${path}`)}
            {...(path === root ? { "aria-current": "page" as const } : {})}
          >
            <Icon name={icon} />
            {name}
          </a>
        ))}
      </nav>
      <div class="who small quiet">
        <p title={identity.data && `Key: ${identity.data.api_key_name}`}>
          {identity.data?.organization.name ?? "\u00a0"}
        </p>
        <button type="button" class="plain small" onClick={() => signOut(null)}>
          <Icon name="exit" />
          Sign out
        </button>
      </div>
    </header>
  );
}

function NoPage() {
  return (
    <>
      <h1>No such page</h1>
      <Empty>
        There is no page at this address.{" "}
        <a class="link" href="/">
          Go to the overview
        </a>
      </Empty>
    </>
  );
}
