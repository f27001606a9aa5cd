// One collection: what its posts brought, and who brought it. The same report is what a client sees by the link of a share.

import { useState } from "preact/hooks";

import { mayWrite } from "../api/identity.ts";
import { useResource } from "../api/resource.ts";
import { Controls } from "../components/controls.tsx";
import { DeleteCollection } from "../components/delete-collection.tsx";
import { markChanges } from "../components/marks.tsx";
import { CardTitle, Empty, WindowNote } from "../components/parts.tsx";
import { RecordProblem } from "../components/record-problem.tsx";
import { handText, ruleText } from "../components/rule-text.ts";
import { type Collection, fetchCollection } from "../loads/collections.ts";
import { useTitle } from "../state/title.ts";
import { goTo, linkTo } from "../state/view.ts";
import { ClientReport } from "./collection/client.tsx";
import { FigureCards, useFigures } from "./collection/figures.tsx";
import { Payouts } from "./collection/payouts.tsx";
import { ShareButton } from "./collection/share-button.tsx";
import { Accounts, Below, Creators, Posts } from "./collection/tables.tsx";
import * as css from "./collection.module.css";
import type { PageProps } from "./props.ts";

export default function CollectionPage({ id, identity }: PageProps) {
  return id ? <OwnReport key={id} id={id} canWrite={mayWrite(identity) ?? false} /> : <ClientReport />;
}

function OwnReport({ id, canWrite }: { id: string; canWrite: boolean }) {
  const source = { collection_id: id };
  const collection = useResource((signal) => fetchCollection(id, signal), [id, markChanges.value]);
  const figures = useFigures(source);
  const record = collection.data;
  useTitle(record?.name);
  if (!record && collection.problem)
    return <RecordProblem name="Collection" resource={collection} list="/collections" />;
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <h1 dir="auto">{record?.name ?? "Collection"}</h1>
          {record?.description && (
            <p class={css.description} dir="auto">
              {record.description}
            </p>
          )}
          <p class="quiet small" dir="auto">
            {record
              ? [`Posts: ${ruleText(record.rule)}`, handText(record)].filter(Boolean).join(" · ")
              : "\u00a0"}
          </p>
          <WindowNote meta={figures.totals.data?.meta} />
        </div>
        <Controls />
      </div>
      <Actions id={id} record={record} canWrite={canWrite} />
      <FigureCards {...figures} />
      <Posts source={source} collection={record} />
      <div class="columns wide">
        <Accounts source={source} />
        <Creators source={source} />
      </div>
      {record?.payout && <Payouts source={source} count={record.payout.count} />}
      {record?.payout === null && <NoPayout id={id} canWrite={canWrite} />}
      <Below collection_id={id} />
    </>
  );
}

interface ActionsProps {
  id: string;
  record: Collection | undefined;
  canWrite: boolean;
}

function Actions({ id, record, canWrite }: ActionsProps) {
  const [isDeleting, setDeleting] = useState(false);
  return (
    <div class="controls">
      {canWrite && (
        <>
          <a class="button" href={linkTo(`/collections/${id}`, { edit: "true" })}>
            Edit
          </a>
          <ShareButton collection={record} />
        </>
      )}
      <button type="button" onClick={() => print()}>
        Print
      </button>
      {canWrite && (
        <button type="button" class="plain danger-text" disabled={!record} onClick={() => setDeleting(true)}>
          Delete…
        </button>
      )}
      {isDeleting && record && (
        <DeleteCollection
          collection={record}
          onClose={() => setDeleting(false)}
          onDeleted={() => goTo("/collections")}
        />
      )}
    </div>
  );
}

function NoPayout({ id, canWrite }: Pick<ActionsProps, "id" | "canWrite">) {
  return (
    <section class={`card ${css.noPayout}`} aria-label="Payouts">
      <header>
        <CardTitle title="Payouts" />
      </header>
      <Empty>
        Terms of payment are not defined.{" "}
        {canWrite && (
          <a class="link" href={linkTo(`/collections/${id}`, { edit: "true" })}>
            Define them
          </a>
        )}
      </Empty>
    </section>
  );
}
