// What the browser runs against. Tests get a world of their own from tests/dashboard; screenshots and measurements use a running
// program: TIDEMARK_BASE_URL with TIDEMARK_API_KEY, or else the demo of this checkout.

import { readFileSync } from "node:fs";

import createClient from "openapi-fetch";

import type { paths } from "../src/api/schema.d.ts";

/** What tests/dashboard has prepared. */
export interface World {
  /** Of the API, with its version. */
  baseUrl: string;
  /** Of an API on the same databases that may be stopped, and whose ClickHouse may be. */
  outageUrl: string;
  /** `POST {controlUrl}/{action}` changes the world. */
  controlUrl: string;
  keys: {
    write: string;
    read: string;
    /** Of an organization without accounts. */
    empty: string;
    /** Of an organization that tracks nothing yet. */
    adding: string;
    /** Of an organization that imports files. */
    importing: string;
    /** Of an organization whose pictures are copied. */
    pictured: string;
    /** Works until the action `revoke-key`. */
    revocable: string;
  };
  /** What the service clock is ahead of the machine's, in milliseconds. */
  clockOffset: number;
  /** Lines that add an account of the sandbox each. */
  addable: string[];
  /** The id of the only account of the organization with pictures whose own was not copied: its URL is the platform's. */
  accountWithoutPicture: string;
}

export type Action = "stop-clickhouse" | "start-clickhouse" | "stop-api" | "revoke-key";

export function readWorld(): World {
  const text = process.env.TIDEMARK_BROWSER_WORLD;
  if (!text) throw new Error("these tests are run by `make test`: TIDEMARK_BROWSER_WORLD is not set");
  return JSON.parse(text) as World;
}

/** Changes the world, and returns when it is changed. */
export async function act(action: Action): Promise<void> {
  const response = await fetch(`${readWorld().controlUrl}/${action}`, { method: "POST" });
  if (!response.ok) throw new Error(`${action}: ${response.status} ${await response.text()}`);
}

export interface Program {
  baseUrl: string;
  key: string;
}

export function readProgram(): Program {
  const { TIDEMARK_BASE_URL: baseUrl, TIDEMARK_API_KEY: key } = process.env;
  if (baseUrl && key) return { baseUrl, key };
  const file = new URL("../../.tidemark/demo.json", import.meta.url);
  try {
    const { base_url, api_key } = JSON.parse(readFileSync(file, "utf8")) as {
      base_url: string;
      api_key: string;
    };
    return { baseUrl: base_url, key: api_key };
  } catch {
    throw new Error("start the demo first (make demo), or set TIDEMARK_BASE_URL and TIDEMARK_API_KEY");
  }
}

/** The address of the dashboard that is tested or shown. */
export function dashboardUrl(): string {
  return new URL("/", process.env.TIDEMARK_BROWSER_WORLD ? readWorld().baseUrl : readProgram().baseUrl).href;
}

/** A client of the API: what the pages have to agree with. */
export function apiClient({ baseUrl, key }: Program) {
  return createClient<paths>({
    baseUrl,
    headers: { Authorization: `Bearer ${key}` },
    querySerializer: { array: { style: "form", explode: false }, object: { style: "form", explode: true } },
  });
}
