// A field that finds a record by typing and picks it.

import { useState } from "preact/hooks";

import { useResource } from "../api/resource.ts";
import { useCombobox } from "./combobox.ts";
import { useDebounced } from "./debounce.ts";
import * as css from "./picker.module.css";
import { Picture } from "./picture.tsx";

export interface Option {
  /** Null for a record that does not exist yet. */
  id: string | null;
  name: string;
  detail?: string;
  /** Of the records that have pictures. */
  picture?: string | null;
}

interface Props {
  label: string;
  placeholder: string;
  find: (text: string, signal: AbortSignal) => Promise<Option[]>;
  onPick: (option: Option) => void;
  /** Offers what was typed as a new record, which is called so. */
  created?: string;
  disabled?: boolean;
}

export function Picker({ label, placeholder, find, onPick, created, disabled = false }: Props) {
  const [input, setInput] = useState("");
  const [isOpen, setOpen] = useState(false);
  const text = input.trim();
  const settled = useDebounced(text);
  const found = useResource(
    isOpen ? async (signal) => ({ text: settled, options: await find(settled, signal) }) : null,
    [settled],
  );
  const isFound = found.data?.text === text;
  const options = isFound && found.data ? [...found.data.options] : [];
  const isNew = text && !options.some(({ name }) => name.toLowerCase() === text.toLowerCase());
  if (isFound && created && isNew) options.push({ id: null, name: text, detail: created });
  const combobox = useCombobox({
    label,
    text: input,
    onText: (text) => {
      setInput(text);
      setOpen(true);
    },
    options,
    onPick: (option) => {
      if (!option) return;
      setInput("");
      setOpen(false);
      onPick(option);
    },
    isOpen,
    setOpen,
  });
  return (
    <div class={css.picker}>
      <input
        {...combobox.input}
        placeholder={placeholder}
        disabled={disabled}
        onFocus={() => setOpen(true)}
        onClick={() => setOpen(true)}
        onBlur={() => setOpen(false)}
      />
      <ul
        id={combobox.list}
        role="listbox"
        aria-label={label}
        hidden={!isOpen}
        onPointerDown={(event) => event.preventDefault()}
      >
        {options.map((option, position) => (
          <li key={option.id ?? "new"} {...combobox.option(position)}>
            {option.id && option.picture !== undefined && (
              <Picture id={option.id} name={option.name} src={option.picture} />
            )}
            <span dir="auto">{option.name}</span>
            {option.detail && <small class="quiet small">{option.detail}</small>}
          </li>
        ))}
        {options.length === 0 && (
          <li class="quiet" role="option" aria-disabled="true" aria-selected="false">
            {found.problem?.message ?? (isFound ? "Nothing found" : "Searching…")}
          </li>
        )}
      </ul>
    </div>
  );
}
