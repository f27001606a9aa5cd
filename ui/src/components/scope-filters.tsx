// Filters that stay when a person goes to another page: by creator and by category of the accounts.

import { fetchCategories } from "../loads/tracking.ts";
import { setFilters, view } from "../state/view.ts";
import { Picker } from "./picker.tsx";
import { Chip, RecordFilter } from "./record-pickers.tsx";

async function findCategories(text: string, signal: AbortSignal) {
  const { data } = await fetchCategories(signal);
  return data
    .filter(({ category }) => category.toLowerCase().includes(text.toLowerCase()))
    .map(({ category, accounts }) => ({ id: category, name: category, detail: String(accounts) }));
}

/** A field that finds a category, and once it is chosen a button that removes it. */
export function CategoryFilter({ placeholder }: { placeholder: string }) {
  const category = view.value.filters.get("category");
  if (category)
    return (
      <Chip name={category} action="remove this filter" onClick={() => setFilters({ category: null })} />
    );
  return (
    <Picker
      label="Category"
      placeholder={placeholder}
      find={findCategories}
      onPick={({ id }) => setFilters({ category: id })}
    />
  );
}

export function ScopeFilters() {
  return (
    <div class="controls filter-bar">
      <RecordFilter name="creator_id" label="Creator" placeholder="Any creator" />
      <CategoryFilter placeholder="Any category" />
    </div>
  );
}
