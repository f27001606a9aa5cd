// Adding many accounts: a username or profile link per line, with the result of each. What was not added stays in the field.

import { useEffect, useRef, useState } from "preact/hooks";

import { ApiProblem, api, unwrap } from "../api/client.ts";
import { requestEach } from "../api/concurrent.ts";
import { PLATFORMS, linkTo, type Platform } from "../state/view.ts";
import { parseLines, type AccountLine } from "./account-lines.ts";
import { PLATFORM_NAMES } from "./controls.tsx";

interface Result {
  line: AccountLine;
  outcome: "waiting" | "added" | "exists" | "failed";
  message: string;
  /** Of the account that was added. */
  id: string | null;
}

async function add({ platform, text }: AccountLine, signal: AbortSignal): Promise<Result["id"]> {
  return (await unwrap(api.POST("/accounts", { body: { platform, username: text }, signal }))).data.id;
}

function resultOf(line: AccountLine, outcome: string | null | ApiProblem): Result {
  if (!(outcome instanceof ApiProblem)) return { line, outcome: "added", message: "Added", id: outcome };
  if (outcome.status === 409) return { line, outcome: "exists", message: "Already tracked", id: null };
  const message = outcome.fields.map(({ message }) => message).join("; ") || outcome.message;
  return { line, outcome: "failed", message, id: null };
}

function count(results: readonly Result[], outcome: Result["outcome"]): number {
  return results.filter((result) => result.outcome === outcome).length;
}

/** Sends the lines one by one; what was added or tracked before stays listed. */
function useAdding(onAdded: () => void) {
  const [results, setResults] = useState<readonly Result[]>([]);
  const controller = useRef<AbortController | null>(null);
  useEffect(() => () => controller.current?.abort(), []);
  const start = async (lines: readonly AccountLine[]): Promise<readonly Result[]> => {
    const { signal } = (controller.current = new AbortController());
    const before = results.filter(({ outcome }) => outcome === "added" || outcome === "exists");
    const run = lines.map((line): Result => ({ line, outcome: "waiting", message: "Waiting", id: null }));
    setResults([...run, ...before]);
    await requestEach(lines, signal, (line) => add(line, signal), (index, outcome) => {
      run[index] = resultOf(lines[index]!, outcome);
      setResults([...run, ...before]);
    });
    if (!signal.aborted && count(run, "added") > 0) onAdded();
    return run;
  };
  return { results, start };
}

export function AddAccounts({ onAdded, onClose }: { onAdded: () => void; onClose: () => void }) {
  const [text, setText] = useState("");
  const [platform, setPlatform] = useState<Platform>("instagram");
  const { results, start } = useAdding(onAdded);
  const isRunning = count(results, "waiting") > 0;
  const lines = parseLines(text, platform);
  const unknown = lines.filter(({ isPlatformKnown }) => !isPlatformKnown).length;
  const submit = async (event: Event) => {
    event.preventDefault();
    if (lines.length === 0 || isRunning) return;
    const failed = (await start(lines)).filter(({ outcome }) => outcome === "failed" || outcome === "waiting");
    setText(failed.map(({ line: { text, platform } }) => (parseLines(text, platform)[0]?.isPlatformKnown ? text : `${platform} ${text}`)).join("\n"));
  };
  return (
    <form class="card add-accounts" onSubmit={submit} aria-labelledby="add-title">
      <header><h2 id="add-title">Add accounts</h2><button type="button" class="plain small" onClick={onClose}>Close</button></header>
      <div class="add-columns">
        <div class="add-input">
          <label for="accounts-to-add">Usernames or profile links, one per line</label>
          <textarea
            id="accounts-to-add" rows={8} value={text} spellcheck={false} autofocus readOnly={isRunning}
            placeholder={"@salt.and.tide\nhttps://www.tiktok.com/@salt.and.tide\ntiktok salt.and.tide"} onInput={(event) => setText(event.currentTarget.value)}
          />
          <fieldset class="choice">
            <legend class="small quiet">{unknown > 0 ? `${unknown} ${unknown === 1 ? "line does" : "lines do"} not say which platform:` : "Platform of names without a link:"}</legend>
            {PLATFORMS.map((name) => (
              <label key={name}><input type="radio" name="platform-of-names" checked={platform === name} disabled={isRunning} onChange={() => setPlatform(name)} /> {PLATFORM_NAMES[name]}</label>
            ))}
          </fieldset>
          <div><button type="submit" class="primary" disabled={isRunning || lines.length === 0}>{isRunning ? "Adding…" : lines.length > 1 ? `Track ${lines.length} accounts` : "Track"}</button></div>
        </div>
        <Results results={results} />
      </div>
    </form>
  );
}

const TONES = { waiting: "", added: "ok", exists: "", failed: "bad" } as const;

function Results({ results }: { results: readonly Result[] }) {
  const summary = [
    [count(results, "added"), "added"],
    [count(results, "exists"), "already tracked"],
    [count(results, "failed"), "to correct"],
    [count(results, "waiting"), "waiting"],
  ] as const;
  return (
    <div class="add-results">
      <p role="status" class="small">
        {results.length === 0
          ? <span class="quiet">Each line’s result appears here. The first posts follow within a minute.</span>
          : <b>{summary.filter(([number]) => number > 0).map(([number, name]) => `${number} ${name}`).join(" · ")}</b>}
      </p>
      <ul>
        {results.map(({ line: { text, platform }, outcome, message, id }) => (
          <li key={`${platform} ${text}`}>
            <span class="add-line">{id ? <a class="link" href={linkTo(`/accounts/${id}`)}>{text}</a> : text} <small class="quiet small">{PLATFORM_NAMES[platform]}</small></span>
            <span class={`status ${TONES[outcome]}`}>{message}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
