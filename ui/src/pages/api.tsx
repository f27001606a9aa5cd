// The API behind the dashboard: who is signed in, limits, and how to ask it.

import { Facts } from "../components/facts.tsx";
import type { PageProps } from "../components/frame.tsx";
import { Count } from "../components/parts.tsx";

export function ApiPage({ identity }: PageProps) {
  const command = `curl -H "Authorization: Bearer $KEY" '${location.origin}/v2/overview?period=30d'`;
  return (
    <>
      <div class="page-head"><h1 class="grow">API</h1></div>
      <section class="card">
        <header><h2>This key</h2></header>
        {identity && (
          <Facts facts={[
            ["Organization", identity.organization.name],
            ["Key", identity.api_key_name],
            ["May", identity.scopes.join(", ")],
            ["Requests a minute", <Count value={identity.rate_limit} />],
            ["Accounts", <><Count value={identity.usage.accounts} />{identity.usage.account_cap !== null && <> of <Count value={identity.usage.account_cap} /></>}</>],
          ]} />
        )}
      </section>
      <section class="card">
        <header><h2>Ask it yourself</h2><button type="button" onClick={() => navigator.clipboard.writeText(command)}>Copy</button></header>
        <pre tabIndex={0}>{command}</pre>
        <p>Everything on these pages is from the public API. <a href="/docs" target="_blank"><b>Reference</b></a></p>
      </section>
    </>
  );
}
