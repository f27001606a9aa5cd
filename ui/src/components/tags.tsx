// Your own tags of a record: a name and a value each.

import * as css from "./settings.module.css";

interface Props {
  tags: readonly (readonly [string, string])[];
  onChange: (tags: readonly (readonly [string, string])[]) => void;
}

const MAX_TAGS = 20;
const MAX_LENGTH = 255;

export function Tags({ tags, onChange }: Props) {
  const set = (position: number, tag: readonly [string, string]) => onChange(tags.with(position, tag));
  return (
    <fieldset class={css.tags}>
      <legend>Tags</legend>
      {tags.map(([name, value], position) => (
        <div key={position} class={css.tag}>
          <input
            type="text"
            aria-label={`Name of tag ${position + 1}`}
            placeholder="Name"
            required
            maxLength={MAX_LENGTH}
            value={name}
            onInput={(event) => set(position, [event.currentTarget.value, value])}
          />
          <input
            type="text"
            aria-label={`Value of tag ${position + 1}`}
            placeholder="Value"
            maxLength={MAX_LENGTH}
            value={value}
            onInput={(event) => set(position, [name, event.currentTarget.value])}
          />
          <button
            type="button"
            class="plain"
            aria-label={`Remove tag ${name || position + 1}`}
            onClick={() => onChange(tags.toSpliced(position, 1))}
          >
            ×
          </button>
        </div>
      ))}
      {tags.length < MAX_TAGS && (
        <button type="button" class="plain" onClick={() => onChange([...tags, ["", ""]])}>
          + Add a tag
        </button>
      )}
    </fieldset>
  );
}
