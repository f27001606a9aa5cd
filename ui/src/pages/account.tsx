// One account: what it gained, its posts, how it is tracked, and its settings.

import { api, unwrap } from "../api/client.ts";
import { mayWrite } from "../api/identity.ts";
import { useResource } from "../api/resource.ts";
import { Controls, PLATFORM_NAMES, PROFILE_LINKS } from "../components/controls.tsx";
import { Facts } from "../components/facts.tsx";
import { Card, Count, Status, WindowNote } from "../components/parts.tsx";
import { Picture } from "../components/picture.tsx";
import { RankedContent } from "../components/rankings.tsx";
import { DailyGains, FollowersHistory, RecordMetrics, useRecordGains } from "../components/record-gains.tsx";
import { RecordProblem } from "../components/record-problem.tsx";
import { RefreshButton } from "../components/refresh.tsx";
import { When } from "../components/when.tsx";
import { day } from "../format.ts";
import { allRecordContent, recordContentQuery } from "../loads/rankings.ts";
import { fetchAccount } from "../loads/records.ts";
import { useTitle } from "../state/title.ts";
import { linkTo, view } from "../state/view.ts";
import { reasonOf } from "../tracking-reason.ts";
import { Benchmarks } from "./account/benchmarks.tsx";
import { type Account, AccountSettings, PauseButton } from "./account/settings.tsx";
import type { PageProps } from "./props.ts";

export default function AccountPage({ id, identity }: PageProps) {
  const account = useResource((signal) => fetchAccount(id, signal), [id]);
  const gains = useRecordGains(id, { account_id: id });
  const record = account.data?.data;
  useTitle(record && `@${record.username}`);
  if (!record && account.problem) return <RecordProblem name="Account" resource={account} list="/accounts" />;
  const canWrite = mayWrite(identity) ?? false;
  return (
    <>
      <div class="page-head">
        {record ? (
          <Picture id={record.id} name={record.username} src={record.profile_pic_url} />
        ) : (
          <span class="picture skeleton" />
        )}
        <div class="grow">
          <h1>{record ? `@${record.username}` : "Account"}</h1>
          <p class="description small quiet">{record ? <Description account={record} /> : "\u00a0"}</p>
          <WindowNote meta={gains.totals.data?.meta} />
        </div>
        <Controls hasPlatform={false} />
      </div>
      {record && <NotUpdating account={record} canWrite={canWrite} onChanged={account.reload} />}
      <RecordMetrics {...gains} />
      <div class="columns charts">
        <DailyGains days={gains.days} scope={{ account_id: id }} />
        <FollowersHistory days={gains.days} />
      </div>
      <div class="columns">
        <div class="stack">
          <RankedContent
            title="Its posts that gained most"
            query={recordContentQuery(view.value, { account_id: id })}
            all={allRecordContent(view.value, { account_id: id })}
          />
          <Benchmarks account_id={id} />
        </div>
        <div class="stack">
          <Card title="Tracking" resource={account} height={180}>
            {({ data }) => (
              <Tracking
                account={data}
                canWrite={canWrite}
                onChanged={account.reload}
                onPoll={account.refresh}
                onRead={() => {
                  gains.totals.refresh();
                  gains.days.refresh();
                }}
              />
            )}
          </Card>
          {canWrite && (
            <Card title="Settings" resource={account} height={320}>
              {({ data }) => <AccountSettings key={id} account={data} onChanged={account.reload} />}
            </Card>
          )}
        </div>
      </div>
    </>
  );
}

function Description({
  account: { platform, username, name, creator_id, creator_name, category },
}: {
  account: Account;
}) {
  return (
    <>
      {name && (
        <>
          <span class="cut" dir="auto" title={name}>
            {name}
          </span>{" "}
          ·{" "}
        </>
      )}
      <a class="link" href={PROFILE_LINKS[platform] + username} target="_blank" rel="noopener noreferrer">
        {PLATFORM_NAMES[platform]} ↗
      </a>
      {creator_id && (
        <>
          {" "}
          · by{" "}
          <a class="link cut" dir="auto" title={creator_name ?? ""} href={linkTo(`/creators/${creator_id}`)}>
            {creator_name}
          </a>
        </>
      )}
      {category && <> · {category}</>}
    </>
  );
}

interface TrackingProps {
  account: Account;
  canWrite: boolean;
  onChanged: () => void;
}

/** Why the account is not updating, and what to do. */
function NotUpdating({ account, canWrite, onChanged }: TrackingProps) {
  const { tracking, creator_id, creator_name } = account;
  const reason = reasonOf(tracking);
  if (!reason) return null;
  return (
    <section
      class={`notice${tracking.status === "pending" || tracking.status.startsWith("paused") ? " calm" : ""}`}
      aria-label="Why it is not updating"
    >
      <p>
        <b>{tracking.status === "pending" ? "No numbers yet." : "Not updating."}</b> {reason}
      </p>
      <p class="small quiet">
        {account.last_scrape_time ? (
          <>
            Last read <When value={account.last_scrape_time} />
          </>
        ) : (
          "Never read"
        )}
        {tracking.next_attempt_at && (
          <>
            {" "}
            · next attempt <When value={tracking.next_attempt_at} />
          </>
        )}
        {tracking.last_error && <> · {tracking.last_error}</>}
      </p>
      {tracking.status === "paused_by_creator" && creator_id && (
        <p>
          <a class="link" href={linkTo(`/creators/${creator_id}`)}>
            Resume {creator_name}
          </a>
        </p>
      )}
      {tracking.status === "paused" && canWrite && <PauseButton account={account} onChanged={onChanged} />}
    </section>
  );
}

type ReadProps = Pick<Parameters<typeof RefreshButton>[0], "onPoll" | "onRead">;

function Tracking({ account, canWrite, onChanged, onPoll, onRead }: TrackingProps & ReadProps) {
  const { tracking } = account;
  const path = { account_id: account.id };
  const refresh = async (signal: AbortSignal) =>
    (await unwrap(api.POST("/accounts/{account_id}/refresh", { params: { path }, signal }))).data[0] ?? null;
  return (
    <>
      <Facts
        facts={[
          ["Status", <Status status={tracking.status} />],
          ["Last read", <When value={account.last_scrape_time} />],
          ["Next attempt", <When value={tracking.next_attempt_at} />],
          ["Followers", <Count value={account.follower_count} />],
          ["Posts known", <Count value={account.total_post_count} />],
          ["Views of all posts", <Count value={account.view_count} />],
          ["Tracked since", day(account.added_at.slice(0, 10))],
          ["Read every", `${account.scrape_interval_hours} h`],
        ]}
      />
      {canWrite && tracking.status !== "paused" && (
        <div class="controls after">
          <PauseButton account={account} onChanged={onChanged} />
          <RefreshButton record={account} request={refresh} onPoll={onPoll} onRead={onRead} />
        </div>
      )}
    </>
  );
}
