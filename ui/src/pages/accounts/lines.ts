// Accounts that are pasted, one per line: which platform each is of.

import type { Platform } from "../../state/view.ts";

export interface AccountLine {
  /** As it was pasted. */
  source: string;
  /** Username or link. */
  text: string;
  platform: Platform;
  /** Whether the line itself says so. */
  isPlatformKnown: boolean;
}

/** Platforms as people write them before or after a name: `tiktok @salt.and.tide`, `salt.and.tide, ig`. */
const PLATFORM_WORDS: ReadonlyMap<string, Platform> = new Map([
  ["instagram", "instagram"],
  ["ig", "instagram"],
  ["insta", "instagram"],
  ["tiktok", "tiktok"],
  ["tt", "tiktok"],
]);

/** The hosts of links, after a scheme, `www.` and the like. */
const LINKS: readonly [RegExp, Platform][] = [
  [/(^|[/.])(instagram\.com|instagr\.am)\//i, "instagram"],
  [/(^|[/.])tiktok\.com\//i, "tiktok"],
];

/** The platform of a link; usernames have none. */
export function platformOfLink(text: string): Platform | null {
  return LINKS.find(([host]) => host.test(text))?.[1] ?? null;
}

/** Removes white space and the invisible characters that come along when texts are copied, at both ends. */
function trimInvisible(text: string): string {
  const invisible = "[\\s\\u200B-\\u200F\\u2028-\\u202F\\u2060-\\u2069]+";
  return text.replace(new RegExp(`^${invisible}|${invisible}$`, "g"), "");
}

function parsePart(source: string, platform: Platform): AccountLine {
  const words = source.split(/[\s,;]+/).filter(Boolean);
  const names = words.filter((word) => !PLATFORM_WORDS.has(word.toLowerCase()));
  const named =
    names.length === 1 && words.length > 1
      ? words.map((word) => PLATFORM_WORDS.get(word.toLowerCase())).find(Boolean)
      : undefined;
  const text = named ? (names[0] ?? source) : source;
  const known = platformOfLink(text) ?? named;
  return { source, text, platform: known ?? platform, isPlatformKnown: known !== undefined };
}

/** One account a line, or several with commas between them. What is empty or repeats an earlier one is left out. */
export function parseLines(text: string, platform: Platform): AccountLine[] {
  const lines = new Map<string, AccountLine>();
  const parts = text
    .split(/\r?\n/)
    .flatMap((line) =>
      /[,;]/.test(parsePart(trimInvisible(line), platform).text) ? line.split(/[,;]/) : [line],
    );
  for (const part of parts.map(trimInvisible).filter(Boolean)) {
    const line = parsePart(part, platform);
    const name = `${line.platform} ${line.text.toLowerCase()}`;
    if (!lines.has(name)) lines.set(name, line);
  }
  return [...lines.values()];
}
