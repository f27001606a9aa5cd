// Fields that find creators and accounts.

import { api, unwrap } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { fetchCollection } from "../loads/collections.ts";
import { fetchAccount, fetchCreator } from "../loads/records.ts";
import { setFilters, view } from "../state/view.ts";
import { PLATFORM_NAMES } from "./controls.tsx";
import { type Option, Picker } from "./picker.tsx";

const MAX_OPTIONS = 8;

async function findCreators(text: string, signal: AbortSignal): Promise<Option[]> {
  const query = {
    limit: MAX_OPTIONS,
    order_by: "name" as const,
    order_direction: "asc" as const,
    ...(text ? { q: text } : {}),
  };
  const { data } = await unwrap(api.GET("/creators", { params: { query }, signal }));
  return data.map(({ id, name, accounts_summary: { total } }) => ({
    id,
    name,
    detail: `${total} ${total === 1 ? "account" : "accounts"}`,
  }));
}

async function findAccounts(
  text: string,
  filter: { linked?: boolean },
  signal: AbortSignal,
): Promise<Option[]> {
  const query = {
    limit: MAX_OPTIONS,
    ...filter,
    order_by: "username" as const,
    order_direction: "asc" as const,
    ...(text ? { q: text.replace(/^@/, "") } : {}),
  };
  const { data } = await unwrap(api.GET("/accounts", { params: { query }, signal }));
  return data.map(({ id, username, platform, profile_pic_url }) => ({
    id,
    name: `@${username}`,
    detail: PLATFORM_NAMES[platform],
    picture: profile_pic_url,
  }));
}

export async function findCollections(text: string, signal: AbortSignal): Promise<Option[]> {
  const query = { limit: MAX_OPTIONS, sort: "name" as const, ...(text ? { q: text } : {}) };
  const { data } = await unwrap(api.GET("/collections", { params: { query }, signal }));
  return data.map(({ id, name }) => ({ id, name }));
}

interface Props {
  label: string;
  placeholder: string;
  disabled?: boolean;
}

/** Creates the creator that was typed if there is none of this name. */
export function NewCreatorPicker(props: Props & { onPick: (creator: Option) => void }) {
  return <Picker {...props} find={findCreators} created="New creator" />;
}

export function UnlinkedAccountPicker({ onPick, ...field }: Props & { onPick: (id: string) => void }) {
  return (
    <Picker
      {...field}
      find={(text, signal) => findAccounts(text, { linked: false }, signal)}
      onPick={({ id }) => id && onPick(id)}
    />
  );
}

/** The id of a picked creator, which is created if it is new. */
export async function resolveCreator({ id, name }: Option, signal: AbortSignal): Promise<string> {
  return id ?? (await unwrap(api.POST("/creators", { body: { name }, signal }))).data.id;
}

interface RecordFilterProps extends Props {
  /** Of the filter in the address. */
  name: "account_id" | "creator_id" | "collection_id";
}

const FINDERS = {
  account_id: (text: string, signal: AbortSignal) => findAccounts(text, {}, signal),
  creator_id: findCreators,
  collection_id: findCollections,
};
const NAMES = {
  account_id: async (id: string, signal: AbortSignal) => `@${(await fetchAccount(id, signal)).data.username}`,
  creator_id: async (id: string, signal: AbortSignal) => (await fetchCreator(id, signal)).data.name,
  collection_id: async (id: string, signal: AbortSignal) => (await fetchCollection(id, signal)).name,
};

/** Filters by a record: a field that finds it, and once it is chosen a button that removes it. */
export function RecordFilter({ name, ...field }: RecordFilterProps) {
  const id = view.value.filters.get(name);
  if (!id) return <Picker {...field} find={FINDERS[name]} onPick={({ id }) => setFilters({ [name]: id })} />;
  // A key for each record: the name of another must not stay while this one's loads.
  return <RecordChip key={id} name={name} id={id} onRemove={() => setFilters({ [name]: null })} />;
}

function RecordChip({
  name,
  id,
  onRemove,
}: Pick<RecordFilterProps, "name"> & { id: string; onRemove: () => void }) {
  const record = useResource((signal) => NAMES[name](id, signal), [id]);
  return (
    <Chip
      name={record.data ?? (record.problem ? "Unknown" : "…")}
      action="remove this filter"
      onClick={onRemove}
    />
  );
}

interface RecordsProps extends RecordFilterProps {
  ids: readonly string[];
  onChange: (ids: readonly string[]) => void;
}

/** Chosen records whose names are shown; of more, how many. */
const MAX_NAMED = 6;

/** Chooses several records. */
export function RecordsField({ name, ids, onChange, ...field }: RecordsProps) {
  const [named, others] = [ids.slice(0, MAX_NAMED), ids.slice(MAX_NAMED)];
  return (
    <>
      <Picker
        {...field}
        find={FINDERS[name]}
        onPick={({ id }) => id && !ids.includes(id) && onChange([...ids, id])}
      />
      {ids.length > 0 && (
        <div class="controls">
          {named.map((id) => (
            <RecordChip
              key={id}
              name={name}
              id={id}
              onRemove={() => onChange(ids.filter((other) => other !== id))}
            />
          ))}
          {others.length > 0 && (
            <Chip name={`${others.length} more`} action="remove these" onClick={() => onChange(named)} />
          )}
        </div>
      )}
    </>
  );
}

/** Something chosen, and a button that undoes this. */
export function Chip({ name, action, onClick }: { name: string; action: string; onClick: () => void }) {
  return (
    <button type="button" class="chip" onClick={onClick}>
      <span dir="auto">{name}</span>
      <span aria-hidden="true">×</span>
      <span class="hidden-text">: {action}</span>
    </button>
  );
}
