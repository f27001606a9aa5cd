// Signing in: pasting a key, which the API is asked about before it is kept.

import { useEffect, useState } from "preact/hooks";

import { useAction } from "../api/action.ts";
import { ApiProblem, fetchIdentity } from "../api/client.ts";
import { useFocus } from "../components/focus.ts";
import { endedBecause, isKey, signIn } from "../state/session.ts";
import { Mark } from "./icons.tsx";
import * as css from "./sign-in.module.css";

const NOT_A_KEY =
  "A key has no spaces and at most 200 characters. Paste it as it was shown when it was created.";

export function SignInPage() {
  const [text, setText] = useState("");
  const [stay, setStay] = useState(false);
  const input = useFocus<HTMLInputElement>();
  useEffect(() => {
    document.title = "Sign in · Tidemark";
  }, []);
  const check = useAction(async (signal) => {
    const key = text.trim();
    endedBecause.value = null;
    if (!isKey(key)) throw new ApiProblem(0, { detail: NOT_A_KEY });
    await fetchIdentity(signal, key);
    signIn(key, stay);
  });
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!(await check.run())) input.current?.select();
  };
  const message = check.problem?.message ?? endedBecause.value;
  return (
    <main class={css.signIn}>
      <form class="card" onSubmit={submit}>
        <h1 class="brand">
          <Mark />
          Tidemark
        </h1>
        <p class="quiet">What your creators’ posts gained, day by day.</p>
        <div role="alert" id="sign-in-message">
          {message && <p class="notice">{message}</p>}
        </div>
        <label for="key">API key</label>
        <input
          ref={input}
          id="key"
          name="key"
          type="password"
          autocomplete="off"
          spellcheck={false}
          required
          value={text}
          aria-invalid={check.problem !== undefined}
          aria-describedby="sign-in-message"
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <label class="check">
          <input type="checkbox" checked={stay} onChange={(event) => setStay(event.currentTarget.checked)} />{" "}
          Stay signed in on this device
        </label>
        <button type="submit" class="primary" disabled={check.isRunning}>
          {check.isRunning ? "Checking…" : "Sign in"}
        </button>
        <p class="quiet small">
          The operator of this installation creates keys with <code>tidemark key create</code>. The key stays
          in this browser.
        </p>
      </form>
    </main>
  );
}
