// The filters that only the content page has. All of them are in the address, under the names that the API has for them.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { RecordFilter } from "../../components/record-pickers.tsx";
import { setFilters, view } from "../../state/view.ts";
import * as css from "../content.module.css";

const KINDS = { discovered: "Found on an account", tracked: "Tracked alone" } as const;
/** Media types of the sources that ship with Tidemark; another one in the address is offered as well. */
const MEDIA_TYPES = ["reel", "video", "image", "carousel"];
const STATES = {
  "is_unavailable=false": "On the platform",
  "is_unavailable=true": "No longer there",
  "is_active=false": "Tracking paused",
} as const;
export const LISTED_FILTERS = [
  "account_id",
  "hashtag",
  "kind",
  "media_type",
  "posted_after",
  "posted_before",
  "min_views",
  "is_active",
  "is_unavailable",
] as const;

/** A filter in a sentence. */
export function filterName(name: string): string {
  return name === "q" ? "caption" : name.replace("is_", "").replaceAll("_", " ");
}

export function ContentFilters() {
  const { filters } = view.value;
  const [isOpen, setOpen] = useState(LISTED_FILTERS.some((name) => filters.has(name)));
  const count = LISTED_FILTERS.filter((name) => filters.has(name)).length;
  const value = (name: string) => filters.get(name) ?? "";
  const state = Object.keys(STATES).find((key) => value(key.split("=")[0] ?? "") === key.split("=")[1]) ?? "";
  const setState = (key: string) => {
    const [name = "", flag = ""] = key.split("=");
    setFilters({ is_active: null, is_unavailable: null, ...(name ? { [name]: flag } : {}) });
  };
  const types = [...new Set([...MEDIA_TYPES, ...(filters.has("media_type") ? [value("media_type")] : [])])];
  return (
    <details class={css.filters} open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="button">More filters{count > 0 && <> · {count}</>}</summary>
      <div class={`card ${css.filterFields}`}>
        <div class="field">
          <span class="quiet small">Account</span>
          <RecordFilter name="account_id" label="Account" placeholder="Username" />
        </div>
        <Field label="Hashtag">
          <input
            type="text"
            maxLength={255}
            value={value("hashtag")}
            onChange={(event) =>
              setFilters({ hashtag: event.currentTarget.value.trim().replace(/\s+/g, ",") })
            }
          />
        </Field>
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
          onClick={() => setFilters(Object.fromEntries(LISTED_FILTERS.map((name) => [name, null])))}
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
