// Creators by what their accounts gained, or all by name, and a comparison of up to five.

import { useState } from "preact/hooks";

import { useAction } from "../api/action.ts";
import { api, unwrap } from "../api/client.ts";
import { asCurl } from "../api/requests.ts";
import { Sparkline } from "../charts/line.tsx";
import { Comparison, comparedIds, MAX_COMPARED, toggleCompared } from "../components/comparison.tsx";
import { Controls } from "../components/controls.tsx";
import { CopyButton } from "../components/copy.tsx";
import {
  type CreatorPage,
  type CreatorRow,
  creatorSort,
  fetchCreators,
  MAX_RANKED,
} from "../components/creator-rows.ts";
import { ExportButton } from "../components/export.tsx";
import type { Figure } from "../components/figures.ts";
import { useFocus } from "../components/focus.ts";
import type { PageProps } from "../components/frame.tsx";
import { sortText } from "../components/gain-rows.ts";
import { type PagedRows, usePages } from "../components/pages.ts";
import {
  CardTitle,
  Change,
  Count,
  Empty,
  Entity,
  ProblemNotice,
  Status,
  WindowNote,
} from "../components/parts.tsx";
import { type Column, CsvButton, Table } from "../components/table.tsx";
import { TextFilter } from "../components/text-filter.tsx";
import { gain, rate } from "../format.ts";
import { linkTo, navigate, view, windowParameters } from "../state/view.ts";

type Gain = "views" | "engagement" | "followers";

/** A gain, and how it changed if the table is sorted by it. */
function gainColumn(name: string, gainName: Gain, ranked: Figure | null): Column<CreatorRow>[] {
  const isRanked = ranked === gainName && view.value.compare;
  const column: Column<CreatorRow> = {
    name,
    isNumber: true,
    isDescending: true,
    csv: (row) => row.gains?.[gainName],
    ...(view.value.filters.has("q") ? {} : { sort: gainName }),
    render: (row) => (
      <span class="stacked">
        <Count value={row.gains?.[gainName]} format={gain} />
        {isRanked && <Change percent={row.change_percent} />}
      </span>
    ),
  };
  return isRanked
    ? [column, { name: `Change of ${name.toLowerCase()}`, csv: (row) => row.change_percent }]
    : [column];
}

/** `ranked`: what the rows were loaded as a ranking by. */
function columns(ranked: Figure | null): Column<CreatorRow>[] {
  const compared = comparedIds(view.value);
  const ofRanking: Column<CreatorRow>[] = [
    {
      name: "Rate",
      sort: "engagement_rate",
      isDescending: true,
      isNumber: true,
      csv: (row) => row.engagement_rate,
      render: (row) => <span title={String(row.engagement_rate ?? "–")}>{rate(row.engagement_rate)}</span>,
    },
    {
      name: "New posts",
      sort: "new_posts",
      isDescending: true,
      isNumber: true,
      csv: (row) => row.new_posts,
      render: (row) => <Count value={row.new_posts} />,
    },
  ];
  return [
    {
      name: "Compare",
      heading: <span class="hidden-text">Compare</span>,
      render: ({ id, name }) => {
        const isCompared = compared.includes(id);
        return (
          <label class="target">
            <input
              type="checkbox"
              aria-label={`Compare ${name}`}
              checked={isCompared}
              disabled={!isCompared && compared.length === MAX_COMPARED}
              onChange={() => toggleCompared(id)}
            />
          </label>
        );
      },
    },
    {
      name: "Creator",
      sort: "name",
      csv: (row) => row.name,
      render: ({ id, name, account_count, is_active }) => (
        <Entity
          id={id}
          href={linkTo(`/creators/${id}`)}
          name={name}
          detail={
            <>
              {account_count} {account_count === 1 ? "account" : "accounts"}
              {is_active === false && (
                <>
                  {" "}
                  · <Status status="paused" />
                </>
              )}
            </>
          }
        />
      ),
    },
    { name: "Accounts", csv: (row) => row.account_count },
    ...gainColumn("Views", "views", ranked),
    {
      name: "Per day",
      render: (row) =>
        row.series ? (
          <Sparkline
            values={row.series}
            today={row.today}
            label="Per day"
            base={ranked === "followers" ? "least" : "zero"}
          />
        ) : null,
    },
    ...gainColumn("Engagement", "engagement", ranked),
    ...(ranked ? ofRanking : []),
    {
      name: "Followers",
      isNumber: true,
      csv: (row) => row.follower_count,
      render: (row) => <Count value={row.follower_count} />,
    },
    ...gainColumn("New followers", "followers", ranked),
  ];
}

export function CreatorsPage({ identity }: PageProps) {
  const current = view.value;
  const canWrite = identity?.scopes.includes("write") ?? false;
  const [isCreating, setCreating] = useState(false);
  const filters = [...current.filters].filter(([name]) => name !== "creators");
  const pages = usePages<CreatorPage>(
    JSON.stringify([current.range, current.metric, filters]),
    (cursor, signal) => fetchCreators(current, cursor, signal),
  );
  const compared = comparedIds(current);
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <h1>Creators</h1>
          <p class="quiet small">Tick up to {MAX_COMPARED} to compare them.</p>
          <WindowNote meta={pages.page?.meta ?? undefined} />
        </div>
        {(canWrite || !identity) && (
          <button
            type="button"
            class={`primary${identity ? "" : " unknown"}`}
            aria-expanded={isCreating}
            onClick={() => setCreating(!isCreating)}
          >
            New creator
          </button>
        )}
        <Controls hasPlatform={false} />
      </div>
      {isCreating && <NewCreator />}
      {compared.length > 0 && (
        <Comparison
          ids={compared}
          names={pages.rows && new Map(pages.rows.map(({ id, name }) => [id, name]))}
        />
      )}
      <div class="controls filter-bar">
        <TextFilter label="Name contains" placeholder="Name" />
      </div>
      {pages.page?.problem && <ProblemNotice problem={pages.page.problem} retry={pages.reload} />}
      <CreatorsCard pages={pages} />
      {pages.hasMore && (
        <p class="more">
          <button type="button" onClick={pages.loadMore} disabled={pages.isLoading}>
            {pages.isLoading ? "Loading…" : "Show more"}
          </button>
        </p>
      )}
    </>
  );
}

function CreatorsCard({ pages }: { pages: PagedRows<CreatorPage> }) {
  const { sort: loaded = creatorSort(view.value), problem: gainsProblem = null } = pages.page ?? {};
  const isRanked = loaded.gain !== null;
  const shown = columns(loaded.gain);
  const q = view.value.filters.get("q");
  const rows = pages.rows ?? [];
  return (
    <section class="card dense" aria-label="Creators" aria-busy={pages.isLoading}>
      <header>
        <CardTitle title={isRanked ? "By what they gained" : "All creators"} />
        <div class="controls">
          <CsvButton title="Creators" columns={shown} rows={rows} />
          <ExportButton
            name="creators"
            query={{ ...windowParameters(view.value.range), ...(q ? { q } : {}) }}
          />
          <CopyButton
            label="curl"
            title="Copy as curl"
            text={() => asCurl(pages.requests)}
            disabled={pages.requests.length === 0}
          />
        </div>
      </header>
      {pages.problem && <ProblemNotice problem={pages.problem} retry={pages.retry} />}
      {pages.rows === null && !pages.problem && <div class="skeleton rows" />}
      {pages.rows?.length === 0 && (
        <Empty>
          {view.value.filters.has("q")
            ? "No creator has this in its name."
            : "No creators yet. A creator is a person with one or more accounts: make one, then link accounts to it."}
        </Empty>
      )}
      {rows.length > 0 && (
        <Table
          title="Creators"
          columns={shown}
          rows={rows}
          rowKey={(row) => row.id}
          sort={sortText(gainsProblem ? loaded : creatorSort(view.value))}
        />
      )}
      {isRanked && rows.length === MAX_RANKED && (
        <p class="small quiet after">
          The {MAX_RANKED} that gained most.{" "}
          <a class="link" href={linkTo("/creators", { sort: "name" })}>
            All by name
          </a>
        </p>
      )}
    </section>
  );
}

function NewCreator() {
  const [name, setName] = useState("");
  const input = useFocus<HTMLInputElement>();
  const create = useAction(async (signal) => {
    const { data } = await unwrap(api.POST("/creators", { body: { name: name.trim() }, signal }));
    navigate({ path: `/creators/${data.id}`, filters: new Map() });
  });
  const submit = (event: Event) => {
    event.preventDefault();
    void create.run();
  };
  return (
    <form class="card new-creator" onSubmit={submit} aria-label="New creator">
      <label class="field">
        Name of the creator
        <input
          type="text"
          required
          ref={input}
          maxLength={255}
          dir="auto"
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="primary" disabled={create.isRunning || !name.trim()}>
        Create
      </button>
      {create.problem && <ProblemNotice problem={create.problem} retry={create.retry} />}
    </form>
  );
}
