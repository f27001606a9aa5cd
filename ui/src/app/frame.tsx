// What surrounds every page: navigation, who is signed in, search.

import { useLayoutEffect, useRef } from "preact/hooks";

import type { Identity } from "../api/client.ts";
import { mayWrite, useIdentity } from "../api/identity.ts";
import { type Load, useResource } from "../api/resource.ts";
import { mayMark } from "../components/marks.tsx";
import { Empty, ProblemNotice } from "../components/parts.tsx";
import { dropped, followFiles, isDragged } from "../state/dropped.ts";
import { signOut } from "../state/session.ts";
import { goTo, linkTo, view } from "../state/view.ts";
import * as css from "./frame.module.css";
import { Icon, Mark } from "./icons.tsx";
import { MarkDialog } from "./mark-dialog.tsx";
import { loadedPage, loadPage, PAGES, type PageCode, pageOf } from "./pages.ts";
import { openSearch, SearchPalette } from "./search.tsx";

export function Frame() {
  const identity = useIdentity();
  const { root, id, page, code } = pageOf(view.value);
  const address = `${root}/${id}${code && code === page?.edit ? "/edit" : ""}`;
  const Shown = code && loadedPage(code);
  const canWrite = mayWrite(identity) ?? false;
  useLayoutEffect(() => {
    mayMark.value = canWrite;
    return followFiles(() => canWrite, takeFile);
  }, [canWrite]);
  useArrival(address, page?.name ?? "No such page", !code || Shown !== undefined);
  return (
    <>
      {/* biome-ignore lint/a11y/useValidAnchor: a link, whose target must not enter the address */}
      <a
        class={css.skip}
        href="#page"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("page")?.focus();
        }}
      >
        Skip to content
      </a>
      <div class={css.frame}>
        <Sidebar root={root} identity={identity} />
        <main id="page" key={address} tabIndex={-1}>
          {Shown && <Shown identity={identity} id={id} />}
          {page && code && !Shown && <PageLoader name={page.name} code={code} />}
          {!code && <NoPage />}
        </main>
      </div>
      {isDragged.value && root !== "imports" && <p class={css.dropHint}>Drop the file to import it</p>}
      <SearchPalette />
      <MarkDialog />
    </>
  );
}

/** The page of imports looks at a file that was dropped anywhere. */
function takeFile(file: File): void {
  dropped.value = file;
  if (view.value.path !== "/imports") goTo("/imports");
}

/** What stands there until the code of a page is loaded. */
function PageLoader({ name, code }: { name: string; code: PageCode }) {
  const { status, problem } = useResource(() => loadPage(code), [code]);
  return (
    <>
      <h1 aria-busy={status === "loading"}>{name}</h1>
      {status === "failed" && <ProblemNotice of={{ problem, retry: () => location.reload() }} />}
    </>
  );
}

/** Sets the title of a page, and after navigation moves the focus to its heading. */
function useArrival(address: string, name: string, isShown: boolean): void {
  const shown = useRef(address);
  useLayoutEffect(() => {
    document.title = `${name} · Tidemark`;
    if (!isShown || shown.current === address) return;
    shown.current = address;
    const heading = document.querySelector<HTMLElement>("main h1");
    heading?.setAttribute("tabindex", "-1");
    heading?.focus({ preventScroll: true });
  }, [address, isShown]);
}

function Sidebar({ root, identity }: { root: string; identity: Load<Identity> }) {
  return (
    <header class={css.sidebar}>
      <a class="brand" href={linkTo("/")} aria-label="Tidemark, overview">
        <Mark />
        Tidemark
      </a>
      <button type="button" class={css.searchButton} onClick={openSearch} aria-keyshortcuts="Control+K /">
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
      <div class={`${css.who} small quiet`}>
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
