// Where direct labels stand: beside the ends of their lines, without overlapping.

/**
 * Positions at least `gap` apart within `low` to `high`, each as near as possible to the wanted one and in the same order.
 * Labels that would overlap are spread around the middle of where they belong.
 */
export function placeLabels(wanted: readonly number[], gap: number, low: number, high: number): number[] {
  const order = wanted.map((_, index) => index).sort((a, b) => (wanted[a] ?? 0) - (wanted[b] ?? 0) || a - b);
  const groups: { start: number; count: number }[] = [];
  for (const index of order) {
    let group = { start: wanted[index] ?? 0, count: 1 };
    for (
      let above = groups.at(-1);
      above && above.start + above.count * gap > group.start;
      above = groups.at(-1)
    ) {
      groups.pop();
      const count = above.count + group.count;
      group = {
        start: (above.start * above.count + (group.start - above.count * gap) * group.count) / count,
        count,
      };
    }
    groups.push(group);
  }
  const placed = groups.flatMap(({ start, count }) =>
    Array.from({ length: count }, (_, number) => start + number * gap),
  );
  for (let i = 0; i < placed.length; i++)
    placed[i] = Math.max(placed[i] ?? 0, i === 0 ? low : (placed[i - 1] ?? 0) + gap);
  for (let i = placed.length - 1; i >= 0; i--)
    placed[i] = Math.min(placed[i] ?? 0, i === placed.length - 1 ? high : (placed[i + 1] ?? 0) - gap);
  const result: number[] = [];
  for (const [position, index] of order.entries()) result[index] = placed[position] ?? 0;
  return result;
}

/** A name cut to about a width, at `letterWidth` pixels a letter. */
export function fitName(name: string, width: number, letterWidth = 6.4): string {
  const letters = [...name];
  const count = Math.max(3, Math.floor(width / letterWidth));
  return letters.length <= count
    ? name
    : `${letters
        .slice(0, count - 1)
        .join("")
        .trimEnd()}…`;
}
