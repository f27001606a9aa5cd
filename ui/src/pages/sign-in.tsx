// Signing in: pasting a key.

import { useState } from "preact/hooks";

import { endedBecause, signIn } from "../state/session.ts";

export function SignInPage() {
  const [text, setText] = useState("");
  const [stay, setStay] = useState(false);
  const submit = (event: Event) => {
    event.preventDefault();
    if (text.trim()) signIn(text.trim(), stay);
  };
  return (
    <main class="sign-in">
      <form class="card" onSubmit={submit}>
        <h1>Tidemark</h1>
        {endedBecause.value && <p class="notice" role="alert">{endedBecause.value}</p>}
        <label for="key">API key</label>
        <input id="key" name="key" type="password" autocomplete="off" spellcheck={false} required autofocus value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <label class="small"><input type="checkbox" checked={stay} onChange={(event) => setStay(event.currentTarget.checked)} /> Stay signed in on this device</label>
        <button type="submit" class="primary">Sign in</button>
        <p class="quiet small">Whoever runs this installation creates keys with <code>tidemark key create</code>.</p>
      </form>
    </main>
  );
}
