// Creators by what their accounts gained, or all by name, and a comparison of up to five.

import { useState } from "preact/hooks";
import { useAction } from "../api/action.ts";
import { api, unwrap } from "../api/client.ts";
import { mayWrite } from "../api/identity.ts";
import { type PagedResource, usePages, useTotal } from "../api/pages.ts";
import { useColumnChoice } from "../components/column-choice.tsx";
import { Compared } from "../components/compared.tsx";
import { Controls } from "../components/controls.tsx";
import { ExportButton } from "../components/export.tsx";
import { useFocus } from "../components/focus.ts";
import {
  daysColumn,
  GainsProblem,
  gainColumn,
  MoreButton,
  RATE,
  type Shown,
} from "../components/gain-columns.tsx";
import {
  CardMenu,
  CardTitle,
  Count,
  Empty,
  Entity,
  ProblemNotice,
  Status,
  WindowNote,
} from "../components/parts.tsx";
import { ScopeFilters } from "../components/scope-filters.tsx";
import * as tableCss from "../components/table.module.css";
import { type Column, CsvButton, Table } from "../components/table.tsx";
import { TextFilter } from "../components/text-filter.tsx";
import {
  type CreatorPage,
  type CreatorRow,
  countCreators,
  creatorFilters,
  creatorOrder,
  creatorSearch,
  fetchCreators,
  isRankingFiltered,
} from "../loads/creator-rows.ts";
import { totalsComparison } from "../loads/overview.ts";
import { comparedIds, MAX_COMPARED, toggleCompared } from "../state/compared.ts";
import type { RecordMetric } from "../state/metrics.ts";
import { goTo, linkTo, ranksChange, view, windowParameters } from "../state/view.ts";
import * as creatorsCss from "./creators.module.css";
import type { PageProps } from "./props.ts";

function columns(ranked: RecordMetric | undefined): Column<CreatorRow>[] {
  const compared = comparedIds(view.value, "creators");
  const shown: Shown = {
    ranked,
    hasChange: ranksChange(view.value, ranked),
    canRank: !creatorSearch(view.value),
  };
  const ofRanking: Column<CreatorRow>[] = [
    RATE,
    {
      name: "New posts",
      sort: "new_posts",
      isNumber: true,
      csv: (row) => row.new_posts,
      render: (row) => <Count value={row.new_posts} />,
    },
  ];
  return [
    {
      name: "Compare",
      isControl: true,
      render: ({ id, name }) => {
        const isCompared = compared.includes(id);
        return (
          <label class={tableCss.target}>
            <input
              type="checkbox"
              aria-label={`Compare ${name}`}
              checked={isCompared}
              disabled={!isCompared && compared.length === MAX_COMPARED}
              onChange={() => toggleCompared("creators", id)}
            />
          </label>
        );
      },
    },
    {
      name: "Creator",
      isName: true,
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
    ...gainColumn("Views", "views", shown),
    daysColumn(shown),
    ...gainColumn("Engagement", "engagement", shown),
    ...ofRanking,
    {
      name: "Followers",
      isNumber: true,
      csv: (row) => row.follower_count,
      render: (row) => <Count value={row.follower_count} />,
    },
    ...gainColumn("New followers", "followers", shown),
  ];
}

export default function CreatorsPage({ identity }: PageProps) {
  const current = view.value;
  // What a key may do has its room before that is known.
  const canWrite = mayWrite(identity) ?? true;
  const [isCreating, setCreating] = useState(false);
  const filters = [...current.filters].filter(([name]) => name !== "creators");
  const pages = usePages<CreatorPage>(
    JSON.stringify([current.range, current.platform, filters, totalsComparison(current)]),
    (cursor, signal) => fetchCreators(current, cursor, signal),
    { sort: creatorOrder(current).text },
  );
  const total = useTotal(pages, (signal) => countCreators(current, signal));
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <h1>Creators</h1>
          <p class="quiet small">Tick up to {MAX_COMPARED} to compare them.</p>
          <WindowNote meta={pages.data?.page.meta} />
        </div>
        {canWrite && (
          <button
            type="button"
            class="primary"
            aria-expanded={isCreating}
            onClick={() => setCreating(!isCreating)}
          >
            New creator
          </button>
        )}
        <Controls />
      </div>
      {isCreating && <NewCreator />}
      <Compared
        kind="creators"
        names={pages.data && new Map(pages.data.rows.map(({ id, name }) => [id, name]))}
        code={() => import("./comparison.tsx")}
      />
      <ScopeFilters
        hasCreator={false}
        first={!isRankingFiltered(current) && <TextFilter label="Name contains" placeholder="Name" />}
      />
      <GainsProblem pages={pages} />
      <CreatorsCard pages={pages} />
      <MoreButton pages={pages} total={total} />
    </>
  );
}

function CreatorsCard({ pages }: { pages: PagedResource<CreatorPage> }) {
  const order = creatorOrder(view.value);
  const { order: loaded, problem: gainsProblem } = pages.data?.page ?? { order, problem: null };
  const { shown, control } = useColumnChoice("creators", columns(loaded.metric));
  const q = creatorSearch(view.value);
  const rows = pages.data?.rows ?? [];
  return (
    <section class={`card ${tableCss.dense}`} aria-label="Creators" aria-busy={pages.status === "loading"}>
      <header>
        <CardTitle title={loaded.metric ? "By what they gained" : "All creators"} />
        <div class="controls">
          {control}
          <CardMenu title="Creators" urls={pages.requests}>
            <CsvButton title="Creators" columns={shown} rows={rows} />
            <ExportButton
              name="creators"
              query={{
                ...windowParameters(view.value.range),
                ...creatorFilters(view.value),
                ...(q ? { q } : {}),
              }}
            />
          </CardMenu>
        </div>
      </header>
      <ProblemNotice of={pages} />
      {!pages.data && !pages.problem && <div class="skeleton rows" />}
      {pages.data?.rows.length === 0 && (
        <Empty>
          {isRankingFiltered(view.value)
            ? "No creator has an account that matches these filters."
            : q
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
          sort={(gainsProblem ? loaded : order).text}
        />
      )}
    </section>
  );
}

function NewCreator() {
  const [name, setName] = useState("");
  const input = useFocus<HTMLInputElement>();
  const create = useAction(async (signal) => {
    const { data } = await unwrap(api.POST("/creators", { body: { name: name.trim() }, signal }));
    goTo(`/creators/${data.id}`);
  });
  const submit = (event: Event) => {
    event.preventDefault();
    void create.run();
  };
  return (
    <form class={`card ${creatorsCss.newCreator}`} onSubmit={submit} aria-label="New creator">
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
      <ProblemNotice of={create} />
    </form>
  );
}
