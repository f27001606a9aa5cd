// Adding many accounts: one username or profile link a line, with the result of each line.

import { useState } from "preact/hooks";

import { ApiProblem, api, unwrap } from "../api/client.ts";
import { PLATFORMS, type Platform } from "../state/view.ts";
import { PLATFORM_NAMES } from "./controls.tsx";

/** Requests that run at the same time. */
const CONCURRENCY = 4;

interface Line {
  text: string;
  result: "waiting" | "added" | "exists" | "failed";
  message: string;
}

/** The platform that a link names; usernames have none. */
export function platformOf(text: string): Platform | null {
  return PLATFORMS.find((platform) => new RegExp(`(^|[./])${platform}\\.com/`, "i").test(text)) ?? null;
}

async function add(line: Line, platform: Platform): Promise<Line> {
  const body = { platform: platformOf(line.text) ?? platform, username: line.text };
  try {
    const { data } = await unwrap(api.POST("/accounts", { body }));
    return { ...line, result: "added", message: `@${data.username} is tracked` };
  } catch (cause) {
    const problem = cause instanceof ApiProblem ? cause : new ApiProblem(0, {});
    const message = problem.fields[0]?.message ?? problem.message;
    return { ...line, result: problem.status === 409 ? "exists" : "failed", message };
  }
}

export function AddAccounts({ onAdded }: { onAdded: () => void }) {
  const [text, setText] = useState("");
  const [platform, setPlatform] = useState<Platform>("instagram");
  const [lines, setLines] = useState<readonly Line[]>([]);
  const isRunning = lines.some(({ result }) => result === "waiting");
  const submit = async (event: Event) => {
    event.preventDefault();
    const texts = [...new Set(text.split(/[\s,]+/).filter(Boolean))];
    const all: Line[] = texts.map((text) => ({ text, result: "waiting", message: "" }));
    setLines(all);
    let next = 0;
    const work = async () => {
      for (let index = next++; index < texts.length; index = next++) {
        const line = await add(all[index]!, platform);
        setLines((lines) => lines.with(index, line));
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
    onAdded();
  };
  return (
    <form class="card add-accounts" onSubmit={submit} aria-label="Add accounts">
      <label for="accounts-to-add">Usernames or profile links, one per line</label>
      <textarea id="accounts-to-add" rows={6} required value={text} placeholder={"@salt.and.tide\nhttps://www.tiktok.com/@salt.and.tide"} onInput={(event) => setText(event.currentTarget.value)} />
      <div class="controls">
        <label class="small">Platform of usernames{" "}
          <select value={platform} onChange={(event) => setPlatform(event.currentTarget.value as Platform)}>
            {PLATFORMS.map((name) => <option key={name} value={name}>{PLATFORM_NAMES[name]}</option>)}
          </select>
        </label>
        <button type="submit" class="primary" disabled={isRunning}>Track</button>
      </div>
      <ul aria-live="polite">
        {lines.map(({ text, result, message }) => (
          <li key={text}><span class={`status ${result === "added" ? "ok" : result === "failed" ? "bad" : ""}`}>{text}</span> <span class="quiet small">{result === "waiting" ? "…" : message}</span></li>
        ))}
      </ul>
    </form>
  );
}
