// What a person edits of a collection: texts as typed, and the bodies and previews that they make.

import type { components } from "../../api/schema.d.ts";
import type { Rule } from "../../components/rule-text.ts";
import type { Collection } from "../../loads/collections.ts";
import type { Platform } from "../../state/view.ts";

type Payout = components["schemas"]["CollectionPayout"];

export interface RuleDraft {
  hashtags: string;
  q: string;
  platform: Platform | "";
  account_ids: readonly string[];
  creator_ids: readonly string[];
  category: string;
  tags: readonly (readonly [string, string])[];
  media_types: readonly string[];
  kind: NonNullable<Rule["kind"]> | "";
  posted_after: string;
  posted_before: string;
  min_views: string;
}

export interface PayoutDraft {
  currency: string;
  count: Payout["count"];
  per_thousand_views: string;
  minimum_views: string;
  maximum_per_video: string;
  bonuses: readonly { views: string; amount: string }[];
}

export interface Draft {
  name: string;
  description: string;
  /** Otherwise posts are chosen by hand only. */
  hasRule: boolean;
  rule: RuleDraft;
  isPaid: boolean;
  payout: PayoutDraft;
}

const numberText = (value: number | null | undefined) => (value ?? "").toString();

function ruleDraft(rule: Rule): RuleDraft {
  return {
    hashtags: (rule.hashtags ?? []).map((hashtag) => `#${hashtag}`).join(" "),
    q: rule.q ?? "",
    platform: rule.platform ?? "",
    account_ids: rule.account_ids ?? [],
    creator_ids: rule.creator_ids ?? [],
    category: rule.category ?? "",
    tags: Object.entries(rule.metadata ?? {}),
    media_types: rule.media_types ?? [],
    kind: rule.kind ?? "",
    posted_after: String(rule.posted_after ?? ""),
    posted_before: String(rule.posted_before ?? ""),
    min_views: numberText(rule.min_views),
  };
}

function payoutDraft(payout: Payout | null): PayoutDraft {
  return {
    currency: payout?.currency ?? "",
    count: payout?.count ?? "lifetime",
    per_thousand_views: payout?.per_thousand_views ?? "",
    minimum_views: numberText(payout?.minimum_views),
    maximum_per_video: payout?.maximum_per_video ?? "",
    bonuses: (payout?.bonuses ?? []).map(({ views, amount }) => ({ views: String(views), amount })),
  };
}

/** Of a new collection without one. */
export function draftOf(collection: Collection | undefined): Draft {
  return {
    name: collection?.name ?? "",
    description: collection?.description ?? "",
    hasRule: collection?.rule !== null,
    rule: ruleDraft(collection?.rule ?? {}),
    isPaid: Boolean(collection?.payout),
    payout: payoutDraft(collection?.payout ?? null),
  };
}

/** Those that are typed, apart by spaces or commas. */
export function hashtagsOf(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter((hashtag) => hashtag.replace(/^[#＃]/, "") !== ""))];
}

/** The conditions that are given. */
export function ruleOf(draft: RuleDraft): Rule {
  const { hashtags, tags, kind, min_views, platform } = draft;
  const [found, q, category] = [hashtagsOf(hashtags), draft.q.trim(), draft.category.trim()];
  return {
    ...(found.length > 0 ? { hashtags: found } : {}),
    ...(q ? { q } : {}),
    ...(platform ? { platform } : {}),
    ...(draft.account_ids.length > 0 ? { account_ids: [...draft.account_ids] } : {}),
    ...(draft.creator_ids.length > 0 ? { creator_ids: [...draft.creator_ids] } : {}),
    ...(category ? { category } : {}),
    ...(tags.length > 0 ? { metadata: Object.fromEntries(tags) } : {}),
    ...(draft.media_types.length > 0 ? { media_types: [...draft.media_types] } : {}),
    ...(kind ? { kind } : {}),
    ...(draft.posted_after ? { posted_after: draft.posted_after } : {}),
    ...(draft.posted_before ? { posted_before: draft.posted_before } : {}),
    ...(min_views ? { min_views: Number(min_views) } : {}),
  };
}

function payoutOf(draft: PayoutDraft): Payout {
  return {
    currency: draft.currency.trim().toUpperCase(),
    count: draft.count,
    per_thousand_views: draft.per_thousand_views.trim() || null,
    minimum_views: draft.minimum_views === "" ? null : Number(draft.minimum_views),
    maximum_per_video: draft.maximum_per_video.trim() || null,
    bonuses: draft.bonuses.map(({ views, amount }) => ({ views: Number(views), amount: amount.trim() })),
  };
}

/** What is sent to store it. */
export function bodyOf(draft: Draft) {
  return {
    name: draft.name.trim(),
    description: draft.description.trim() || null,
    rule: draft.hasRule ? ruleOf(draft.rule) : null,
    payout: draft.isPaid ? payoutOf(draft.payout) : null,
  };
}
