// The terms by which posts are paid. They only calculate.

import * as css from "../editor.module.css";
import type { PayoutDraft } from "./draft.ts";
import { Field, SelectField, TextField } from "./fields.tsx";

const MAX_BONUSES = 20;

interface Props {
  payout: PayoutDraft;
  change: (change: Partial<PayoutDraft>) => void;
}

export function PayoutFields({ payout, change }: Props) {
  return (
    <>
      <div class={css.fields}>
        <TextField
          label="Currency"
          path="payout.currency"
          hint="Its code, such as EUR"
          isRequired
          maxLength={3}
          value={payout.currency}
          onChange={(currency) => change({ currency: currency.toUpperCase() })}
        />
        <SelectField
          label="Views that count"
          path="payout.count"
          value={payout.count}
          options={[
            ["lifetime", "All of a post so far"],
            ["window", "Those of the period"],
          ]}
          onChange={(count) => change({ count })}
        />
        <TextField
          label="For each thousand views"
          path="payout.per_thousand_views"
          placeholder="4.50"
          value={payout.per_thousand_views}
          onChange={(per_thousand_views) => change({ per_thousand_views })}
        />
        <TextField
          label="Paid from views"
          path="payout.minimum_views"
          hint="Posts with fewer earn nothing"
          type="number"
          value={payout.minimum_views}
          onChange={(minimum_views) => change({ minimum_views })}
        />
        <TextField
          label="At most for a post"
          path="payout.maximum_per_video"
          placeholder="500"
          value={payout.maximum_per_video}
          onChange={(maximum_per_video) => change({ maximum_per_video })}
        />
      </div>
      <Field label="Bonuses" path="payout.bonuses" hint="All that a post has reached are added." isGroup>
        {() => <Bonuses bonuses={payout.bonuses} onChange={(bonuses) => change({ bonuses })} />}
      </Field>
    </>
  );
}

interface BonusesProps {
  bonuses: PayoutDraft["bonuses"];
  onChange: (bonuses: PayoutDraft["bonuses"]) => void;
}

function Bonuses({ bonuses, onChange }: BonusesProps) {
  return (
    <div class={css.bonuses}>
      {bonuses.map((bonus, position) => (
        <div key={position} class={css.bonus}>
          <input
            type="number"
            inputMode="numeric"
            min={1}
            step={1}
            required
            placeholder="Views"
            aria-label={`Views of bonus ${position + 1}`}
            value={bonus.views}
            onInput={({ currentTarget: { value } }) =>
              onChange(bonuses.with(position, { ...bonus, views: value }))
            }
          />
          <input
            type="text"
            inputMode="decimal"
            required
            placeholder="Amount"
            aria-label={`Amount of bonus ${position + 1}`}
            value={bonus.amount}
            onInput={({ currentTarget: { value } }) =>
              onChange(bonuses.with(position, { ...bonus, amount: value }))
            }
          />
          <button
            type="button"
            class="plain"
            aria-label={`Remove bonus ${position + 1}`}
            onClick={() => onChange(bonuses.toSpliced(position, 1))}
          >
            ×
          </button>
        </div>
      ))}
      {bonuses.length < MAX_BONUSES && (
        <button type="button" class="plain" onClick={() => onChange([...bonuses, { views: "", amount: "" }])}>
          + Add a bonus
        </button>
      )}
    </div>
  );
}
