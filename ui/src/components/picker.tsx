// A field that finds a record by typing and picks it.

import { useId, useState } from "preact/hooks";

import { useResource } from "../api/resource.ts";
import { useDebounced } from "./debounce.ts";
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
  /** Offers what was typed as a new record. */
  canCreate?: boolean;
  disabled?: boolean;
}

export function Picker({ label, placeholder, find, onPick, canCreate = false, disabled = false }: Props) {
  const list = useId();
  const [input, setInput] = useState("");
  const [isOpen, setOpen] = useState(false);
  const [chosen, setChosen] = useState(0);
  const text = input.trim();
  const settled = useDebounced(text);
  const found = useResource(
    isOpen ? async (signal) => ({ text: settled, options: await find(settled, signal) }) : null,
    [settled],
  );
  const options = found.data?.text === text ? [...found.data.options] : null;
  if (options && canCreate && text && !options.some(({ name }) => name.toLowerCase() === text.toLowerCase()))
    options.push({ id: null, name: text, detail: "New creator" });
  const pick = (option: Option | undefined) => {
    if (!option) return;
    setInput("");
    setOpen(false);
    onPick(option);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const count = Math.max(1, options?.length ?? 0);
    if (event.key === "Enter" && isOpen) pick(options?.[chosen]);
    else if (event.key === "ArrowDown") isOpen ? setChosen((chosen + 1) % count) : setOpen(true);
    else if (event.key === "ArrowUp" && isOpen) setChosen((chosen + count - 1) % count);
    else if (event.key === "Escape" && isOpen) setOpen(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="picker">
      <input
        type="text"
        role="combobox"
        aria-label={label}
        aria-autocomplete="list"
        aria-expanded={isOpen}
        aria-controls={list}
        {...(isOpen && options?.length ? { "aria-activedescendant": `${list}-${chosen}` } : {})}
        placeholder={placeholder}
        autocomplete="off"
        spellcheck={false}
        maxLength={128}
        disabled={disabled}
        value={input}
        onFocus={() => setOpen(true)}
        onClick={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={onKeyDown}
        onInput={(event) => {
          setInput(event.currentTarget.value);
          setChosen(0);
          setOpen(true);
        }}
      />
      <ul
        id={list}
        role="listbox"
        aria-label={label}
        hidden={!isOpen}
        onPointerDown={(event) => event.preventDefault()}
      >
        {options?.map((option, position) => (
          <li
            key={option.id ?? "new"}
            id={`${list}-${position}`}
            role="option"
            aria-selected={position === chosen}
            onPointerMove={() => setChosen(position)}
            onClick={() => pick(option)}
          >
            {option.id && option.picture !== undefined && (
              <Picture id={option.id} name={option.name} src={option.picture} />
            )}
            <span dir="auto">{option.name}</span>
            {option.detail && <small class="quiet small">{option.detail}</small>}
          </li>
        ))}
        {!options?.length && (
          <li class="quiet" role="option" aria-disabled="true" aria-selected="false">
            {found.problem?.message ?? (options ? "Nothing found" : "Searching…")}
          </li>
        )}
      </ul>
    </div>
  );
}
