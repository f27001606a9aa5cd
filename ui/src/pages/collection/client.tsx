// The report of a share. Its token reaches what the share shows, and nothing else is requested.

import { useEffect, useState } from "preact/hooks";

import { ApiProblem } from "../../api/client.ts";
import { rateLimit } from "../../api/rate-limit.ts";
import { useResource } from "../../api/resource.ts";
import { Controls } from "../../components/controls.tsx";
import { ProblemNotice, WindowNote } from "../../components/parts.tsx";
import { time } from "../../format.ts";
import { fetchShare, type SharedReport, type SharePart, testShare } from "../../loads/collections.ts";
import { shareToken } from "../../state/share.ts";
import { useTitle } from "../../state/title.ts";
import { navigate, view } from "../../state/view.ts";
import * as css from "../collection.module.css";
import { FigureCards, useFigures } from "./figures.tsx";
import { Payouts } from "./payouts.tsx";
import { Accounts, Creators, Posts } from "./tables.tsx";

/** The API accepts a revoked token for up to 3 s. Together with this interval, the report ends within 5 s. */
const INTERVAL_MS = 1_900;
/** While others use the link, too, or the API does not answer. */
const SLOW_MS = 15_000;

export function ClientReport() {
  const token = shareToken.value;
  return token === null ? <Ended title="No report" text={NO_TOKEN} /> : <Report key={token} token={token} />;
}

const NO_TOKEN = "The link is not complete: it ends with # and a long code. Copy all of it.";
const HAS_ENDED = "This link has expired, or was revoked. Ask whoever sent it for a new one.";

function Ended({ title, text }: { title: string; text: string }) {
  useTitle(title);
  return (
    <div class={css.ended}>
      <h1>{title}</h1>
      <p>{text}</p>
    </div>
  );
}

function Report({ token }: { token: string }) {
  const share = useResource((signal) => fetchShare(token, signal), [token]);
  const isRevoked = useRevocation(token, share.data);
  if (isRevoked || share.problem?.status === 401) return <Ended title="No report" text={HAS_ENDED} />;
  if (share.data) return <Shown token={token} share={share.data} />;
  return (
    <>
      <h1 aria-busy={share.status === "loading"}>Report</h1>
      <ProblemNotice of={share} />
    </>
  );
}

function delayAfter(problem: ApiProblem | null): number {
  if (problem) return Math.max(SLOW_MS, (problem.retryAfter ?? 0) * 1_000);
  const { remaining, limit } = rateLimit.value ?? { remaining: 1, limit: 1 };
  return remaining < limit / 2 ? SLOW_MS : INTERVAL_MS;
}

/** Whether the share ended while its report is open. Asked while it is visible. */
function useRevocation(token: string, share: SharedReport | undefined): boolean {
  const [isRevoked, setRevoked] = useState(false);
  // Payouts are computed for each request.
  const part = share?.show.find((part) => part !== "payouts") ?? share?.show[0];
  useEffect(() => {
    if (!part || isRevoked) return;
    const controller = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const check = async () => {
      const problem = await testShare(token, part, controller.signal).then(() => null, ApiProblem.from);
      if (controller.signal.aborted) return;
      if (problem?.status === 401) setRevoked(true);
      else if (!document.hidden) timer = setTimeout(check, delayAfter(problem));
    };
    const onVisibilityChange = () => {
      clearTimeout(timer);
      if (!document.hidden) void check();
    };
    document.addEventListener("visibilitychange", onVisibilityChange);
    timer = setTimeout(check, INTERVAL_MS);
    return () => {
      controller.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisibilityChange);
    };
  }, [token, part, isRevoked]);
  return isRevoked;
}

/** Shows the period of the share unless the address has one. */
function usePeriod({ period }: SharedReport): boolean {
  const { range } = view.value;
  const [isSet, setSet] = useState(new URLSearchParams(location.search).has("period"));
  useEffect(() => {
    if (isSet) return;
    if (range.period !== period) navigate({ range: { ...range, period } }, { replace: true });
    setSet(true);
  }, [isSet]);
  return isSet;
}

function Shown({ token, share }: { token: string; share: SharedReport }) {
  useTitle(share.name);
  if (usePeriod(share)) return <Parts token={token} share={share} />;
  return (
    <h1 dir="auto" aria-busy={true}>
      {share.name}
    </h1>
  );
}

function Parts({ token, share: { name, show, expires_at } }: { token: string; share: SharedReport }) {
  const source = { token };
  const shows = (part: SharePart) => show.includes(part);
  const figures = useFigures(source, { overview: shows("overview"), timeseries: shows("timeseries") });
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <h1 dir="auto">{name}</h1>
          <WindowNote meta={figures.totals.data?.meta ?? figures.days.data?.meta} />
        </div>
        <Controls hasComparison={shows("overview") || shows("timeseries")} />
        <div class="controls">
          <button type="button" onClick={() => print()}>
            Print
          </button>
        </div>
      </div>
      <FigureCards {...figures} />
      {shows("content") && <Posts source={source} />}
      {(shows("accounts") || shows("creators")) && (
        <div class="columns wide">
          {shows("accounts") && <Accounts source={source} />}
          {shows("creators") && <Creators source={source} />}
        </div>
      )}
      {shows("payouts") && <Payouts source={source} />}
      <p class={`${css.clientFoot} quiet small`}>
        The link works until {time(expires_at)}. Numbers as the platforms report them, collected by Tidemark.
      </p>
    </>
  );
}
