// Shows the page of the address.

import "./styles/base.css";
import "./styles/shared.css";
import "./styles/print.css";
import "@preact/signals";
import { render } from "preact";

import "./start.ts";
import { dropPrefetched } from "./api/prefetch.ts";
import { Frame } from "./app/frame.tsx";
import { loadPage, pageOf, SHARE_CODE } from "./app/pages.ts";
import { SharedFrame } from "./app/shared.tsx";
import { SignInPage } from "./app/sign-in.tsx";
import { followPlace } from "./state/place.ts";
import { isAsked, key } from "./state/session.ts";
import { SHARE_PATH } from "./state/share.ts";
import { followHistory, view } from "./state/view.ts";

const isShared = view.value.path === SHARE_PATH;

function App() {
  if (isShared) return <SharedFrame />;
  return key.value === null ? <SignInPage /> : <Frame key={key.value} />;
}

followHistory((path) => pageOf({ path, filters: new Map() }).page !== undefined);
followPlace();
if (!isShared) await isAsked;
const code = isShared ? SHARE_CODE : key.value !== null && pageOf(view.value).code;
// If it fails, the frame says so.
if (code) await loadPage(code).catch(() => {});
render(<App />, document.body);
setTimeout(dropPrefetched);
