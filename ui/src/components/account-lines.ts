// Accounts that are pasted, one per line: what each line means, and what became of it.

import { PLATFORMS, type Platform } from "../state/view.ts";

export interface AccountLine {
  text: string;
  platform: Platform;
  /** Whether the line itself says so. */
  isPlatformKnown: boolean;
}

/** Platforms as people write them before or after a name: `tiktok @salt.and.tide`, `salt.and.tide, ig`. */
const PLATFORM_WORDS: Readonly<Record<string, Platform>> = { instagram: "instagram", ig: "instagram", insta: "instagram", tiktok: "tiktok", tt: "tiktok" };

/** The platform of a link; usernames have none. */
export function platformOfLink(text: string): Platform | null {
  return PLATFORMS.find((platform) => new RegExp(`(^|[/.])${platform}\\.com/`, "i").test(text)) ?? null;
}

/** Lines that are empty or repeat an earlier one are left out. */
export function parseLines(text: string, platform: Platform): AccountLine[] {
  const lines = new Map<string, AccountLine>();
  for (const line of text.split(/\r?\n/)) {
    const words = line.split(/[\s,;]+/).filter(Boolean);
    const named = words.length > 1 ? words.map((word) => PLATFORM_WORDS[word.toLowerCase()]).find((word) => word !== undefined) : undefined;
    for (const word of named ? words.filter((word) => !(word.toLowerCase() in PLATFORM_WORDS)) : words) {
      const known = platformOfLink(word) ?? named;
      const parsed = { text: word, platform: known ?? platform, isPlatformKnown: known !== undefined };
      lines.set(`${parsed.platform} ${word.toLowerCase()}`, parsed);
    }
  }
  return [...lines.values()];
}
