// Shows the page of the address.

import "@preact/signals";
import { render } from "preact";

import "./start.ts";
import { dropPrefetched } from "./api/prefetch.ts";
import { Frame } from "./components/frame.tsx";
import { SignInPage } from "./pages/sign-in.tsx";
import { key } from "./state/session.ts";
import { followHistory } from "./state/view.ts";

function App() {
  return key.value === null ? <SignInPage /> : <Frame key={key.value} />;
}

followHistory();
render(<App />, document.body);
setTimeout(dropPrefetched);
