// Filters of the accounts' table, all in the address.

import { api, unwrap } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { fetchCategories } from "../loads/tracking.ts";
import { navigate, setFilters, view } from "../state/view.ts";
import { STATUSES } from "../tracking-reason.ts";
import { statusName } from "./parts.tsx";
import { CreatorPicker } from "./record-pickers.tsx";
import { TextFilter } from "./text-filter.tsx";

const FILTERS = ["q", "status", "category", "creator_id", "linked"] as const;

function clearFilters(): void {
  const filters = new Map(
    [...view.value.filters].filter(([name]) => !FILTERS.some((filter) => filter === name)),
  );
  navigate({ filters, platform: null }, { replace: true });
}

export function isFiltered(): boolean {
  return view.value.platform !== null || FILTERS.some((name) => view.value.filters.has(name));
}

export function AccountFilters() {
  const { filters } = view.value;
  const categories = useResource(fetchCategories, []);
  const value = (name: (typeof FILTERS)[number]) => filters.get(name) ?? "";
  return (
    <div class="controls filter-bar">
      <TextFilter label="Username contains" placeholder="Username" />
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
      {(value("category") || (categories.data?.data.length ?? 0) > 0) && (
        <select
          aria-label="Category"
          value={value("category")}
          onChange={(event) => setFilters({ category: event.currentTarget.value })}
        >
          <option value="">Any category</option>
          {categories.data?.data.map(({ category, accounts }) => (
            <option key={category} value={category}>
              {category} ({accounts})
            </option>
          ))}
        </select>
      )}
      {value("creator_id") ? (
        <CreatorFilter id={value("creator_id")} />
      ) : (
        <CreatorPicker
          label="Creator"
          placeholder="Any creator"
          onPick={(id) => setFilters({ creator_id: id })}
        />
      )}
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
    </div>
  );
}

/** The creator that is filtered by, and a button that ends this. */
function CreatorFilter({ id }: { id: string }) {
  const creator = useResource(
    (signal) => unwrap(api.GET("/creators/{creator_id}", { params: { path: { creator_id: id } }, signal })),
    [id],
  );
  const name = creator.data?.data.name ?? (creator.problem ? "unknown creator" : "…");
  return (
    <button type="button" class="chip" onClick={() => setFilters({ creator_id: "" })}>
      <span dir="auto">{name}</span>
      <span aria-hidden="true">×</span>
      <span class="hidden-text">, any creator instead</span>
    </button>
  );
}
