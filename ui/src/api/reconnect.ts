// What failed because the server did not answer is asked for again once it does.

const waiting = new Set<() => void>();

/** Calls back when the server answers again; the result ends this. */
export function onAnswer(callBack: () => void): () => void {
  waiting.add(callBack);
  return () => waiting.delete(callBack);
}

export function noteAnswer(): void {
  const all = [...waiting];
  waiting.clear();
  for (const callBack of all) callBack();
}
