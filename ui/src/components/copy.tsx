// Copying text to the clipboard.

import { useEffect, useState } from "preact/hooks";

/** How long a button says that it copied, in milliseconds. */
const NOTICE_TIME = 2_000;

/** Pages that are not served over https or from this machine have no `navigator.clipboard`. */
async function copy(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (!isCopied) throw new Error("the browser refused to copy");
}

interface Props {
  /** What the button says. */
  label: string;
  /** What it copies, if the label does not say it. */
  title?: string;
  text: () => string;
  disabled?: boolean;
}

export function CopyButton({ label, title = label, text, disabled = false }: Props) {
  const [outcome, setOutcome] = useState<string | null>(null);
  useEffect(() => {
    if (!outcome) return;
    const timer = setTimeout(() => setOutcome(null), NOTICE_TIME);
    return () => clearTimeout(timer);
  }, [outcome]);
  const onClick = () =>
    copy(text()).then(
      () => setOutcome("Copied"),
      () => setOutcome("Not copied"),
    );
  return (
    <button
      type="button"
      class="plain small"
      title={title}
      aria-label={title}
      disabled={disabled}
      onClick={onClick}
    >
      <span aria-live="polite">{outcome ?? label}</span>
    </button>
  );
}
