// What surrounds the report of a share: nothing. Whoever has its link has no key, and no other page to go to.

import { useResource } from "../api/resource.ts";
import { ProblemNotice } from "../components/parts.tsx";
import { loadedPage, loadPage, SHARE_CODE } from "./pages.ts";

export function SharedFrame() {
  const { status, problem } = useResource(() => loadPage(SHARE_CODE), []);
  const Shown = loadedPage(SHARE_CODE);
  return (
    <main id="page">
      {Shown ? (
        <Shown identity={{ status: "idle" }} id="" />
      ) : (
        <h1 aria-busy={status === "loading"}>Report</h1>
      )}
      {!Shown && <ProblemNotice of={{ problem, retry: () => location.reload() }} />}
    </main>
  );
}
