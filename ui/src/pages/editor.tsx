// Creating or changing a collection: which posts are in it, and how they are paid.

import { useState } from "preact/hooks";

import { useAction } from "../api/action.ts";
import { api, unwrap } from "../api/client.ts";
import { mayWrite } from "../api/identity.ts";
import { useResource } from "../api/resource.ts";
import { CardTitle, Empty, ProblemNotice } from "../components/parts.tsx";
import { RecordProblem } from "../components/record-problem.tsx";
import { type Collection, fetchCollection } from "../loads/collections.ts";
import { goTo, linkTo } from "../state/view.ts";
import { bodyOf, type Draft, draftOf, ruleOf } from "./editor/draft.ts";
import { Field, isAt, Problems, TextField } from "./editor/fields.tsx";
import { Marks } from "./editor/marks.tsx";
import { PayoutFields } from "./editor/payout.tsx";
import { Preview } from "./editor/preview.tsx";
import { RuleFields } from "./editor/rule.tsx";
import * as css from "./editor.module.css";
import type { PageProps } from "./props.ts";

export default function EditorPage({ id, identity }: PageProps) {
  const collection = useResource(id ? (signal) => fetchCollection(id, signal) : null, [id]);
  if (collection.problem && !collection.data)
    return <RecordProblem name="Collection" resource={collection} list="/collections" />;
  const isLoaded = !id || collection.data !== undefined;
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <h1 dir="auto" aria-busy={!isLoaded}>
            {id ? `Edit ${collection.data?.name ?? "collection"}` : "New collection"}
          </h1>
        </div>
      </div>
      {mayWrite(identity) === false ? (
        <Empty>
          This key may only read. Collections are changed with a key of the scope <code>write</code>.
        </Empty>
      ) : (
        isLoaded && <Editor collection={collection.data} />
      )}
    </>
  );
}

const PATHS = ["name", "description", "rule", "payout"];

async function save(collection: Collection | undefined, draft: Draft, signal: AbortSignal): Promise<string> {
  const body = bodyOf(draft);
  const stored = collection
    ? api.PATCH("/collections/{collection_id}", {
        params: { path: { collection_id: collection.id } },
        body,
        signal,
      })
    : api.POST("/collections", { body, signal });
  return (await unwrap<{ data: Collection }>(stored)).data.id;
}

function Editor({ collection }: { collection: Collection | undefined }) {
  const [draft, setDraft] = useState(() => draftOf(collection));
  const change = (change: Partial<Draft>) => setDraft({ ...draft, ...change });
  const store = useAction(async (signal) => goTo(`/collections/${await save(collection, draft, signal)}`));
  const fields = store.problem?.fields ?? [];
  const areShown = fields.length > 0 && fields.every((problem) => PATHS.some((path) => isAt(path, problem)));
  return (
    <Problems.Provider value={fields}>
      <form
        class={css.editor}
        aria-label="Collection"
        onSubmit={(event) => {
          event.preventDefault();
          void store.run();
        }}
      >
        <div class="stack">
          <About draft={draft} change={change} />
          <RuleCard draft={draft} change={change} />
          <PayoutCard draft={draft} change={change} />
          {areShown ? (
            <p class="notice" role="alert">
              Not saved: see the marked fields.
            </p>
          ) : (
            <ProblemNotice of={store} />
          )}
          <div class="controls">
            <button type="submit" class="primary" disabled={store.isRunning}>
              {store.isRunning ? "Saving…" : collection ? "Save" : "Create"}
            </button>
            <a class="button" href={linkTo(collection ? `/collections/${collection.id}` : "/collections")}>
              Cancel
            </a>
          </div>
        </div>
        <div class={`stack ${css.aside}`}>
          {draft.hasRule && <Preview rule={ruleOf(draft.rule)} />}
          {collection && (
            <>
              <Marks collection_id={collection.id} state="included" count={collection.included_count} />
              <Marks collection_id={collection.id} state="excluded" count={collection.excluded_count} />
            </>
          )}
        </div>
      </form>
    </Problems.Provider>
  );
}

interface CardProps {
  draft: Draft;
  change: (change: Partial<Draft>) => void;
}

function About({ draft, change }: CardProps) {
  return (
    <section class={`card ${css.part}`} aria-label="About">
      <TextField
        label="Name"
        path="name"
        isRequired
        value={draft.name}
        onChange={(name) => change({ name })}
      />
      <Field label="Description" path="description" hint="For you and your colleagues">
        {(attributes) => (
          <textarea
            {...attributes}
            rows={2}
            maxLength={2_000}
            dir="auto"
            value={draft.description}
            onInput={(event) => change({ description: event.currentTarget.value })}
          />
        )}
      </Field>
    </section>
  );
}

function RuleCard({ draft, change }: CardProps) {
  return (
    <section class={`card ${css.part}`} aria-label="Posts">
      <header>
        <CardTitle title="Posts" />
      </header>
      <div class={css.checks} role="radiogroup" aria-label="How posts get into it">
        <label class="check">
          <input
            type="radio"
            name="membership"
            checked={draft.hasRule}
            onChange={() => change({ hasRule: true })}
          />
          By a rule, and by hand
        </label>
        <label class="check">
          <input
            type="radio"
            name="membership"
            checked={!draft.hasRule}
            onChange={() => change({ hasRule: false })}
          />
          By hand only
        </label>
      </div>
      {draft.hasRule ? (
        <RuleFields rule={draft.rule} change={(rule) => change({ rule: { ...draft.rule, ...rule } })} />
      ) : (
        <p class="quiet small">
          Add posts from any table of posts, or from the page of a post: “Add to a collection”.
        </p>
      )}
    </section>
  );
}

function PayoutCard({ draft, change }: CardProps) {
  return (
    <section class={`card ${css.part}`} aria-label="Payouts">
      <header>
        <CardTitle title="Payouts" note="what each post earns; nothing is paid" />
      </header>
      <label class="check">
        <input
          type="checkbox"
          checked={draft.isPaid}
          onChange={(event) => change({ isPaid: event.currentTarget.checked })}
        />
        Calculate payouts
      </label>
      {draft.isPaid && (
        <PayoutFields
          payout={draft.payout}
          change={(payout) => change({ payout: { ...draft.payout, ...payout } })}
        />
      )}
    </section>
  );
}
