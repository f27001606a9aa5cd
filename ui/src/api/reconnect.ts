// What failed because the server did not answer is asked for again once it does.

const waiting = new Set<() => void>();

/** By `performance.now()`. */
let answeredAt = Number.NEGATIVE_INFINITY;

/** Calls back when the server answers after a failure, which it may have done before this is noticed; the result ends this. */
export function onAnswer(failedAt: number, callBack: () => void): () => void {
  if (answeredAt > failedAt) callBack();
  else waiting.add(callBack);
  return () => waiting.delete(callBack);
}

export function noteAnswer(): void {
  answeredAt = performance.now();
  const all = [...waiting];
  waiting.clear();
  for (const callBack of all) callBack();
}
