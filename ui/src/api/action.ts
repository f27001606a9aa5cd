// A change that a person asks for: whether it runs, and what went wrong.

import { useEffect, useRef, useState } from "preact/hooks";

import { ApiProblem } from "./client.ts";

export interface Action<Input extends unknown[]> {
  /** Resolves to whether it succeeded. */
  run: (...input: Input) => Promise<boolean>;
  isRunning: boolean;
  problem: ApiProblem | null;
  /** Runs the last input again. */
  retry: () => void;
}

/** Aborts when the component goes away. */
export function useAction<Input extends unknown[]>(
  act: (signal: AbortSignal, ...input: Input) => Promise<unknown>,
): Action<Input> {
  const [isRunning, setRunning] = useState(false);
  const [problem, setProblem] = useState<ApiProblem | null>(null);
  const lastInput = useRef<Input | null>(null);
  const controller = useRef<AbortController | null>(null);
  useEffect(() => () => controller.current?.abort(), []);
  const run = async (...input: Input) => {
    lastInput.current = input;
    controller.current = new AbortController();
    const { signal } = controller.current;
    setRunning(true);
    setProblem(null);
    const failure = await act(signal, ...input).then(() => null, ApiProblem.from);
    if (signal.aborted) return false;
    setRunning(false);
    setProblem(failure);
    return failure === null;
  };
  return { run, isRunning, problem, retry: () => lastInput.current && void run(...lastInput.current) };
}
