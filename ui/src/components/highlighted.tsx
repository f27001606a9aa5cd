// A text in which what a person looks for is marked, and on screen even if it stands far behind.

export interface TextPart {
  text: string;
  isMatch: boolean;
}

/** A match that starts later is moved to the front: what stands before it is cut off, not what is looked for. */
const MAX_BEFORE = 24;
/** So much of it stays. */
const KEPT_BEFORE = 12;

/** Splits a text at what any of the needles matches. */
export function matchParts(text: string, needles: readonly string[]): TextPart[] {
  const patterns = needles.filter(Boolean).map((needle) => needle.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
  if (patterns.length === 0) return [{ text, isMatch: false }];
  const parts = text
    .split(new RegExp(`(${patterns.join("|")})`, "giu"))
    .map((text, position): TextPart => ({ text, isMatch: position % 2 === 1 }));
  const [first] = parts;
  if (parts.length > 1 && first && first.text.length > MAX_BEFORE)
    first.text = `…${[...first.text].slice(-KEPT_BEFORE).join("")}`;
  return parts.filter(({ text }) => text !== "");
}

export function Highlighted({ text, needles }: { text: string; needles: readonly string[] }) {
  return (
    <>
      {matchParts(text, needles).map(({ text, isMatch }, position) =>
        isMatch ? <mark key={position}>{text}</mark> : text,
      )}
    </>
  );
}
