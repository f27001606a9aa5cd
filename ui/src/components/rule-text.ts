// The rule of a collection in words.

import type { components } from "../api/schema.d.ts";
import { day, exact, plural } from "../format.ts";
import { PLATFORM_NAMES } from "./controls.tsx";

type Collection = components["schemas"]["Collection"];
export type Rule = components["schemas"]["CollectionRule"];

const KINDS = { discovered: "found on accounts", tracked: "tracked alone" } as const;

function listed(names: readonly string[]): string {
  return names.length > 4
    ? `${names.slice(0, 3).join(", ")} or ${names.length - 3} others`
    : names.join(" or ");
}

/** The conditions, each in a few words. */
function conditions(rule: Rule): string[] {
  const { account_ids, creator_ids, hashtags, media_types, metadata, posted_after, posted_before } = rule;
  const tags = Object.entries(metadata ?? {}).map(([name, value]) => `${name}: ${value}`);
  return [
    hashtags && listed(hashtags.map((hashtag) => `#${hashtag.replace(/^#/, "")}`)),
    rule.q && `caption has “${rule.q}”`,
    rule.platform && `on ${PLATFORM_NAMES[rule.platform]}`,
    account_ids && `of ${plural(account_ids.length, "account")}`,
    creator_ids && `of ${plural(creator_ids.length, "creator")}`,
    rule.category && `of the category ${rule.category}`,
    tags.length > 0 && `tagged ${tags.join(", ")}`,
    media_types && listed(media_types),
    rule.kind && KINDS[rule.kind],
    posted_after && `posted from ${day(String(posted_after).slice(0, 10))}`,
    posted_before && `posted until ${day(String(posted_before).slice(0, 10))}`,
    rule.min_views && `at least ${exact(rule.min_views)} views`,
  ].filter((text) => typeof text === "string" && text !== "") as string[];
}

/** Which posts the rule finds, in a line. */
export function ruleText(rule: Rule | null): string {
  return rule ? conditions(rule).join(" · ") || "every post" : "chosen by hand";
}

/** How many posts are in a collection, or kept out of it, by hand. */
export function handText({ included_count, excluded_count }: Collection): string {
  return [
    included_count > 0 && `${exact(included_count)} included by hand`,
    excluded_count > 0 && `${exact(excluded_count)} excluded by hand`,
  ]
    .filter(Boolean)
    .join(" · ");
}
