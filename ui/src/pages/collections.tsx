// Collections: the list, and what a collection is for.

import { useMemo, useState } from "preact/hooks";

import { mayWrite } from "../api/identity.ts";
import { usePages, useTotal } from "../api/pages.ts";
import { mapResource } from "../api/resource.ts";
import { DeleteCollection } from "../components/delete-collection.tsx";
import { MoreButton } from "../components/gain-columns.tsx";
import { Card, Count } from "../components/parts.tsx";
import { ruleText } from "../components/rule-text.ts";
import { type Column, CsvButton, Table } from "../components/table.tsx";
import { TextFilter } from "../components/text-filter.tsx";
import { When } from "../components/when.tsx";
import { exact } from "../format.ts";
import { type Collection, countCollections, fetchCollections } from "../loads/collections.ts";
import { linkTo, view } from "../state/view.ts";
import * as css from "./collections.module.css";
import type { PageProps } from "./props.ts";

function columnsFor(remove: ((row: Collection) => void) | null): Column<Collection>[] {
  const count = (name: string, value: (row: Collection) => number): Column<Collection> => ({
    name,
    isNumber: true,
    csv: value,
    render: (row) => <Count value={value(row)} format={exact} />,
  });
  return [
    {
      name: "Collection",
      sort: "name",
      csv: (row) => row.name,
      render: (row) => (
        <div class={css.name}>
          <a href={linkTo(`/collections/${row.id}`)} dir="auto">
            <b>{row.name}</b>
          </a>
          {row.description && (
            <small class="quiet small" dir="auto" title={row.description}>
              {row.description}
            </small>
          )}
        </div>
      ),
    },
    {
      name: "Posts",
      csv: (row) => ruleText(row.rule),
      render: (row) => (
        <span class={css.rule} dir="auto">
          {ruleText(row.rule)}
        </span>
      ),
    },
    count("Included", (row) => row.included_count),
    count("Excluded", (row) => row.excluded_count),
    {
      name: "Created",
      sort: "added_at",
      csv: (row) => row.added_at,
      render: (row) => (
        <span class="nowrap">
          <When value={row.added_at} />
        </span>
      ),
    },
    {
      name: "Action",
      isControl: true,
      render: (row) =>
        remove && (
          <button
            type="button"
            class="plain small"
            aria-label={`Delete ${row.name}`}
            onClick={() => remove(row)}
          >
            Delete…
          </button>
        ),
    },
  ];
}

export default function CollectionsPage({ identity }: PageProps) {
  const current = view.value;
  // What a key may do has its room before that is known.
  const canWrite = mayWrite(identity) ?? true;
  const [deleting, setDeleting] = useState<Collection | null>(null);
  const pages = usePages(
    JSON.stringify(["collections", current.filters.get("q")]),
    (cursor, signal) => fetchCollections(current, cursor, signal),
    { sort: current.sort || "name" },
  );
  const total = useTotal(pages, (signal) => countCollections(current, signal));
  const columns = useMemo(() => columnsFor(canWrite ? setDeleting : null), [canWrite]);
  const rows = pages.data?.rows;
  const isFirst = rows?.length === 0 && !current.filters.has("q");
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <h1>Collections</h1>
          <p class="quiet small">
            Named sets of posts: campaigns, clients, hashtags, competitors. Each has a report.
          </p>
        </div>
        {canWrite && (
          <a class="button primary" href={linkTo("/collections", { edit: "true" })}>
            New collection
          </a>
        )}
      </div>
      {isFirst ? (
        <FirstCollection canWrite={canWrite} />
      ) : (
        <>
          <div class="controls filter-bar">
            <TextFilter label="Name contains" placeholder="Name" />
          </div>
          <Card
            title="Collections"
            resource={mapResource(pages, ({ rows }) => rows)}
            requests={pages.data?.requests ?? []}
            height={160}
            menu={<CsvButton title="Collections" columns={columns} rows={rows ?? []} />}
          >
            {(rows) => (
              <>
                {rows.length === 0 ? (
                  <p class="quiet">No collection has this in its name.</p>
                ) : (
                  <Table
                    title="Collections"
                    columns={columns}
                    rows={rows}
                    rowKey={({ id }) => id}
                    sort="name"
                  />
                )}
                <MoreButton pages={pages} total={total} />
              </>
            )}
          </Card>
        </>
      )}
      {deleting && (
        <DeleteCollection
          key={deleting.id}
          collection={deleting}
          onClose={() => setDeleting(null)}
          onDeleted={pages.reload}
        />
      )}
    </>
  );
}

function FirstCollection({ canWrite }: { canWrite: boolean }) {
  return (
    <section class={`card ${css.first}`} aria-label="First collection">
      <h2>No collections yet</h2>
      <p>
        A collection puts posts together, so that you see what they brought: the posts of a campaign, of a
        client, with a hashtag, of your competitors.
      </p>
      <ul>
        <li>
          <b>A rule</b> finds its posts, and new ones join by themselves; single posts are added or excluded
          by hand.
        </li>
        <li>
          <b>A report</b> has totals, growth, and who brought it; it prints on paper.
        </li>
        <li>
          <b>Payouts</b> say what each account or creator earns.
        </li>
        <li>
          <b>A link</b> shows the report to a client, without a key.
        </li>
      </ul>
      {canWrite ? (
        <p>
          <a class="button primary" href={linkTo("/collections", { edit: "true" })}>
            New collection
          </a>
        </p>
      ) : (
        <p>
          This key may only read. A collection is created with a key of the scope <code>write</code>.
        </p>
      )}
    </section>
  );
}
