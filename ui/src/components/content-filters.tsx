// The filters of the content page. All of them are in the address, under the names that the API has for them.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { api, unwrap } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { setFilters, view } from "../state/view.ts";
import { PLATFORM_NAMES } from "./controls.tsx";
import { useDebounced } from "./debounce.ts";

const KINDS = { discovered: "Found on an account", tracked: "Tracked alone" } as const;
/** Media types of the sources that ship with Tidemark; another one in the address is offered as well. */
const MEDIA_TYPES = ["reel", "video", "image", "carousel"];
const STATES = {
  "is_unavailable=false": "On the platform",
  "is_unavailable=true": "No longer there",
  "is_active=false": "Tracking paused",
} as const;
const NAMES = [
  "account_id",
  "creator_id",
  "kind",
  "media_type",
  "posted_after",
  "posted_before",
  "min_views",
  "is_active",
  "is_unavailable",
] as const;

export function ContentFilters() {
  const { filters } = view.value;
  const [isOpen, setOpen] = useState(NAMES.some((name) => filters.has(name)));
  const count = NAMES.filter((name) => filters.has(name)).length;
  const value = (name: string) => filters.get(name) ?? "";
  const state = Object.keys(STATES).find((key) => value(key.split("=")[0] ?? "") === key.split("=")[1]) ?? "";
  const setState = (key: string) => {
    const [name = "", flag = ""] = key.split("=");
    setFilters({ is_active: null, is_unavailable: null, ...(name ? { [name]: flag } : {}) });
  };
  const types = [...new Set([...MEDIA_TYPES, ...(filters.has("media_type") ? [value("media_type")] : [])])];
  return (
    <details class="filters" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="button">Filters{count > 0 && <> · {count}</>}</summary>
      <div class="card filter-fields">
        <RecordFilter
          label="Account"
          name="account_id"
          placeholder="Username"
          find={findAccounts}
          nameOf={accountName}
        />
        <RecordFilter
          label="Creator"
          name="creator_id"
          placeholder="Name"
          find={findCreators}
          nameOf={creatorName}
        />
        <Field label="Found or added">
          <select value={value("kind")} onChange={(event) => setFilters({ kind: event.currentTarget.value })}>
            <option value="">Any way</option>
            {Object.entries(KINDS).map(([kind, text]) => (
              <option key={kind} value={kind}>
                {text}
              </option>
            ))}
          </select>
        </Field>
        <Field label="Type">
          <select
            value={value("media_type")}
            onChange={(event) => setFilters({ media_type: event.currentTarget.value })}
          >
            <option value="">Any type</option>
            {types.map((type) => (
              <option key={type} value={type}>
                {type}
              </option>
            ))}
          </select>
        </Field>
        <Field label="State">
          <select value={state} onChange={(event) => setState(event.currentTarget.value)}>
            <option value="">Any state</option>
            {Object.entries(STATES).map(([key, text]) => (
              <option key={key} value={key}>
                {text}
              </option>
            ))}
          </select>
        </Field>
        <Field label="Posted from (UTC)">
          <input
            type="date"
            value={value("posted_after")}
            onChange={(event) => setFilters({ posted_after: event.currentTarget.value })}
          />
        </Field>
        <Field label="Posted until (UTC)">
          <input
            type="date"
            value={value("posted_before")}
            onChange={(event) => setFilters({ posted_before: event.currentTarget.value })}
          />
        </Field>
        <Field label="Views in all, at least">
          <input
            type="number"
            inputMode="numeric"
            min={0}
            step={1}
            value={value("min_views")}
            onChange={(event) => setFilters({ min_views: event.currentTarget.value })}
          />
        </Field>
        <button
          type="button"
          class="plain"
          disabled={count === 0}
          onClick={() => setFilters(Object.fromEntries(NAMES.map((name) => [name, null])))}
        >
          Clear filters
        </button>
      </div>
    </details>
  );
}

function Field({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is among the children
    <label class="field">
      <span class="quiet small">{label}</span>
      {children}
    </label>
  );
}

interface Hit {
  id: string;
  name: string;
}

async function findAccounts(q: string, signal: AbortSignal): Promise<Hit[]> {
  const { data } = await unwrap(api.GET("/search", { params: { query: { q, limit: 10 } }, signal }));
  return data.accounts.map(({ id, username, platform }) => ({
    id,
    name: `@${username} · ${PLATFORM_NAMES[platform]}`,
  }));
}

async function findCreators(q: string, signal: AbortSignal): Promise<Hit[]> {
  const { data } = await unwrap(api.GET("/search", { params: { query: { q, limit: 10 } }, signal }));
  return data.creators;
}

async function accountName(account_id: string, signal: AbortSignal): Promise<string> {
  return `@${(await unwrap(api.GET("/accounts/{account_id}", { params: { path: { account_id } }, signal }))).data.username}`;
}

async function creatorName(creator_id: string, signal: AbortSignal): Promise<string> {
  return (await unwrap(api.GET("/creators/{creator_id}", { params: { path: { creator_id } }, signal }))).data
    .name;
}

interface RecordFilterProps {
  label: string;
  name: "account_id" | "creator_id";
  placeholder: string;
  find: (text: string, signal: AbortSignal) => Promise<Hit[]>;
  nameOf: (id: string, signal: AbortSignal) => Promise<string>;
}

/** Chooses a record by typing a part of its name. */
function RecordFilter({ label, name, placeholder, find, nameOf }: RecordFilterProps) {
  const id = view.value.filters.get(name);
  if (id)
    return (
      <ChosenRecord
        key={id}
        id={id}
        label={label}
        nameOf={nameOf}
        remove={() => setFilters({ [name]: null })}
      />
    );
  return <RecordInput label={label} name={name} placeholder={placeholder} find={find} />;
}

function RecordInput({ label, name, placeholder, find }: Omit<RecordFilterProps, "nameOf">) {
  const [text, setText] = useState("");
  const settled = useDebounced(text.trim());
  const { data: hits } = useResource(
    (signal) => (settled ? find(settled, signal) : Promise.resolve([])),
    [settled],
  );
  const choose = (text: string) => {
    setText(text);
    const hit = hits?.find(({ name }) => name === text);
    if (hit) setFilters({ [name]: hit.id });
  };
  return (
    <Field label={label}>
      <input
        type="search"
        list={`${name}-hits`}
        autocomplete="off"
        placeholder={placeholder}
        maxLength={128}
        value={text}
        onInput={(event) => choose(event.currentTarget.value)}
      />
      <datalist id={`${name}-hits`}>
        {hits?.map((hit) => (
          <option key={hit.id} value={hit.name} />
        ))}
      </datalist>
    </Field>
  );
}

function ChosenRecord({
  id,
  label,
  nameOf,
  remove,
}: {
  id: string;
  label: string;
  nameOf: RecordFilterProps["nameOf"];
  remove: () => void;
}) {
  const { data, problem } = useResource((signal) => nameOf(id, signal), [id]);
  return (
    <div class="field">
      <span class="quiet small">{label}</span>
      <button type="button" class="chosen" title={problem?.message ?? "Remove this filter"} onClick={remove}>
        <span dir="auto">{data ?? (problem ? "Unknown" : "…")}</span> <span aria-hidden="true">×</span>
      </button>
    </div>
  );
}
