// Filters that stay when a person goes to another page: by creator, category and tags of the accounts.

import type { ComponentChildren } from "preact";
import { fetchTags } from "../loads/tags.ts";

import { fetchCategories } from "../loads/tracking.ts";
import { MAX_TAGS, setFilters, TAG_PREFIX, tagFilters, view } from "../state/view.ts";
import { FilterBar } from "./filter-bar.tsx";
import { type Option, Picker } from "./picker.tsx";
import { Chip, RecordFilter } from "./record-pickers.tsx";

export async function findCategories(text: string, signal: AbortSignal) {
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

/** A name and a value, as they are typed and shown. */
const TAG = /^([^:=]+)[:=]\s*(.*)$/;

/** Tags of accounts, and the one that is typed. */
export async function findTags(text: string, signal: AbortSignal): Promise<Option[]> {
  const found = (await fetchTags(signal)).map(
    ({ name, value, accounts }): Option => ({
      id: `${TAG_PREFIX}${name}=${value}`,
      name: `${name}: ${value}`,
      detail: String(accounts),
    }),
  );
  const matching = found.filter(({ name }) => name.toLowerCase().includes(text.toLowerCase()));
  const [, name = "", value = ""] = TAG.exec(text) ?? [];
  const typed = `${TAG_PREFIX}${name.trim()}=${value}`;
  const isNew = name !== "" && !found.some(({ id }) => id === typed);
  return isNew ? [...matching, { id: typed, name: `${name.trim()}: ${value}` }] : matching;
}

/** The name, without the prefix, and the value of a tag that was found. */
export function tagOf({ id }: Option): [name: string, value: string] {
  const text = id?.slice(TAG_PREFIX.length) ?? "";
  const end = text.indexOf("=");
  return [text.slice(0, end), text.slice(end + 1)];
}

function chooseTag(option: Option): void {
  const [name, value] = tagOf(option);
  if (name) setFilters({ [TAG_PREFIX + name]: value });
}

/** A button that removes each chosen tag, and a field that finds another. */
export function TagFilter({ placeholder }: { placeholder: string }) {
  const tags = tagFilters(view.value);
  return (
    <>
      {tags.map(([name, value]) => (
        <Chip
          key={name}
          name={`${name.slice(TAG_PREFIX.length)}: ${value}`}
          action="remove this filter"
          onClick={() => setFilters({ [name]: null })}
        />
      ))}
      {tags.length < MAX_TAGS && (
        <Picker label="Tag" placeholder={placeholder} find={findTags} onPick={chooseTag} />
      )}
    </>
  );
}

interface Props {
  /** Whether the page may be of one creator. */
  hasCreator?: boolean;
  /** Whether it may be of the posts of a collection. */
  hasCollection?: boolean;
  /** Filters that only this page has: the field before the others, and what is behind them, of these names. */
  first?: ComponentChildren;
  names?: readonly string[];
  children?: ComponentChildren;
}

const SCOPE = ["creator_id", "category", "collection_id"];

export function ScopeFilters({
  hasCreator = true,
  hasCollection = false,
  first,
  names = [],
  children,
}: Props) {
  const own = SCOPE.filter((name) => hasCollection || name !== "collection_id");
  return (
    <FilterBar names={[...own, ...names]} first={first}>
      {hasCreator && <RecordFilter name="creator_id" label="Creator" placeholder="Any creator" />}
      <CategoryFilter placeholder="Any category" />
      <TagFilter placeholder="Any tag" />
      {hasCollection && <RecordFilter name="collection_id" label="Collection" placeholder="Any collection" />}
      {children}
    </FilterBar>
  );
}
