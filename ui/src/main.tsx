// Starts the dashboard: restores the session, then shows the page of the address.

import { render } from "preact";

import { Frame } from "./components/frame.tsx";
import { SignInPage } from "./pages/sign-in.tsx";
import { key, restoreSession } from "./state/session.ts";
import { followHistory } from "./state/view.ts";

function App() {
  return key.value === null ? <SignInPage /> : <Frame key={key.value} />;
}

restoreSession();
followHistory();
render(<App />, document.body);
