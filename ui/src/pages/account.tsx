// One account: what it gained, its posts, and how it is tracked.

import { ApiProblem, api, unwrap } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { useState } from "preact/hooks";

import { Controls, PLATFORM_NAMES } from "../components/controls.tsx";
import { Facts } from "../components/facts.tsx";
import type { PageProps } from "../components/frame.tsx";
import { GainsCard } from "../components/gains.tsx";
import { HistoryCard } from "../components/history.tsx";
import { Card, Count, Picture, ProblemNotice, Status } from "../components/parts.tsx";
import { RankedContent } from "../components/rankings.tsx";
import { days, time } from "../format.ts";
import { linkTo, view, windowParameters } from "../state/view.ts";

const PROFILE_LINKS = { instagram: "https://www.instagram.com/", tiktok: "https://www.tiktok.com/@" } as const;

async function fetchAccount(account_id: string, signal: AbortSignal) {
  return (await unwrap(api.GET("/accounts/{account_id}", { params: { path: { account_id } }, signal }))).data;
}

type Account = Awaited<ReturnType<typeof fetchAccount>>;

export function AccountPage({ id, identity }: PageProps) {
  const { range, metric } = view.value;
  const window = windowParameters(range);
  const account = useResource((signal) => fetchAccount(id, signal), [id]);
  const dependencies = [id, JSON.stringify(window)];
  const totals = useResource((signal) => unwrap(api.GET("/accounts/metrics", { params: { query: { ...window, account_ids: [id] } }, signal })), dependencies);
  const history = useResource(
    (signal) => unwrap(api.GET("/accounts/{account_id}/analytics", { params: { path: { account_id: id }, query: { ...window, values: "both" } }, signal })),
    dependencies,
  );
  const record = account.data;
  return (
    <>
      {account.problem && <ProblemNotice problem={account.problem} retry={account.reload} />}
      <div class="page-head">
        {record && <Picture id={record.id} name={record.username} />}
        <div class="grow">
          <h1>{record ? `@${record.username}` : "Account"}</h1>
          <p class="quiet small">{record && `${PLATFORM_NAMES[record.platform]} · `}{totals.data && days(totals.data.meta.start_date, totals.data.meta.end_date)} · days in UTC</p>
        </div>
        <Controls />
      </div>
      <GainsCard id={id} resource={totals} />
      <HistoryCard resource={history} />
      <div class="columns">
        <RankedContent title="Its posts that gained most" query={{ ...window, account_id: id, metric, limit: 10 }} />
        <Card title="Tracking" resource={account} height={220}>
          {(record) => <Tracking account={record} canWrite={identity?.scopes.includes("write") ?? false} onChanged={account.reload} />}
        </Card>
      </div>
    </>
  );
}

function Tracking({ account, canWrite, onChanged }: { account: Account; canWrite: boolean; onChanged: () => void }) {
  const [problem, setProblem] = useState<ApiProblem | null>(null);
  const toggle = async () => {
    const request = api.PATCH("/accounts/{account_id}", { params: { path: { account_id: account.id } }, body: { is_active: !account.is_active } });
    await unwrap(request).then(onChanged, (cause: unknown) => setProblem(cause instanceof ApiProblem ? cause : null));
  };
  const { tracking } = account;
  return (
    <>
      {problem && <ProblemNotice problem={problem} retry={toggle} />}
      <Facts facts={[
        ["Status", <Status status={tracking.status} />],
        ["Why", tracking.last_error ?? "–"],
        ["Last read", time(account.last_scrape_time)],
        ["Next read", time(tracking.next_attempt_at)],
        ["Followers", <Count value={account.follower_count} />],
        ["Posts", <Count value={account.total_post_count} />],
        ["Creator", account.creator_id ? <a href={linkTo(`/creators/${account.creator_id}`)}>{account.creator_name}</a> : "–"],
        ["Category", account.category ?? "–"],
        ["Profile", <a href={PROFILE_LINKS[account.platform] + account.username} target="_blank" rel="noopener noreferrer">Open on {PLATFORM_NAMES[account.platform]}</a>],
      ]} />
      {canWrite && <p><button type="button" onClick={toggle}>{account.is_active ? "Pause" : "Resume"}</button></p>}
    </>
  );
}
