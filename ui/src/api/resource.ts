// Data that a component loads: the last data stays while newer is loaded, and outdated requests are aborted.

import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { ApiProblem } from "./client.ts";
import { onOldFigures } from "./news.ts";
import { onAnswer } from "./reconnect.ts";
import { requestsOf } from "./requests.ts";
import { afterAbove, startAbove } from "./shown.ts";

/** `idle`: nothing is asked for. Earlier data and the problem of the last attempt stay until an attempt ends. */
export type Load<T> =
  | { status: "idle"; data?: undefined; problem?: undefined }
  | { status: "loading"; data?: T | undefined; problem?: ApiProblem | undefined }
  | { status: "ready"; data: T; problem?: undefined }
  | { status: "failed"; data?: T | undefined; problem: ApiProblem };

export type Resource<T> = Load<T> & {
  /** URLs of the requests that were last answered. */
  requests: readonly string[];
  reload: () => void;
  /** Loads newer data in place: nothing shows that it loads, and what fails is left to the next time. */
  refresh: () => void;
};

/** `before` is the last data. */
export type Loader<T> = (signal: AbortSignal, before: T | undefined) => Promise<T>;

interface Run {
  dependencies: readonly unknown[];
  controller: AbortController;
  /** What stands below it may be drawn. */
  end: () => void;
}

/** The last run that ended. */
type Ended<T> = { run?: Run; requests: readonly string[] } & Pick<Load<T>, "data" | "problem">;

function isSame(left: readonly unknown[], right: readonly unknown[]): boolean {
  return left.every((value, position) => Object.is(value, right[position]));
}

function abort(run: Run | null): void {
  run?.controller.abort();
  run?.end();
}

/**
 * Loads again whenever `dependencies` change; without a loader, nothing. Requests start while the component renders, not after it:
 * a page's own before those of its parts, and all before the browser draws. What is below the first screen (`isBelow`) waits until
 * the rest is drawn. Figures (`isLive`) are loaded again when the server says that they changed; the earlier ones stay as they are
 * until then.
 */
export function useResource<T>(
  load: Loader<T> | null,
  dependencies: readonly unknown[],
  { isBelow = false, isLive = false } = {},
): Resource<T> {
  const [{ run: ended, data, problem, requests }, setEnded] = useState<Ended<T>>({ requests: [] });
  const [attempt, setAttempt] = useState(0);
  const current = useRef<Run | null>(null);
  const wanted = [load === null, attempt, ...dependencies];
  if (!current.current || !isSame(current.current.dependencies, wanted)) {
    abort(current.current);
    const end = isBelow || !load ? () => {} : startAbove();
    const run: Run = { dependencies: wanted, controller: new AbortController(), end };
    current.current = run;
    const { signal } = run.controller;
    const finish = (outcome: Pick<Ended<T>, "data" | "problem">) => {
      if (signal.aborted) return;
      setEnded({ run, requests: requestsOf(signal), ...outcome });
      end();
    };
    const result = load?.(signal, data);
    (isBelow ? result?.finally(afterAbove) : result)?.then(
      (data) => finish({ data }),
      (cause: unknown) => finish({ data, problem: ApiProblem.from(cause) }),
    );
  }
  useLayoutEffect(() => () => abort(current.current), []);
  const isSettled = load !== null && ended === current.current;
  const loadQuietly = useQuietLoad(isSettled, async (signal) => {
    const run = current.current;
    const data = await load?.(signal, undefined);
    if (data !== undefined && !signal.aborted && run && current.current === run)
      setEnded({ run, data, requests: requestsOf(signal) });
  });
  useEffect(() => (isLive && isSettled ? onOldFigures(loadQuietly) : undefined), [isLive && isSettled]);
  const reload = useCallback(() => setAttempt((attempt) => attempt + 1), []);
  useEffect(() => (problem?.isUnanswered ? onAnswer(problem.at, reload) : undefined), [problem]);
  const shared = { requests, reload, refresh: problem ? reload : loadQuietly };
  if (!load) return { ...shared, status: "idle" };
  if (ended !== current.current) return { ...shared, status: "loading", data, problem };
  return problem
    ? { ...shared, status: "failed", data, problem }
    : { ...shared, status: "ready", data: data as T };
}

/** Loads while `isOn`, one load after the other: what is wanted during one is loaded after it. */
function useQuietLoad(isOn: boolean, load: (signal: AbortSignal) => Promise<void>): () => void {
  const latest = useRef(load);
  latest.current = load;
  const start = useRef(() => {});
  useLayoutEffect(() => {
    if (!isOn) return;
    let controller = new AbortController();
    let [isLoading, isWanted] = [false, false];
    const run = async () => {
      isWanted = true;
      if (isLoading) return;
      isLoading = true;
      while (isWanted && !controller.signal.aborted) {
        isWanted = false;
        controller = new AbortController();
        await latest.current(controller.signal).catch(() => {});
      }
      isLoading = false;
    };
    start.current = () => void run();
    return () => {
      start.current = () => {};
      controller.abort();
    };
  }, [isOn]);
  return useCallback(() => start.current(), []);
}

/** The same resource with a part of its data, or other data made of it. */
export function mapResource<T, U>(resource: Resource<T>, change: (data: T) => U): Resource<U> {
  const data = resource.data === undefined ? undefined : change(resource.data);
  return { ...resource, data } as Resource<U>;
}
