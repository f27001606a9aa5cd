// Data that a component loads: the last data stays while newer is loaded, and outdated requests are aborted.

import { useCallback, useLayoutEffect, useState } from "preact/hooks";

import { ApiProblem } from "./client.ts";
import { requestsOf } from "./requests.ts";

export interface Resource<T> {
  /** Of the current request, or of an earlier one while this one is running. */
  data: T | null;
  problem: ApiProblem | null;
  isLoading: boolean;
  /** URLs of the requests that were last answered. */
  requests: readonly string[];
  reload: () => void;
}

/** Loads again whenever `dependencies` change. */
export function useResource<T>(
  load: (signal: AbortSignal) => Promise<T>,
  dependencies: readonly unknown[],
): Resource<T> {
  const [state, setState] = useState<Omit<Resource<T>, "reload">>({ data: null, problem: null, isLoading: true, requests: [] });
  const [attempt, setAttempt] = useState(0);
  // Not `useEffect`: the request need not wait for the frame to be painted.
  useLayoutEffect(() => {
    const controller = new AbortController();
    setState((state) => ({ ...state, isLoading: true }));
    load(controller.signal).then(
      (data) => {
        if (!controller.signal.aborted) setState({ data, problem: null, isLoading: false, requests: requestsOf(controller.signal) });
      },
      (cause: unknown) => {
        if (controller.signal.aborted) return;
        const problem = ApiProblem.from(cause);
        setState(({ data }) => ({ data, problem, isLoading: false, requests: requestsOf(controller.signal) }));
      },
    );
    return () => controller.abort();
  }, [...dependencies, attempt]);
  const reload = useCallback(() => setAttempt((attempt) => attempt + 1), []);
  return { ...state, reload };
}
