// The conditions of a rule.

import { useResource } from "../../api/resource.ts";
import { PLATFORM_NAMES } from "../../components/controls.tsx";
import { RecordsField } from "../../components/record-pickers.tsx";
import { Tags } from "../../components/tags.tsx";
import { fetchCategories } from "../../loads/tracking.ts";
import { PLATFORMS, type Platform } from "../../state/view.ts";
import * as css from "../editor.module.css";
import type { RuleDraft } from "./draft.ts";
import { Field, FieldProblem, SelectField, TextField } from "./fields.tsx";

/** Media types of the sources that ship with Tidemark; others that the rule has are offered as well. */
const MEDIA_TYPES = ["reel", "video", "image", "carousel"];
const ANY_PLATFORM = [
  ["", "All platforms"],
  ...PLATFORMS.map((platform) => [platform, PLATFORM_NAMES[platform]]),
] as [Platform | "", string][];

interface Props {
  rule: RuleDraft;
  change: (change: Partial<RuleDraft>) => void;
}

export function RuleFields({ rule, change }: Props) {
  const categories = useResource(fetchCategories, []);
  const names = categories.data?.data.map(({ category }) => category) ?? [];
  const offered = [...new Set([...names, ...(rule.category ? [rule.category] : [])])];
  const types = [...new Set([...MEDIA_TYPES, ...rule.media_types])];
  return (
    <>
      <p class="quiet small">
        A post is in the collection if all conditions hold. New posts join by themselves.
      </p>
      <div class={css.fields}>
        <TextField
          label="Hashtags"
          path="rule.hashtags"
          hint="Any of them, in the caption"
          placeholder="#summer #acme"
          maxLength={4_000}
          value={rule.hashtags}
          onChange={(hashtags) => change({ hashtags })}
        />
        <TextField
          label="Caption contains"
          path="rule.q"
          maxLength={128}
          value={rule.q}
          onChange={(q) => change({ q })}
        />
        <Field label="Creators" path="rule.creator_ids" isGroup>
          {() => (
            <RecordsField
              name="creator_id"
              label="Add a creator"
              placeholder="Any creator"
              ids={rule.creator_ids}
              onChange={(creator_ids) => change({ creator_ids })}
            />
          )}
        </Field>
        <Field label="Accounts" path="rule.account_ids" isGroup>
          {() => (
            <RecordsField
              name="account_id"
              label="Add an account"
              placeholder="Any account"
              ids={rule.account_ids}
              onChange={(account_ids) => change({ account_ids })}
            />
          )}
        </Field>
        <TextField
          label="Posted from (UTC)"
          path="rule.posted_after"
          type="date"
          value={rule.posted_after.slice(0, 10)}
          onChange={(posted_after) => change({ posted_after })}
        />
        <TextField
          label="Posted until (UTC)"
          path="rule.posted_before"
          type="date"
          value={rule.posted_before.slice(0, 10)}
          onChange={(posted_before) => change({ posted_before })}
        />
        <SelectField
          label="Platform"
          path="rule.platform"
          value={rule.platform}
          options={ANY_PLATFORM}
          onChange={(platform) => change({ platform })}
        />
        <TextField
          label="Views in all, at least"
          path="rule.min_views"
          type="number"
          value={rule.min_views}
          onChange={(min_views) => change({ min_views })}
        />
        <SelectField
          label="Category of the account"
          path="rule.category"
          value={rule.category}
          options={[["", "Any category"], ...offered.map((name) => [name, name] as [string, string])]}
          onChange={(category) => change({ category })}
        />
        <SelectField
          label="Found or added"
          path="rule.kind"
          value={rule.kind}
          options={[
            ["", "Any way"],
            ["discovered", "Found on an account"],
            ["tracked", "Tracked alone"],
          ]}
          onChange={(kind) => change({ kind })}
        />
      </div>
      <Field label="Types" path="rule.media_types" isGroup>
        {() => (
          <div class={css.checks}>
            {types.map((type) => (
              <label key={type} class="check">
                <input
                  type="checkbox"
                  checked={rule.media_types.includes(type)}
                  onChange={({ currentTarget: { checked } }) =>
                    change({
                      media_types: checked
                        ? [...rule.media_types, type]
                        : rule.media_types.filter((other) => other !== type),
                    })
                  }
                />
                {type}
              </label>
            ))}
          </div>
        )}
      </Field>
      <Tags tags={rule.tags} onChange={(tags) => change({ tags })} />
      <FieldProblem path="rule.metadata" />
    </>
  );
}
