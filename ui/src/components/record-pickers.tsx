// Fields that find creators and accounts.

import { api, unwrap } from "../api/client.ts";
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

async function findUnlinkedAccounts(text: string, signal: AbortSignal): Promise<Option[]> {
  const query = {
    limit: MAX_OPTIONS,
    linked: false,
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

interface Props {
  label: string;
  placeholder: string;
  onPick: (id: string, name: string) => void;
  disabled?: boolean;
}

export function CreatorPicker({ onPick, ...field }: Props) {
  return <Picker {...field} find={findCreators} onPick={({ id, name }) => id && onPick(id, name)} />;
}

/** Creates the creator that was typed if there is none of this name. */
export function NewCreatorPicker({
  onPick,
  ...field
}: Omit<Props, "onPick"> & { onPick: (creator: Option) => void }) {
  return <Picker {...field} find={findCreators} onPick={onPick} canCreate />;
}

export function UnlinkedAccountPicker({ onPick, ...field }: Props) {
  return <Picker {...field} find={findUnlinkedAccounts} onPick={({ id, name }) => id && onPick(id, name)} />;
}

/** The id of a picked creator, which is created if it is new. */
export async function resolveCreator({ id, name }: Option, signal: AbortSignal): Promise<string> {
  return id ?? (await unwrap(api.POST("/creators", { body: { name }, signal }))).data.id;
}
