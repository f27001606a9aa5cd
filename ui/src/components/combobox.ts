// A field whose text finds options, of which one is chosen: by the arrow keys and Enter, or by pointer. The focus stays in the field.

import { useEffect, useId, useState } from "preact/hooks";

interface Props<Option> {
  label: string;
  text: string;
  onText: (text: string) => void;
  /** What the text finds. */
  options: readonly Option[];
  onPick: (option: Option | undefined, position: number) => void;
  isOpen: boolean;
  /** Of a list that opens and closes. */
  setOpen?: (isOpen: boolean) => void;
}

/** Attributes of the field and of each option, and the id of the list. */
export function useCombobox<Option>({
  label,
  text,
  onText,
  options,
  onPick,
  isOpen,
  setOpen,
}: Props<Option>) {
  const list = useId();
  const [chosen, setChosen] = useState(0);
  const idOf = (position: number) => `${list}-${position}`;
  useEffect(() => {
    if (isOpen) document.getElementById(idOf(chosen))?.scrollIntoView({ block: "nearest" });
  }, [isOpen, chosen]);
  const move = (step: number) => {
    const count = Math.max(1, options.length);
    setChosen((chosen + step + count) % count);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown" && !isOpen) setOpen?.(true);
    else if (!isOpen) return;
    else if (event.key === "Enter") onPick(options[chosen], chosen);
    else if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Escape" && setOpen) setOpen(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return {
    input: {
      type: "text" as const,
      role: "combobox" as const,
      "aria-label": label,
      "aria-autocomplete": "list" as const,
      "aria-expanded": isOpen,
      "aria-controls": list,
      ...(isOpen && options.length > 0 ? { "aria-activedescendant": idOf(chosen) } : {}),
      autocomplete: "off",
      spellcheck: false,
      maxLength: 128,
      value: text,
      onKeyDown,
      onInput: ({ currentTarget }: { currentTarget: HTMLInputElement }) => {
        setChosen(0);
        onText(currentTarget.value);
      },
    },
    list,
    option: (position: number) => ({
      id: idOf(position),
      role: "option" as const,
      "aria-selected": position === chosen,
      onPointerMove: () => setChosen(position),
      onClick: () => onPick(options[position], position),
    }),
  };
}
