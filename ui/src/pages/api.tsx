// The API behind the dashboard: who is signed in, limits, and how to ask what the pages show.

import type { Identity } from "../api/client.ts";
import { rateLimit } from "../api/rate-limit.ts";
import { asCurl } from "../api/requests.ts";
import { CopyButton } from "../components/copy.tsx";
import { Facts } from "../components/facts.tsx";
import { CardTitle } from "../components/parts.tsx";
import { day, exact } from "../format.ts";
import { view, windowParameters } from "../state/view.ts";
import * as css from "./api.module.css";
import type { PageProps } from "./props.ts";

const SCOPES: Readonly<Record<string, string>> = {
  read: "read everything of the organization",
  write: "add, change and remove accounts, creators and posts",
  admin: "everything",
};

interface Example {
  question: string;
  command: string;
}

function examples(): Example[] {
  const window = Object.entries(windowParameters(view.value.range))
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
  const get = (question: string, path: string): Example => ({
    question,
    command: asCurl([`${location.origin}/v2${path}`]).trimEnd(),
  });
  const body = JSON.stringify({ platform: "tiktok", username: "@salt.and.tide" });
  return [
    get("Which posts grew most?", `/content/top?${window}&metric=views&limit=10`),
    get("Which accounts grew most?", `/accounts/top?${window}&metric=views&limit=10`),
    get("Whose accounts are they?", `/creators/top?${window}&metric=views&limit=10`),
    get(
      "What was gained each day, and in the period before?",
      `/analytics/timeseries?${window}&compare=previous`,
    ),
    get("What is not updating, and why?", "/accounts?status=failing,unavailable,unsupported"),
    {
      question: "Track one more account",
      command: `curl -X POST -H "Authorization: Bearer $TIDEMARK_KEY" -H 'Content-Type: application/json' \\\n  -d '${body}' '${location.origin}/v2/accounts'`,
    },
  ];
}

export default function ApiPage({ identity }: PageProps) {
  return (
    <>
      <div class="page-head">
        <div class="grow">
          <h1>API</h1>
          <p class="quiet small">
            Everything on these pages comes from the public API. Each card copies its requests as curl.
          </p>
        </div>
        <a class="button primary" href="/docs" target="_blank" rel="noopener">
          Reference
        </a>
        <a class="button" href="/v2/openapi.json" target="_blank" rel="noopener">
          OpenAPI
        </a>
      </div>
      <div class="columns">
        <section class="card" aria-label="This key">
          <header>
            <h2>This key</h2>
          </header>
          {identity.data ? (
            <KeyFacts identity={identity.data} />
          ) : (
            <div class="skeleton" style={{ height: "140px" }} />
          )}
        </section>
        <section class="card" aria-label="Limits">
          <header>
            <h2>Limits</h2>
          </header>
          {identity.data ? (
            <Limits identity={identity.data} />
          ) : (
            <div class="skeleton" style={{ height: "140px" }} />
          )}
        </section>
      </div>
      <section class="card" aria-label="Ask it yourself">
        <header>
          <CardTitle title="Ask it yourself" note="with your key in the variable TIDEMARK_KEY" />
        </header>
        <ul class={css.examples}>
          {examples().map(({ question, command }) => (
            <li key={question}>
              <div class={css.exampleHead}>
                <h3>{question}</h3>
                <CopyButton label="Copy" title={`Copy: ${question}`} text={() => command} />
              </div>
              <pre role="group" tabIndex={0} aria-label={`Command: ${question}`}>
                {command}
              </pre>
            </li>
          ))}
        </ul>
      </section>
    </>
  );
}

function KeyFacts({
  identity: { organization, api_key_name, scopes, history_since },
}: {
  identity: Identity;
}) {
  const highest = scopes.at(-1) ?? "read";
  return (
    <Facts
      facts={[
        ["Organization", <span title={organization.id}>{organization.name}</span>],
        ["Key", api_key_name],
        ["Scopes", scopes.join(", ")],
        ["It may", SCOPES[highest] ?? highest],
        ["History since", history_since ? day(history_since) : "the first read"],
        ["Base URL", <code>{location.origin}/v2</code>],
      ]}
    />
  );
}

function Limits({ identity: { rate_limit, usage } }: { identity: Identity }) {
  const used = rateLimit.value ? rateLimit.value.limit - rateLimit.value.remaining : null;
  return (
    <div class="stack">
      <Meter
        name="Requests this minute"
        used={used}
        limit={rate_limit}
        note="The dashboard’s own are among them."
      />
      <Meter name="Accounts" used={usage.accounts} limit={usage.account_cap} note="Paused ones count." />
    </div>
  );
}

interface MeterProps {
  name: string;
  used: number | null;
  /** Null: unlimited. */
  limit: number | null;
  note: string;
}

function Meter({ name, used, limit, note }: MeterProps) {
  const share = limit && used !== null ? Math.min(1, used / limit) : 0;
  return (
    <div class={css.meter}>
      <p>
        <span>{name}</span>{" "}
        <b>
          {exact(used)}
          {limit === null ? "" : ` of ${exact(limit)}`}
        </b>
      </p>
      {limit !== null && (
        <div class={css.bar} aria-hidden="true">
          <span class={share > 0.9 ? css.high : ""} style={{ width: `${share * 100}%` }} />
        </div>
      )}
      <p class="small quiet">
        {limit === null ? "No limit. " : ""}
        {note}
      </p>
    </div>
  );
}
