// Tracking: is it healthy, what is not updating and why, which sources pause, which days are covered.

import type { ComponentChildren } from "preact";
import { useNews } from "../api/news.ts";
import { type Resource, useResource } from "../api/resource.ts";
import { Controls, PLATFORM_NAMES } from "../components/controls.tsx";
import { Facts } from "../components/facts.tsx";
import { Card, Count, Empty, Entity, ProblemNotice, Status, statusName } from "../components/parts.tsx";
import { ScopeFilters } from "../components/scope-filters.tsx";
import * as tableCss from "../components/table.module.css";
import { type Column, CsvButton, Table } from "../components/table.tsx";
import { When } from "../components/when.tsx";
import { duration, exact, plural } from "../format.ts";
import { fetchNotUpdating, fetchTracking, MAX_LISTED, NOT_UPDATING } from "../loads/tracking.ts";
import { linkTo, scopeParameters, view } from "../state/view.ts";
import { FAILURE_NAMES, PAUSE_NAMES, reasonOf, STATUSES } from "../tracking-reason.ts";
import { Coverage, useCoverage } from "./tracking/coverage.tsx";
import * as trackingCss from "./tracking.module.css";

/** How often the page asks again at most. */
const RELOAD_MS = 10_000;
/** A due attempt that waits longer is late. */
const LATE_SECONDS = 900;
/** All but the list of accounts is of the whole organization. */
const ALL = { isUnfiltered: true };
const NO_SCOPE = JSON.stringify([null, {}]);
type Health = Awaited<ReturnType<typeof fetchTracking>>;
type Failure = Health["failures"][number];
type Source = Health["sources"][number];
type AccountRow = Awaited<ReturnType<typeof fetchNotUpdating>>["data"][number];

function notUpdating({ accounts }: Health): number {
  return NOT_UPDATING.reduce((sum, status) => sum + accounts[status], 0);
}

/** What is wrong, the most serious first. */
function troubles(health: Health): string[] {
  const { lag_seconds, due, sources } = health;
  const stopped = notUpdating(health);
  const paused = sources.filter(({ status }) => status === "paused");
  return [
    ...paused.map(
      ({ name, platform, reason }) =>
        `The source ${name} of ${PLATFORM_NAMES[platform]} pauses. ${reason ? PAUSE_NAMES[reason] : ""}`,
    ),
    ...(lag_seconds > LATE_SECONDS
      ? [
          `Reads are late: ${plural(due, "is", "are")} due, and the oldest has waited ${duration(lag_seconds)}.`,
        ]
      : []),
    ...(stopped > 0 ? [`${plural(stopped, "account is", "accounts are")} not updating.`] : []),
  ];
}

export default function TrackingPage() {
  const tracking = useResource(fetchTracking, []);
  const current = view.value;
  const scope = JSON.stringify([current.platform, scopeParameters(current)]);
  const accounts = useResource((signal) => fetchNotUpdating(current, signal), [scope]);
  const isFiltered = scope !== NO_SCOPE;
  const coverage = useCoverage();
  // The cards below stand under a table of unknown length.
  const areShown = [tracking, accounts].every(({ data, problem }) => data || problem);
  useNews(RELOAD_MS, true, () => {
    tracking.refresh();
    accounts.refresh();
  });
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <h1>Tracking</h1>
          <p class="quiet small">Whether the numbers are current. Days in UTC.</p>
        </div>
        <Controls hasComparison={false} />
      </div>
      <Card title="Now" resource={tracking} height={86} placeholder={<Now health={null} />}>
        {(health) => <Now health={health} />}
      </Card>
      <ScopeFilters />
      <Card
        title="Not updating"
        {...(isFiltered ? { note: "of the accounts that match the filters; everything else is of all" } : {})}
        resource={accounts}
        height={69}
        menu={<CsvButton title="Not updating" columns={ACCOUNT_COLUMNS} rows={accounts.data?.data ?? []} />}
      >
        {({ data, pagination }) =>
          data.length === 0 ? (
            <Empty>
              Every account that {isFiltered ? "matches the filters and " : ""}is not paused is updating.
            </Empty>
          ) : (
            <>
              <div class={tableCss.dense}>
                <Table title="Not updating" columns={ACCOUNT_COLUMNS} rows={data} rowKey={({ id }) => id} />
              </div>
              {pagination.has_next && (
                <p class="small quiet after">
                  The {MAX_LISTED} with the most followers. All:{" "}
                  {NOT_UPDATING.map((status) => (
                    <a
                      key={status}
                      class="link spaced"
                      href={linkTo("/accounts", { status, sort: "-follower_count" }, ALL)}
                    >
                      {statusName(status)}
                    </a>
                  ))}
                </p>
              )}
            </>
          )
        }
      </Card>
      {areShown && <Details tracking={tracking} coverage={coverage} />}
      {accounts.problem && <ProblemNotice of={tracking} />}
    </>
  );
}

function Details({
  tracking,
  coverage,
}: {
  tracking: Resource<Health>;
  coverage: ReturnType<typeof useCoverage>;
}) {
  return (
    <>
      <div class="columns">
        <Card title="Failures by reason" resource={tracking} height={69}>
          {({ failures }) =>
            failures.length === 0 ? (
              <Empty>No read is failing.</Empty>
            ) : (
              <Table
                title="Failures by reason"
                columns={FAILURE_COLUMNS}
                rows={failures}
                rowKey={({ reason }) => reason}
              />
            )
          }
        </Card>
        <Card title="By status" resource={tracking} height={69}>
          {(health) => <ByStatus health={health} />}
        </Card>
      </div>
      <div class="columns wide">
        <Coverage coverage={coverage} />
        <Card title="Sources" resource={tracking} height={160} note="in the order in which they are tried">
          {({ sources }) =>
            sources.length === 0 ? (
              <Empty>No source is configured: nothing can be read.</Empty>
            ) : (
              <Table
                title="Sources"
                columns={SOURCE_COLUMNS}
                rows={sources}
                rowKey={({ platform, name }) => `${platform}/${name}`}
              />
            )
          }
        </Card>
      </div>
    </>
  );
}

/** Without numbers until they are loaded. */
function Now({ health }: { health: Health | null }) {
  const fact = (text: (health: Health) => ComponentChildren) => (health ? text(health) : "\u00a0");
  return (
    <div class={trackingCss.health}>
      <div role="status">
        {health ? (
          <Verdict health={health} />
        ) : (
          <p class={trackingCss.verdict}>
            <span class="skeleton text" />
          </p>
        )}
      </div>
      <Facts
        facts={[
          [
            "Oldest due read waits",
            fact(({ lag_seconds }) => (
              <span title={`${exact(lag_seconds)} seconds`}>{duration(lag_seconds)}</span>
            )),
          ],
          ["Due now", fact(({ due }) => <Count value={due} />)],
          ["In flight", fact(({ in_flight }) => <Count value={in_flight} />)],
          ["Succeeded in 24 h", fact(({ scrapes_24h }) => <Count value={scrapes_24h.succeeded} />)],
          ["Failed in 24 h", fact(({ scrapes_24h }) => <Count value={scrapes_24h.failed} />)],
        ]}
      />
    </div>
  );
}

function Verdict({ health }: { health: Health }) {
  const wrong = troubles(health);
  const { active, pending, paused, paused_by_creator } = health.accounts;
  const resting = paused + paused_by_creator;
  if (wrong.length > 0)
    return (
      <ul class={trackingCss.verdict}>
        {wrong.map((text) => (
          <li key={text}>
            <span class="status bad">{text}</span>
          </li>
        ))}
      </ul>
    );
  if (active + pending === 0 && resting > 0)
    return <p class={trackingCss.verdict}>{plural(resting, "account is", "accounts are")} paused.</p>;
  if (active + pending + health.videos.active === 0)
    return <p class={trackingCss.verdict}>Nothing is tracked yet.</p>;
  return (
    <p class={trackingCss.verdict}>
      <span class="status ok">Tracking is healthy.</span> {plural(active, "account is", "accounts are")} read
      on time{pending > 0 && `, ${plural(pending, "waits", "wait")} for the first read`}.
    </p>
  );
}

const ACCOUNT_COLUMNS: readonly Column<AccountRow>[] = [
  {
    name: "Account",
    isName: true,
    csv: ({ username }) => username,
    render: ({ id, username, platform, creator_name, profile_pic_url }) => (
      <Entity
        id={id}
        href={linkTo(`/accounts/${id}`)}
        name={`@${username}`}
        src={profile_pic_url}
        detail={[PLATFORM_NAMES[platform], creator_name].filter(Boolean).join(" · ")}
      />
    ),
  },
  {
    name: "Status",
    csv: ({ tracking }) => tracking.status,
    render: ({ tracking }) => <Status status={tracking.status} />,
  },
  {
    name: "Why",
    csv: ({ tracking }) => tracking.last_error ?? reasonOf(tracking),
    render: ({ tracking }) => (
      <span class={tableCss.reasonCell} title={tracking.last_error ?? undefined}>
        {reasonOf(tracking) ?? "–"}
      </span>
    ),
  },
  {
    name: "Last read",
    csv: ({ last_scrape_time }) => last_scrape_time,
    render: ({ last_scrape_time }) => <When value={last_scrape_time} />,
  },
  {
    name: "Next attempt",
    csv: ({ tracking }) => tracking.next_attempt_at,
    render: ({ tracking }) => <When value={tracking.next_attempt_at} />,
  },
];

const FAILURE_COLUMNS: readonly Column<Failure>[] = [
  {
    name: "Reason",
    render: ({ reason, since }) => (
      <div class={`${tableCss.why} ${tableCss.reasonCell}`}>
        {FAILURE_NAMES[reason]}
        {since && (
          <small class="small quiet">
            first failed <When value={since} />
          </small>
        )}
      </div>
    ),
  },
  {
    name: "Accounts",
    isNumber: true,
    render: ({ reason, accounts }) =>
      accounts > 0 ? (
        <a class="link" href={linkTo("/accounts", { failure: reason, sort: "-follower_count" }, ALL)}>
          <Count value={accounts} />
        </a>
      ) : (
        <Count value={accounts} />
      ),
  },
  { name: "Posts tracked alone", isNumber: true, render: ({ videos }) => <Count value={videos} /> },
];

const SOURCE_COLUMNS: readonly Column<Source>[] = [
  {
    name: "Source",
    render: ({ name, platform }) => (
      <>
        {name} <small class="quiet small">{PLATFORM_NAMES[platform]}</small>
      </>
    ),
  },
  {
    name: "Status",
    render: ({ status, paused_until, reason }) => (
      <div class={tableCss.why}>
        <span>
          <Status status={status} />
          {paused_until && (
            <>
              {" "}
              until <When value={paused_until} />
            </>
          )}
        </span>
        {reason && <small class="small quiet">{PAUSE_NAMES[reason]}</small>}
        {status === "unconfigured" && (
          <small class="small quiet">This installation has no credentials for it, or does not list it.</small>
        )}
      </div>
    ),
  },
];

/** Statuses that some account or post has, and `active` always. */
function ByStatus({ health: { accounts, videos } }: { health: Health }) {
  const rows = STATUSES.filter((status) => status === "active" || accounts[status] > 0 || videos[status] > 0);
  const hasVideos = rows.some((status) => videos[status] > 0);
  const columns: Column<(typeof STATUSES)[number]>[] = [
    { name: "Status", render: (status) => <Status status={status} /> },
    {
      name: "Accounts",
      isNumber: true,
      render: (status) => (
        <a class="link" href={linkTo("/accounts", { status }, ALL)}>
          <Count value={accounts[status]} />
        </a>
      ),
    },
    ...(hasVideos
      ? [
          {
            name: "Posts tracked alone",
            isNumber: true,
            render: (status: (typeof STATUSES)[number]) => <Count value={videos[status]} />,
          },
        ]
      : []),
  ];
  return <Table title="By status" columns={columns} rows={rows} rowKey={(status) => status} />;
}
