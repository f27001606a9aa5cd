// What a file does not say, and a person knows.

import { PLATFORM_NAMES } from "../../components/controls.tsx";
import type { FileOptions } from "../../loads/imports.ts";
import { PLATFORMS, type Platform } from "../../state/view.ts";
import * as css from "../imports.module.css";

const ZONES = Intl.supportedValuesOf("timeZone");

interface Props {
  options: FileOptions;
  isDisabled: boolean;
  onChange: (change: Partial<FileOptions>) => void;
  /** Null while there is no file. */
  onPreview: (() => void) | null;
}

export function OptionFields({ options, isDisabled, onChange, onPreview }: Props) {
  return (
    <details class={css.options}>
      <summary>What the file does not say</summary>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onPreview?.();
        }}
      >
        <fieldset disabled={isDisabled}>
          <legend class="hidden-text">What the file does not say</legend>
          <label>
            Platform
            <select
              value={options.platform ?? ""}
              onChange={(event) =>
                onChange({ platform: (event.currentTarget.value || null) as Platform | null })
              }
            >
              <option value="">as in the file</option>
              {PLATFORMS.map((platform) => (
                <option key={platform} value={platform}>
                  {PLATFORM_NAMES[platform]}
                </option>
              ))}
            </select>
          </label>
          <label>
            Account
            <input
              type="text"
              placeholder="as in the file"
              spellcheck={false}
              value={options.username}
              onInput={(event) => onChange({ username: event.currentTarget.value })}
            />
          </label>
          <label>
            Day of the counters
            <input
              type="date"
              value={options.observedAt}
              onInput={(event) => onChange({ observedAt: event.currentTarget.value })}
            />
          </label>
          <label>
            Time zone
            <input
              type="text"
              list="time-zones"
              placeholder="as in the file, or UTC"
              spellcheck={false}
              value={options.timeZone}
              onInput={(event) => onChange({ timeZone: event.currentTarget.value })}
            />
          </label>
          <datalist id="time-zones">
            {ZONES.map((zone) => (
              <option key={zone} value={zone} />
            ))}
          </datalist>
          <label class={css.check}>
            <input
              type="checkbox"
              checked={options.dayFirst}
              onChange={(event) => onChange({ dayFirst: event.currentTarget.checked })}
            />
            03/04/2026 is 3 April
          </label>
          <label class={css.check}>
            <input
              type="checkbox"
              checked={options.track}
              onChange={(event) => onChange({ track: event.currentTarget.checked })}
            />
            Track new accounts from now on
          </label>
          {onPreview && <button type="submit">Look again</button>}
        </fieldset>
      </form>
    </details>
  );
}
