// Adding many accounts: a username or profile link per line, with the result of each. What was not added stays in the field.

import { useEffect, useRef, useState } from "preact/hooks";

import { useAction } from "../../api/action.ts";
import { itemMessage, MAX_BATCH } from "../../api/batch.ts";
import { api, unwrap } from "../../api/client.ts";
import type { components } from "../../api/schema.d.ts";
import { PLATFORM_NAMES } from "../../components/controls.tsx";
import { useFocus } from "../../components/focus.ts";
import { ProblemNotice } from "../../components/parts.tsx";
import type { Option } from "../../components/picker.tsx";
import { Chip, NewCreatorPicker, resolveCreator } from "../../components/record-pickers.tsx";
import { plural } from "../../format.ts";
import { linkTo, PLATFORMS, type Platform } from "../../state/view.ts";
import { reasonOf } from "../../tracking-reason.ts";
import * as css from "../accounts.module.css";
import { type AccountLine, parseLines } from "./lines.ts";

/** How often accounts that wait for their first read are requested, and how many at most. */
const ARRIVAL_MS = 3_000;
/** After so many requests, accounts that still wait are left to the table. */
const MAX_ARRIVAL_REQUESTS = 100;
const MAX_NEWEST = 200;

interface Result {
  line: AccountLine;
  outcome: "waiting" | "added" | "exists" | "failed";
  message: string;
  /** Of the account that was added. */
  id: string | null;
}

function resultOf(line: AccountLine, item: components["schemas"]["BatchItemResult"]): Result {
  if (item.status < 300) return { line, outcome: "added", message: "Added", id: item.id ?? null };
  if (item.status === 409) return { line, outcome: "exists", message: "Already tracked", id: null };
  return { line, outcome: "failed", message: itemMessage(item), id: null };
}

function count(results: readonly Result[], outcome: Result["outcome"]): number {
  return results.filter((result) => result.outcome === outcome).length;
}

/** What all added accounts get. */
interface Common {
  category: string;
  tagName: string;
  tagValue: string;
  creator: Option | null;
}

const NOTHING_COMMON: Common = { category: "", tagName: "", tagValue: "", creator: null };

function commonFields({ category, tagName, tagValue }: Common, creator_id: string | undefined) {
  return {
    ...(category.trim() ? { category: category.trim() } : {}),
    ...(tagName.trim() ? { metadata: { [tagName.trim()]: tagValue.trim() } } : {}),
    ...(creator_id ? { creator_id } : {}),
  };
}

/** Sends the lines, as many at a time as a batch may have; what was added or tracked before stays listed. */
function useAdding(onAdded: () => void) {
  const [results, setResults] = useState<readonly Result[]>([]);
  // A second attempt does not create a creator again.
  const created = useRef(new Map<string, string>());
  const findCreator = async (creator: Option | null, signal: AbortSignal) => {
    if (!creator) return undefined;
    const id = creator.id ?? created.current.get(creator.name) ?? (await resolveCreator(creator, signal));
    created.current.set(creator.name, id);
    return id;
  };
  const add = useAction(
    async (
      signal,
      lines: readonly AccountLine[],
      common: Common,
      onDone: (run: readonly Result[]) => void,
    ) => {
      const before = results.filter(({ outcome }) => outcome === "added" || outcome === "exists");
      const run = lines.map((line): Result => ({ line, outcome: "waiting", message: "Waiting", id: null }));
      setResults([...run, ...before]);
      try {
        const fields = commonFields(common, await findCreator(common.creator, signal));
        for (let start = 0; start < lines.length; start += MAX_BATCH) {
          const items = lines
            .slice(start, start + MAX_BATCH)
            .map(({ platform, text }) => ({ platform, username: text, ...fields }));
          const { data } = await unwrap(api.POST("/accounts/batch", { body: { items }, signal }));
          const done = run
            .slice(start)
            .flatMap(({ line }, index) => (data[index] ? resultOf(line, data[index]) : []));
          run.splice(start, done.length, ...done);
          setResults([...run, ...before]);
        }
      } finally {
        if (!signal.aborted) {
          setResults([...run.filter(({ outcome }) => outcome !== "waiting"), ...before]);
          if (count(run, "added") > 0) onAdded();
          onDone(run);
        }
      }
    },
  );
  return { results, add };
}

type Account = components["schemas"]["Account"];
type Arrivals = ReadonlyMap<string, Account>;

async function fetchNewest(limit: number, signal: AbortSignal): Promise<Arrivals> {
  const { data } = await unwrap(
    api.GET("/accounts", { params: { query: { order_by: "added_at", limit } }, signal }),
  );
  return new Map(data.map((account) => [account.id, account]));
}

/** The added accounts, requested again until each was read for the first time. */
function useArrivals(results: readonly Result[], onArrived: () => void): Arrivals {
  const [arrivals, setArrivals] = useState<Arrivals>(new Map());
  const ids = results.flatMap(({ id }) => id ?? []);
  const awaited = ids.filter((id) => (arrivals.get(id)?.tracking.status ?? "pending") === "pending").length;
  const requests = useRef(0);
  useEffect(() => {
    requests.current = 0;
  }, [results]);
  useEffect(() => {
    if (awaited === 0 || requests.current === MAX_ARRIVAL_REQUESTS) return;
    const controller = new AbortController();
    const timer = setTimeout(async () => {
      requests.current += 1;
      const newest = await fetchNewest(Math.min(ids.length, MAX_NEWEST), controller.signal).catch(() => null);
      if (controller.signal.aborted) return;
      setArrivals(new Map([...arrivals, ...(newest ?? [])]));
      onArrived();
    }, ARRIVAL_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [awaited, arrivals]);
  return arrivals;
}

export function AddAccounts({ onAdded, onClose }: { onAdded: () => void; onClose: () => void }) {
  const [text, setText] = useState("");
  const [platform, setPlatform] = useState<Platform>("instagram");
  const [common, setCommon] = useState(NOTHING_COMMON);
  const input = useFocus<HTMLTextAreaElement>();
  const { results, add } = useAdding(onAdded);
  const arrivals = useArrivals(results, onAdded);
  const { isRunning } = add;
  const lines = parseLines(text, platform);
  const unknown = lines.filter(({ isPlatformKnown }) => !isPlatformKnown).length;
  const send = () => {
    if (lines.length === 0 || isRunning) return;
    void add.run(lines, common, (run) => {
      const left = run.filter(({ outcome }) => outcome === "failed" || outcome === "waiting");
      setText(left.map(({ line }) => line.source).join("\n"));
    });
  };
  return (
    <form
      class={`card ${css.addAccounts}`}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      aria-labelledby="add-title"
    >
      <header>
        <h2 id="add-title">Add accounts</h2>
        <button type="button" class="plain small" onClick={onClose}>
          Close
        </button>
      </header>
      <div class={css.addColumns}>
        <div class={css.addInput}>
          <label for="accounts-to-add">Usernames or profile links, one per line</label>
          <textarea
            id="accounts-to-add"
            rows={8}
            value={text}
            spellcheck={false}
            ref={input}
            readOnly={isRunning}
            placeholder={"@salt.and.tide\nhttps://www.tiktok.com/@salt.and.tide\ntiktok salt.and.tide"}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <fieldset class={css.choice}>
            <legend class="small quiet">
              {unknown > 0
                ? `${unknown} ${unknown === 1 ? "line does" : "lines do"} not say which platform:`
                : "Platform of names without a link:"}
            </legend>
            {PLATFORMS.map((name) => (
              <label key={name}>
                <input
                  type="radio"
                  name="platform-of-names"
                  checked={platform === name}
                  disabled={isRunning}
                  onChange={() => setPlatform(name)}
                />{" "}
                {PLATFORM_NAMES[name]}
              </label>
            ))}
          </fieldset>
          <CommonFields common={common} onChange={(change) => setCommon({ ...common, ...change })} />
          <ProblemNotice of={{ ...add, retry: send }} />
          <div>
            <button type="submit" class="primary" disabled={isRunning || lines.length === 0}>
              {isRunning ? "Adding…" : lines.length > 1 ? `Track ${lines.length} accounts` : "Track"}
            </button>
          </div>
        </div>
        <Results results={results} arrivals={arrivals} />
      </div>
    </form>
  );
}

function CommonFields({ common, onChange }: { common: Common; onChange: (change: Partial<Common>) => void }) {
  const { creator, category, tagName, tagValue } = common;
  const text = (label: string, name: "category" | "tagName" | "tagValue", value: string) => (
    <label class="field">
      <span class="small quiet">{label}</span>
      <input
        type="text"
        maxLength={128}
        value={value}
        onInput={(event) => onChange({ [name]: event.currentTarget.value })}
      />
    </label>
  );
  return (
    <fieldset class={css.common}>
      <legend class="small quiet">All of them get, if you like:</legend>
      <div class="field">
        <span class="small quiet">Creator</span>
        {creator ? (
          <Chip name={creator.name} action="no creator" onClick={() => onChange({ creator: null })} />
        ) : (
          <NewCreatorPicker
            label="Creator of the accounts"
            placeholder="Name"
            onPick={(creator) => onChange({ creator })}
          />
        )}
      </div>
      {text("Category", "category", category)}
      {text("Tag", "tagName", tagName)}
      {text("Value of the tag", "tagValue", tagValue)}
    </fieldset>
  );
}

const TONES = { waiting: "", added: "ok", exists: "", failed: "bad" } as const;

/** What became of an added account. */
function arrivalText(account: Account | undefined): string {
  if (!account || account.tracking.status === "pending") return "Added, waiting for the first read";
  return reasonOf(account.tracking) ?? `Added, ${plural(account.total_post_count, "post")}`;
}

function Results({ results, arrivals }: { results: readonly Result[]; arrivals: Arrivals }) {
  const summary = [
    [count(results, "added"), "added"],
    [count(results, "exists"), "already tracked"],
    [count(results, "failed"), "to correct"],
    [count(results, "waiting"), "waiting"],
  ] as const;
  return (
    <div class={css.addResults}>
      <p role="status" class="small">
        {results.length === 0 ? (
          <span class="quiet">Each line’s result appears here. The first posts follow within a minute.</span>
        ) : (
          <b>
            {summary
              .filter(([number]) => number > 0)
              .map(([number, name]) => `${number} ${name}`)
              .join(" · ")}
          </b>
        )}
      </p>
      <div class={css.addList} tabIndex={0} role="region" aria-label="Results">
        <ul>
          {results.map((result) => (
            <ResultLine
              key={`${result.line.platform} ${result.line.text}`}
              result={result}
              account={result.id ? arrivals.get(result.id) : undefined}
            />
          ))}
        </ul>
      </div>
    </div>
  );
}

function ResultLine({
  result: {
    line: { text, platform },
    outcome,
    message,
    id,
  },
  account,
}: {
  result: Result;
  account: Account | undefined;
}) {
  const isStopped = account && ["failing", "unavailable", "unsupported"].includes(account.tracking.status);
  return (
    <li>
      <span class={css.addLine}>
        {id ? (
          <a class="link" href={linkTo(`/accounts/${id}`)}>
            {text}
          </a>
        ) : (
          text
        )}{" "}
        <small class="quiet small">{PLATFORM_NAMES[platform]}</small>
      </span>
      <span class={`status ${isStopped ? "bad" : TONES[outcome]}`}>
        {id ? arrivalText(account) : message}
      </span>
    </li>
  );
}
