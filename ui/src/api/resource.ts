// Data that a component loads: the last data stays while newer is loaded, and outdated requests are aborted.

import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";

import { ApiProblem } from "./client.ts";
import { requestsOf } from "./requests.ts";
import { afterAbove, startAbove } from "./shown.ts";

export interface Resource<T> {
  /** Of the current request, or of an earlier one while this one is running. */
  data: T | null;
  problem: ApiProblem | null;
  isLoading: boolean;
  /** URLs of the requests that were last answered. */
  requests: readonly string[];
  reload: () => void;
}

interface Run {
  dependencies: readonly unknown[];
  controller: AbortController;
  /** What stands below it may be drawn. */
  end: () => void;
}

interface State<T> extends Pick<Resource<T>, "data" | "problem" | "requests"> {
  /** The run that ended. */
  run: Run | null;
}

function isSame(left: readonly unknown[], right: readonly unknown[]): boolean {
  return left.every((value, position) => Object.is(value, right[position]));
}

function abort({ controller, end }: Run): void {
  controller.abort();
  end();
}

/**
 * Loads again whenever `dependencies` change. Requests start while the component renders, not after it: a page's own before those
 * of its parts, and all before the browser draws. What is below the first screen (`isBelow`) waits until the rest is drawn.
 */
export function useResource<T>(
  load: (signal: AbortSignal) => Promise<T>,
  dependencies: readonly unknown[],
  { isBelow = false } = {},
): Resource<T> {
  const [state, setState] = useState<State<T>>({ data: null, problem: null, requests: [], run: null });
  const [attempt, setAttempt] = useState(0);
  const current = useRef<Run | null>(null);
  const wanted = [...dependencies, attempt];
  if (!current.current || !isSame(current.current.dependencies, wanted)) {
    if (current.current) abort(current.current);
    const run: Run = {
      dependencies: wanted,
      controller: new AbortController(),
      end: isBelow ? () => {} : startAbove(),
    };
    current.current = run;
    const { signal } = run.controller;
    const end = (change: Pick<State<T>, "problem"> & Partial<State<T>>) => {
      if (signal.aborted) return;
      setState((state) => ({ ...state, ...change, requests: requestsOf(signal), run }));
      run.end();
    };
    const result = isBelow ? load(signal).finally(afterAbove) : load(signal);
    result.then(
      (data) => end({ data, problem: null }),
      (cause: unknown) => end({ problem: ApiProblem.from(cause) }),
    );
  }
  useLayoutEffect(() => () => (current.current ? abort(current.current) : undefined), []);
  const reload = useCallback(() => setAttempt((attempt) => attempt + 1), []);
  return {
    data: state.data,
    problem: state.problem,
    requests: state.requests,
    isLoading: state.run !== current.current,
    reload,
  };
}
