// Events: what happened to accounts, posts and imports, the latest first, and what happens while the page is open.

import type { ComponentChildren } from "preact";

import { type HappenedEvent, isLive } from "../api/live.ts";
import { useNews } from "../api/news.ts";
import { usePages, useTotal } from "../api/pages.ts";
import { mapResource } from "../api/resource.ts";
import { PLATFORM_NAMES } from "../components/controls.tsx";
import { FilterBar } from "../components/filter-bar.tsx";
import { MoreButton } from "../components/gain-columns.tsx";
import { Card, Empty } from "../components/parts.tsx";
import { RecordFilter } from "../components/record-pickers.tsx";
import { type Column, CsvButton, Table } from "../components/table.tsx";
import { When } from "../components/when.tsx";
import { compact, exact, plural, times } from "../format.ts";
import { countEvents, EVENT_KINDS, eventKind, fetchEvents } from "../loads/events.ts";
import { linkTo, setFilters, view } from "../state/view.ts";
import { SHORT_FAILURE_NAMES } from "../tracking-reason.ts";
import * as css from "./events.module.css";

type Data = HappenedEvent["data"];

/** News come at most this often, in milliseconds. */
const RELOAD_MS = 5_000;

/** What happened, in words between the names of whom and what it happened to. */
type Sentence = readonly (string | { href: string; name: string })[];

function accountOf({ account }: Data): Sentence[number] {
  return account ? { href: `/accounts/${account.id}`, name: `@${account.username}` } : "";
}

function postOf({ video }: Data): Sentence[number] {
  return video ? { href: `/content/${video.id}`, name: video.description || "Post without a caption" } : "";
}

function platformOf({ account, video }: Data): string {
  const platform = account?.platform ?? video?.platform;
  return platform ? PLATFORM_NAMES[platform] : "The platform";
}

const IMPORT_ENDS: Readonly<Record<string, string>> = { succeeded: "was loaded", cancelled: "was cancelled" };

function importSentence({ import: ended }: Data): Sentence {
  if (!ended) return [];
  const end = IMPORT_ENDS[ended.status] ?? "could not be loaded";
  const refused = ended.refused > 0 ? `, ${exact(ended.refused)} of them refused` : "";
  return [
    { href: "/imports", name: ended.filename ?? "A file" },
    ` ${end}: ${ended.error ?? `${plural(ended.rows_read, "row")}${refused}`}`,
  ];
}

const SENTENCES: Readonly<Record<HappenedEvent["type"], (data: Data) => Sentence>> = {
  "video.published": (data) => [accountOf(data), " posted ", postOf(data)],
  "video.views_reached": (data) => [postOf(data), ` passed ${exact(data.threshold)} views`],
  "video.breakout": (data) => [
    postOf(data),
    ` has ${times(data.multiple)} the usual views after ${plural(data.age_days ?? 0, "day")}: ${compact(data.actual)} instead of ${compact(data.baseline)}`,
  ],
  "account.followers_reached": (data) => [accountOf(data), ` passed ${exact(data.threshold)} followers`],
  "account.unavailable": (data) => [accountOf(data), ` is no longer shown by ${platformOf(data)}`],
  "account.available": (data) => [accountOf(data), ` is shown by ${platformOf(data)} again`],
  "account.renamed": (data) => [`@${data.previous_username} is now called `, accountOf(data)],
  "account.failing": (data) => [
    accountOf(data),
    ` is not updating: ${data.reason ? SHORT_FAILURE_NAMES[data.reason].toLowerCase() : "reads fail"}`,
  ],
  "account.recovered": (data) => [accountOf(data), " is updating again"],
  "import.ended": importSentence,
  "webhook.disabled": ({ webhook }) => [
    `The webhook${webhook?.description ? ` “${webhook.description}”` : ""} was disabled, because its receiver is gone or failed for five days`,
  ],
};

/** New types may come with a newer server. */
function sentenceOf({ type, data }: HappenedEvent): Sentence {
  return (SENTENCES as Partial<typeof SENTENCES>)[type]?.(data) ?? [type];
}

function kindName({ type }: HappenedEvent): string {
  const kind = Object.values(EVENT_KINDS).find(({ types }) => types.some((one) => one === type));
  return kind?.name ?? type;
}

function shown(part: Sentence[number], position: number): ComponentChildren {
  return typeof part === "string" ? (
    part
  ) : (
    <a key={position} class="link" href={linkTo(part.href)} dir="auto">
      {part.name}
    </a>
  );
}

const COLUMNS: readonly Column<HappenedEvent>[] = [
  {
    name: "When",
    csv: ({ created_at }) => created_at,
    render: ({ created_at }) => (
      <span class="nowrap">
        <When value={created_at} />
      </span>
    ),
  },
  { name: "Kind", csv: kindName, render: (event) => <span class="nowrap quiet">{kindName(event)}</span> },
  {
    name: "What happened",
    csv: (event) =>
      sentenceOf(event)
        .map((part) => (typeof part === "string" ? part : part.name))
        .join(""),
    render: (event) => <span class={css.sentence}>{sentenceOf(event).map(shown)}</span>,
  },
  { name: "Account", csv: ({ data }) => data.account?.username ?? data.video?.account_id },
];

function Filters() {
  return (
    <FilterBar
      names={["creator_id", "account_id", "collection_id"]}
      first={
        <select
          aria-label="Kind"
          value={eventKind(view.value) ?? ""}
          onChange={(event) => setFilters({ kind: event.currentTarget.value })}
        >
          <option value="">Everything</option>
          {Object.entries(EVENT_KINDS).map(([kind, { name }]) => (
            <option key={kind} value={kind}>
              {name}
            </option>
          ))}
        </select>
      }
    >
      <RecordFilter name="creator_id" label="Creator" placeholder="Any creator" />
      <RecordFilter name="account_id" label="Account" placeholder="Any account" />
      <RecordFilter name="collection_id" label="Collection" placeholder="Any collection" />
    </FilterBar>
  );
}

export default function EventsPage() {
  const current = view.value;
  const pages = usePages(
    JSON.stringify(["events", [...current.filters]]),
    (cursor, signal) => fetchEvents(current, cursor, signal),
    { sort: "" },
  );
  const total = useTotal(pages, (signal) => countEvents(current, signal));
  useNews(RELOAD_MS, true, pages.refresh);
  const rows = pages.data?.rows ?? [];
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <h1>Events</h1>
          <p class="quiet small">
            What happened to accounts, posts and imports in the last 30 days
            {isLive.value ? ", and what happens now" : ""}.
          </p>
        </div>
      </div>
      <Filters />
      <Card
        title="Events"
        resource={mapResource(pages, ({ rows }) => rows)}
        requests={pages.requests}
        height={160}
        menu={<CsvButton title="Events" columns={COLUMNS} rows={rows} />}
      >
        {(rows) =>
          rows.length === 0 ? (
            <Empty>
              {current.filters.size > 0
                ? "Nothing of this kind happened."
                : "Nothing happened yet. New posts, breakouts, milestones and failures are listed here."}
            </Empty>
          ) : (
            <Table title="Events" columns={COLUMNS} rows={rows} rowKey={({ id }) => id} />
          )
        }
      </Card>
      <MoreButton pages={pages} total={total} />
    </>
  );
}
