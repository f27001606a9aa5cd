// The CSV of a table is what the table shows.

import { readFileSync } from "node:fs";

import { change, exact, rate, times } from "../src/format.ts";
import { type Cell, PATHS, type Table } from "./dashboard.ts";
import { expect, test } from "./fixtures.ts";

/** The rows of a CSV by the names of its columns (RFC 4180). */
function parseCsv(text: string): Map<string, string>[] {
  const rows: string[][] = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain ?? "");
    if (end !== ",") rows.push([]);
  }
  rows.pop();
  const [names = [], ...records] = rows;
  return records.map((fields) => new Map(fields.map((field, column) => [names[column] ?? "", field])));
}

const MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec";

/** How a cell may show a value of the CSV: in full, or in the title, or in words. */
function shows({ text, title }: Cell, value: string): boolean {
  if (value === "") return /^(–|new|.*(without|alone|nobody).*)?$/i.test(text);
  const number = Number(value);
  if (!Number.isNaN(number)) {
    return (
      title === exact(number) ||
      text === exact(number) ||
      text === rate(number) ||
      text === change(number) ||
      text === times(number)
    );
  }
  const [, year, month, day] = /^(\d{4})-(\d{2})-(\d{2})/.exec(value) ?? [];
  if (year)
    return [text, title].some((shown) =>
      shown?.startsWith(`${Number(day)} ${MONTHS.slice(3 * Number(month) - 3, 3 * Number(month))}`),
    );
  // Spreadsheets do not read text behind an apostrophe as a formula.
  const plain = value.replace(/^'/, "").toLowerCase();
  return [plain, plain.replaceAll("_", " ")].some((words) =>
    `${text} ${title ?? ""}`.toLowerCase().includes(words),
  );
}

async function expectCsvShowsTable(table: Table): Promise<void> {
  await expect(table.csv).toBeEnabled();
  const button = await table.openCsv();
  const [download] = await Promise.all([table.card.page().waitForEvent("download"), button.click()]);
  expect(download.suggestedFilename()).toMatch(/^[a-z-]+\.csv$/);
  const records = parseCsv(readFileSync(await download.path(), "utf8"));
  const rows = await table.read();
  expect(records.length).toBe(rows.length);
  expect(records.length).toBeGreaterThan(0);
  const columns = [...(rows[0]?.keys() ?? [])];
  const shared = [...(records[0]?.keys() ?? [])].filter((name) => columns.includes(name));
  expect(shared.length, `columns of the CSV, ${columns.join(", ")}`).toBeGreaterThanOrEqual(2);
  const differences = rows.flatMap((row, position) =>
    shared.flatMap((name) => {
      const [cell, value] = [row.get(name), records[position]?.get(name)];
      return cell && value !== undefined && shows(cell, value)
        ? []
        : [{ row: position, name, value, ...cell }];
    }),
  );
  expect(differences).toEqual([]);
}

const TABLES: readonly [path: string, names: string[]][] = [
  [PATHS.Overview, ["Top content", "Breakouts", "Top accounts", "Top creators"]],
  ["/content?period=30d", ["Content"]],
  ["/content?sort=-view_count&period=7d", ["Content"]],
  [PATHS.Accounts, ["Accounts"]],
  [PATHS.Creators, ["Creators"]],
  [PATHS.Tracking, ["Not updating"]],
];

for (const [path, names] of TABLES) {
  test(`the CSV of each table of ${path} is what it shows`, async ({ dashboard, world }) => {
    await dashboard.open(path, world.keys.write);
    for (const name of names) await expectCsvShowsTable(dashboard.table(name));
  });
}

test("the CSV of a list waits for what its posts gained", async ({ dashboard, page, world }) => {
  let release = () => {};
  const isReleased = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route(/\/v2\/videos\/metrics/, async (route) => {
    await isReleased;
    await route.continue();
  });
  await dashboard.open("/content?sort=-view_count&period=7d", world.keys.write);
  const { csv, rows } = dashboard.table("Content");
  await expect(rows.first()).toBeVisible();
  await expect(csv).toBeDisabled();
  release();
  await expect(csv).toBeEnabled();
});

test("a list that is loaded completely is sorted without a request, as the API sorts it", async ({
  dashboard,
  page,
  world,
}) => {
  await dashboard.open(`${PATHS.Accounts}?sort=username`, world.keys.write);
  const { headings, rows } = dashboard.table("Accounts");
  const requests: string[] = [];
  // The identity is requested now and then, and the stream of events opens.
  page.on("request", (request) => {
    if (!/\/(whoami|events\/stream)$/.test(request.url())) requests.push(request.url());
  });
  for (const name of ["Followers", "Posts", "Account"]) {
    const heading = headings.filter({ hasText: name }).first();
    await heading.getByRole("button").click();
    await expect(heading).toHaveAttribute("aria-sort", "descending");
    const order = await rows.allTextContents();
    expect(requests).toEqual([]);
    await page.reload();
    await dashboard.settled();
    expect(await rows.allTextContents()).toEqual(order);
    requests.length = 0;
  }
});

test("a long table is sorted to its end, in elements that stay where they are", async ({
  dashboard,
  page,
  world,
}) => {
  const names = Array.from({ length: 120 }, (_, n) => `account${1_000 + n}`);
  await page.route(/\/v2\/accounts\?/, async (route) => {
    const response = await route.fetch();
    const { data, ...rest } = await response.json();
    const rows = names.map((username) => ({ ...data[0], id: crypto.randomUUID(), username }));
    const pagination = { has_next: false, next_cursor: null, limit: 200 };
    await route.fulfill({ response, json: { ...rest, data: rows, pagination } });
  });
  const meta = { start_date: "2026-01-01", end_date: "2026-01-30", data_as_of: null, dates: [] };
  await page.route(/\/v2\/accounts\/(metrics|timeseries)/, (route) =>
    route.fulfill({ json: { data: {}, meta: { ...meta, complete_through: "2026-01-30" } } }),
  );
  await dashboard.open(`${PATHS.Accounts}?sort=username`, world.keys.read);
  const { headings, rows } = dashboard.table("Accounts");
  const shown = () => rows.getByRole("link").allTextContents();
  await expect.poll(shown).toEqual(names.map((name) => `@${name}`));
  const last = await rows.last().elementHandle();
  await headings.filter({ hasText: "Account" }).getByRole("button").click();
  await expect.poll(shown).toEqual(names.map((name) => `@${name}`).toReversed());
  expect(await rows.last().evaluate((row, before) => row === before, last)).toBe(true);
});

test("a second click on a gain asks for the losses first", async ({ dashboard, page, world }) => {
  // The response is irrelevant: this checks the requests.
  await page.route(/order_direction=asc/, async (route) => {
    const response = await route.fetch({ url: route.request().url().replace("&order_direction=asc", "") });
    const { data, ...rest } = await response.json();
    await route.fulfill({ response, json: { ...rest, data: data.toReversed() } });
  });
  for (const [path, name, column] of [
    [PATHS.Accounts, "Accounts", "New followers"],
    [PATHS.Creators, "Creators", "New followers"],
    [PATHS.Content, "Content", "Likes gained"],
  ] as const) {
    await dashboard.open(path, world.keys.write);
    const { headings, rows } = dashboard.table(name);
    const heading = headings.filter({ hasText: column });
    await heading.getByRole("button").click();
    await expect(heading).toHaveAttribute("aria-sort", "descending");
    await dashboard.settled();
    const first = await rows.first().getByRole("link").first().getAttribute("href");
    const [request] = await Promise.all([
      page.waitForRequest(/\/top\?.*order_direction=asc/),
      heading.getByRole("button").click(),
    ]);
    expect(new URL(request.url()).searchParams.get("metric")).toBe(
      column === "Likes gained" ? "likes" : "followers",
    );
    await expect(heading).toHaveAttribute("aria-sort", "ascending");
    await dashboard.settled();
    await expect(rows.first().getByRole("link").first()).not.toHaveAttribute("href", first ?? "");
  }
});

test("more accounts than a list has that are not active leave no status unknown", async ({
  dashboard,
  page,
  world,
}) => {
  await page.route(/\/v2\/accounts\/top/, async (route) => {
    const response = await route.fetch();
    const { data, ...rest } = await response.json();
    const tracking = { status: "failing", last_error: null, last_attempt_at: null, next_attempt_at: null };
    await route.fulfill({
      response,
      json: { ...rest, data: data.map((account: object) => ({ ...account, is_active: true, tracking })) },
    });
  });
  await page.route(/\/v2\/accounts\?/, async (route) => {
    const response = await route.fetch();
    const { pagination, ...rest } = await response.json();
    await route.fulfill({
      response,
      json: { ...rest, data: [], pagination: { ...pagination, next_cursor: "more" } },
    });
  });
  await dashboard.open(PATHS.Accounts, world.keys.write);
  const { rows } = dashboard.table("Accounts");
  const failing = rows.filter({ hasText: "Failing" });
  await expect(failing).toHaveCount(await rows.count());
});

test("searching keeps the columns and their order", async ({ dashboard, page, world }) => {
  for (const [path, name, label] of [
    [PATHS.Accounts, "Accounts", "Username contains"],
    [PATHS.Creators, "Creators", "Name contains"],
  ] as const) {
    await dashboard.open(path, world.keys.write);
    const { headings } = dashboard.table(name);
    const before = (await headings.allTextContents()).map((text) => text.replace(/[↑↓]$/, ""));
    await page.getByRole("searchbox", { name: label }).fill("a");
    await expect(page).toHaveURL(/[?&]q=a(&|$)/);
    await dashboard.settled();
    const after = (await headings.allTextContents()).map((text) => text.replace(/[↑↓]$/, ""));
    expect(after.filter((heading) => before.includes(heading))).toEqual(before);
  }
});

for (const [path, name, file] of [
  [PATHS.Accounts, "Accounts", "accounts"],
  [PATHS.Content, "Posts", "content"],
  [PATHS.Creators, "Creators", "creators"],
] as const) {
  test(`all rows of ${name} are saved by the export of the API`, async ({ dashboard, page, world }) => {
    await dashboard.open(`${path}?period=7d&q=a`, world.keys.write);
    const button = await dashboard.openMenu(name, "Save all as CSV");
    const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
    expect(download.suggestedFilename()).toBe(`${file}.csv`);
    const saved = readFileSync(await download.path(), "utf8");
    const url = new URL(`/export/${file}.csv?period=7d&include_today=false&q=a`, world.baseUrl);
    const answer = await fetch(url, { headers: { Authorization: `Bearer ${world.keys.write}` } });
    expect(saved).toBe(await answer.text());
    expect(parseCsv(saved).length).toBeGreaterThan(0);
  });
}
