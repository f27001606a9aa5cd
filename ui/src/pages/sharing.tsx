// The links of a collection: what each shows and who looked, and making and revoking one. Loaded when the dialog opens.

import { useState } from "preact/hooks";

import { type Action, useAction } from "../api/action.ts";
import { api, unwrap } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import type { components } from "../api/schema.d.ts";
import { ConfirmDialog } from "../components/confirm.tsx";
import { CopyButton } from "../components/copy.tsx";
import { useModal } from "../components/focus.ts";
import { Card, Count, Empty, ProblemNotice } from "../components/parts.tsx";
import { type Column, Table } from "../components/table.tsx";
import { When } from "../components/when.tsx";
import { exact, time } from "../format.ts";
import type { Collection, SharePart } from "../loads/collections.ts";
import { API_PERIODS } from "../state/range.ts";
import * as css from "./sharing.module.css";

type Share = components["schemas"]["CollectionShare"];
type NewShare = Pick<Share, "name" | "period" | "show"> & { expires_at: string | null };
type Period = (typeof API_PERIODS)[number];

/** The API allows no more, so that one page has all. */
const MAX_SHARES = 100;
const PARTS: Readonly<Record<SharePart, string>> = {
  overview: "Totals and growth",
  timeseries: "Day by day",
  content: "Posts",
  accounts: "Accounts",
  creators: "Creators",
  payouts: "Payouts",
};
const PERIOD_NAMES: Readonly<Record<Period, string>> = { "7d": "7 days", "30d": "30 days", "90d": "90 days" };
const PART_NAMES = Object.keys(PARTS) as SharePart[];

async function fetchShares(collection_id: string, signal: AbortSignal): Promise<Share[]> {
  const params = { path: { collection_id }, query: { limit: MAX_SHARES, sort: "-added_at" as const } };
  return (await unwrap(api.GET("/collections/{collection_id}/shares", { params, signal }))).data;
}

interface Props {
  collection: Collection;
  onClose: () => void;
}

export default function SharingDialog({ collection, onClose }: Props) {
  const dialog = useModal();
  const [made, setMade] = useState<Share | null>(null);
  const shares = useResource((signal) => fetchShares(collection.id, signal), [collection.id]);
  const make = useAction(async (signal, body: NewShare) => {
    const params = { path: { collection_id: collection.id } };
    setMade((await unwrap(api.POST("/collections/{collection_id}/shares", { params, body, signal }))).data);
    shares.reload();
  });
  return (
    <dialog
      ref={dialog}
      class={css.sharing}
      aria-labelledby="sharing-title"
      // The link that is made is shown this once.
      onCancel={(event) => make.isRunning && event.preventDefault()}
      onClose={onClose}
    >
      <header>
        <h2 id="sharing-title">
          Share <bdi>{collection.name}</bdi>
        </h2>
        <button type="button" class="plain" disabled={make.isRunning} onClick={() => dialog.current?.close()}>
          Close
        </button>
      </header>
      {made ? (
        <NewLink share={made} onDone={() => setMade(null)} />
      ) : (
        <ShareForm collection={collection} make={make} />
      )}
      <Card title="Links" resource={shares} height={90}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty>Nobody outside sees this report.</Empty>
          ) : (
            <ShareTable rows={rows} onRevoked={shares.reload} />
          )
        }
      </Card>
    </dialog>
  );
}

/** The token is shown this once. */
function NewLink({ share, onDone }: { share: Share; onDone: () => void }) {
  return (
    <section class={css.newLink} aria-label="New link">
      <p>
        <b>Copy the link now: it is not shown again.</b> Whoever has it sees the report until{" "}
        {time(share.expires_at)}, without a key.
      </p>
      <div class={css.link}>
        <input
          type="text"
          readOnly
          aria-label="Link"
          value={share.url ?? ""}
          onFocus={(event) => event.currentTarget.select()}
        />
        <CopyButton label="Copy" title="Copy the link" text={() => share.url ?? ""} />
      </div>
      <p>
        <button type="button" onClick={onDone}>
          Done
        </button>
      </p>
    </section>
  );
}

function ShareForm({ collection, make }: { collection: Collection; make: Action<[NewShare]> }) {
  const [name, setName] = useState(collection.name);
  const [period, setPeriod] = useState<Period>("30d");
  const [until, setUntil] = useState("");
  const available = PART_NAMES.filter((part) => part !== "payouts" || collection.payout !== null);
  const [show, setShow] = useState<readonly SharePart[]>(available.filter((part) => part !== "payouts"));
  const problemOf = (field: string) =>
    make.problem?.fields.find((problem) => problem.field === field)?.message;
  return (
    <form
      class={css.form}
      aria-label="New link"
      onSubmit={(event) => {
        event.preventDefault();
        void make.run({ name: name.trim(), period, expires_at: until || null, show: [...show] });
      }}
    >
      <label class="field">
        <span class="quiet small">Title of the report</span>
        <input
          type="text"
          required
          maxLength={255}
          dir="auto"
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      <label class="field">
        <span class="quiet small">Period shown first</span>
        <select value={period} onChange={(event) => setPeriod(event.currentTarget.value as Period)}>
          {API_PERIODS.map((period) => (
            <option key={period} value={period}>
              {PERIOD_NAMES[period]}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        <span class="quiet small">Works until (in 90 days if empty)</span>
        <input
          type="date"
          value={until}
          aria-invalid={problemOf("expires_at") !== undefined}
          onInput={(event) => setUntil(event.currentTarget.value)}
        />
        {problemOf("expires_at") && <span class="small danger-text">{problemOf("expires_at")}</span>}
      </label>
      <fieldset class={css.parts}>
        <legend class="quiet small">It shows</legend>
        {available.map((part) => (
          <label key={part} class="check">
            <input
              type="checkbox"
              checked={show.includes(part)}
              onChange={(event) =>
                setShow(
                  PART_NAMES.filter((name) =>
                    name === part ? event.currentTarget.checked : show.includes(name),
                  ),
                )
              }
            />
            {PARTS[part]}
          </label>
        ))}
      </fieldset>
      <ProblemNotice of={make} />
      <div class="controls">
        <button type="submit" class="primary" disabled={make.isRunning || show.length === 0}>
          {make.isRunning ? "Making…" : "Make a link"}
        </button>
      </div>
    </form>
  );
}

function ShareTable({ rows, onRevoked }: { rows: readonly Share[]; onRevoked: () => void }) {
  const [revoking, setRevoking] = useState<Share | null>(null);
  const columns: Column<Share>[] = [
    {
      name: "Link",
      render: (row) => (
        <div class={css.share}>
          <b dir="auto">{row.name}</b>
          <small class="quiet small">
            {PERIOD_NAMES[row.period]} · {row.show.map((part) => PARTS[part].toLowerCase()).join(", ")}
          </small>
        </div>
      ),
    },
    { name: "Views", isNumber: true, render: (row) => <Count value={row.views} format={exact} /> },
    { name: "Last viewed", render: (row) => <When value={row.last_viewed_at} /> },
    {
      name: "Works until",
      render: ({ expires_at }) =>
        Date.parse(expires_at) < Date.now() ? (
          <span title={time(expires_at)}>expired</span>
        ) : (
          <When value={expires_at} />
        ),
    },
    {
      name: "Action",
      isControl: true,
      render: (row) => (
        <button
          type="button"
          class="plain small"
          aria-label={`Revoke ${row.name}`}
          onClick={() => setRevoking(row)}
        >
          Revoke…
        </button>
      ),
    },
  ];
  return (
    <>
      <Table title="Links" columns={columns} rows={rows} rowKey={({ id }) => id} />
      {revoking && (
        <RevokeDialog
          key={revoking.id}
          share={revoking}
          onClose={() => setRevoking(null)}
          onRevoked={onRevoked}
        />
      )}
    </>
  );
}

function RevokeDialog({
  share,
  onClose,
  onRevoked,
}: {
  share: Share;
  onClose: () => void;
  onRevoked: () => void;
}) {
  const revoke = useAction(async (signal) => {
    const path = { collection_id: share.collection_id, share_id: share.id };
    await unwrap(api.DELETE("/collections/{collection_id}/shares/{share_id}", { params: { path }, signal }));
    onRevoked();
    onClose();
  });
  return (
    <ConfirmDialog
      title={`Revoke ${share.name}?`}
      action="Revoke"
      isRunning={revoke.isRunning}
      onConfirm={() => void revoke.run()}
      onClose={onClose}
    >
      <p>The link stops working within seconds, also where the report is open. This cannot be undone.</p>
      <ProblemNotice of={revoke} />
    </ConfirmDialog>
  );
}
