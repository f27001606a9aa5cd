// A change that a person asks for: whether it runs, and what went wrong.

import { useEffect, useRef, useState } from "preact/hooks";

import { ApiProblem } from "./client.ts";
import type { Load } from "./resource.ts";

export interface Action<Input extends unknown[]> {
  /** Resolves to whether it succeeded. */
  run: (...input: Input) => Promise<boolean>;
  isRunning: boolean;
  problem: ApiProblem | undefined;
  /** Runs the last input again. */
  retry: () => void;
}

/** Aborts when the component goes away. */
export function useAction<Input extends unknown[]>(
  act: (signal: AbortSignal, ...input: Input) => Promise<unknown>,
): Action<Input> {
  const [load, setLoad] = useState<Load<unknown>>({ status: "idle" });
  const lastRun = useRef<{ input: Input; controller: AbortController } | undefined>(undefined);
  useEffect(() => () => lastRun.current?.controller.abort(), []);
  const run = async (...input: Input) => {
    const controller = new AbortController();
    lastRun.current = { input, controller };
    setLoad({ status: "loading" });
    const end = await act(controller.signal, ...input).then(
      (data): Load<unknown> => ({ status: "ready", data }),
      (cause): Load<unknown> => ({ status: "failed", problem: ApiProblem.from(cause) }),
    );
    if (controller.signal.aborted) return false;
    setLoad(end);
    return end.status === "ready";
  };
  const retry = () => lastRun.current && void run(...lastRun.current.input);
  return { run, isRunning: load.status === "loading", problem: load.problem, retry };
}
