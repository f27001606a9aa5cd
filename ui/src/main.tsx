// Shows the page of the address.

import "./styles/base.css";
import "./styles/shared.css";
import "@preact/signals";
import { render } from "preact";

import "./start.ts";
import { dropPrefetched } from "./api/prefetch.ts";
import { Frame } from "./app/frame.tsx";
import { loadPage, pageOf } from "./app/pages.ts";
import { SignInPage } from "./app/sign-in.tsx";
import { followPlace } from "./state/place.ts";
import { isAsked, key } from "./state/session.ts";
import { followHistory, view } from "./state/view.ts";

function App() {
  return key.value === null ? <SignInPage /> : <Frame key={key.value} />;
}

followHistory();
followPlace();
await isAsked;
const { code } = pageOf(view.value.path);
// If it fails, the frame says so.
if (key.value !== null && code) await loadPage(code).catch(() => {});
render(<App />, document.body);
setTimeout(dropPrefetched);
