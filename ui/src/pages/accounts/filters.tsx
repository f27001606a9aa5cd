// Filters of the accounts' table, all in the address.

import { FilterBar } from "../../components/filter-bar.tsx";
import { statusName } from "../../components/parts.tsx";
import { RecordFilter } from "../../components/record-pickers.tsx";
import { CategoryFilter, TagFilter } from "../../components/scope-filters.tsx";
import { TextFilter } from "../../components/text-filter.tsx";
import { navigate, setFilters, tagFilters, view } from "../../state/view.ts";
import { FAILURES, SHORT_FAILURE_NAMES, STATUSES } from "../../tracking-reason.ts";

const FILTERS: readonly string[] = ["q", "status", "failure", "category", "creator_id", "linked"];

function clearFilters(): void {
  const cleared = [...FILTERS, ...tagFilters(view.value).map(([name]) => name)];
  const filters = new Map([...view.value.filters].filter(([name]) => !cleared.includes(name)));
  navigate({ filters, platform: null });
}

export function isFiltered(): boolean {
  const current = view.value;
  return (
    current.platform !== null ||
    tagFilters(current).length > 0 ||
    FILTERS.some((name) => current.filters.has(name))
  );
}

export function AccountFilters() {
  const { filters } = view.value;
  const value = (name: string) => filters.get(name) ?? "";
  return (
    <FilterBar
      names={FILTERS.filter((name) => name !== "q")}
      first={<TextFilter label="Username contains" placeholder="Username" />}
    >
      <select
        aria-label="Status"
        value={value("status")}
        onChange={(event) => setFilters({ status: event.currentTarget.value })}
      >
        <option value="">Any status</option>
        {STATUSES.map((status) => (
          <option key={status} value={status}>
            {statusName(status)}
          </option>
        ))}
      </select>
      {(value("failure") || value("status") === "failing") && (
        <select
          aria-label="Why it fails"
          value={value("failure")}
          onChange={(event) => setFilters({ failure: event.currentTarget.value })}
        >
          <option value="">Any failure</option>
          {FAILURES.map((reason) => (
            <option key={reason} value={reason}>
              {SHORT_FAILURE_NAMES[reason]}
            </option>
          ))}
        </select>
      )}
      <CategoryFilter placeholder="Any category" />
      <RecordFilter name="creator_id" label="Creator" placeholder="Any creator" />
      <TagFilter placeholder="Any tag" />
      <select
        aria-label="Linked to a creator"
        value={value("linked")}
        onChange={(event) => setFilters({ linked: event.currentTarget.value })}
      >
        <option value="">Linked or not</option>
        <option value="true">Linked to a creator</option>
        <option value="false">Without a creator</option>
      </select>
      {isFiltered() && (
        <button type="button" class="plain" onClick={clearFilters}>
          Clear filters
        </button>
      )}
    </FilterBar>
  );
}
