// Times of the dashboard with a processor that is slowed down, beside the budgets: `make bench-ui`. Each is printed when it is known,
// and what does not happen within a while ends the measurement with its name. Nothing is asserted.

import { type Browser, type CDPSession, expect, type Page, test } from "@playwright/test";

import { Dashboard, PATHS } from "./dashboard.ts";
import { readProgram } from "./environment.ts";

const SLOWDOWN = 4;
const RUNS = Number(process.env.TIDEMARK_BENCH_RUNS ?? 7);
/** Of the table that is sorted. */
const ROWS = 300;
/** The longest that anything may take. */
const MAX_WAIT_MS = 20_000;

const budgets: { name: string; budget: number; times: number[] }[] = [];

function record(name: string, budget: number, time: number): void {
  console.log(`${name}: ${Math.round(time)} ms`);
  const row = budgets.find((row) => row.name === name);
  if (row) row.times.push(time);
  else budgets.push({ name, budget, times: [time] });
}

/** What the page promises may never come, for example the chart of an organization without accounts. */
async function within<T>(what: string, page: Page, result: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`${page.url()} had no ${what} for ${MAX_WAIT_MS / 1_000} s`)),
      MAX_WAIT_MS,
    );
  });
  return Promise.race([result, late]).finally(() => clearTimeout(timer));
}

/** Set in every page before its scripts run. */
function installClock(): void {
  const clock = window as unknown as BenchWindow;
  for (const type of ["click", "change"])
    addEventListener(type, (event) => (clock.acted = event.timeStamp), true);
  clock.painted = (isShown) =>
    new Promise((resolve) => {
      const check = () => {
        if (!isShown()) return;
        observer.disconnect();
        // The next frame is painted before a task that it queues.
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
      };
      const observer = new MutationObserver(check);
      observer.observe(document, { subtree: true, childList: true, attributes: true });
      check();
    });
  clock.chart = () => document.querySelector("main figure svg path[d^=M]")?.getAttribute("d") ?? null;
  clock.firstChart = clock.painted(() => clock.chart() !== null);
}

interface BenchWindow {
  /** When the person last clicked or chose something. */
  acted: number;
  /** When a state was on screen. */
  painted: (isShown: () => boolean) => Promise<number>;
  /** The line of the first chart. */
  chart: () => string | null;
  firstChart: Promise<number>;
}

interface SlowPage {
  page: Page;
  dashboard: Dashboard;
  /** How many times slower the processor is from now on. */
  slowDown: (rate: number) => Promise<unknown>;
}

async function openPage(browser: Browser): Promise<SlowPage> {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.setDefaultTimeout(MAX_WAIT_MS);
  await page.addInitScript(installClock);
  const session: CDPSession = await context.newCDPSession(page);
  const slowDown = (rate: number) => session.send("Emulation.setCPUThrottlingRate", { rate });
  return { page, dashboard: new Dashboard(page), slowDown };
}

function firstChart(page: Page): Promise<number> {
  const drawn = page.evaluate(() => (window as unknown as BenchWindow).firstChart);
  return within("first chart", page, drawn);
}

/** Time from a person's action until the page shows that `read` has another value. */
async function timeUntilChanged(
  page: Page,
  read: "chart" | "first row",
  act: () => Promise<unknown>,
): Promise<number> {
  const shown = page.evaluate((read) => {
    const clock = window as unknown as BenchWindow;
    const current = () =>
      read === "chart" ? clock.chart() : (document.querySelector("main tbody tr")?.textContent ?? null);
    const before = current();
    return clock.painted(() => current() !== null && current() !== before).then((time) => time - clock.acted);
  }, read);
  // Of what went wrong, the action's failure says more.
  shown.catch(() => {});
  await act();
  return within(`other ${read}`, page, shown);
}

async function measureCharts(browser: Browser): Promise<void> {
  const { page, dashboard, slowDown } = await openPage(browser);
  await slowDown(SLOWDOWN);
  await page.goto(`/#key=${readProgram().key}`);
  record("first chart, cold", 1_000, await firstChart(page));
  await dashboard.settled();
  await page.goto("/");
  record("first chart, warm", 400, await firstChart(page));
  await dashboard.settled();
  for (const period of ["90d", "7d"]) {
    record(
      "change of period",
      200,
      await timeUntilChanged(page, "chart", () => dashboard.choosePeriod(period)),
    );
    await dashboard.settled();
  }
  await page.context().close();
}

async function measureSorting(browser: Browser): Promise<void> {
  const { page, dashboard, slowDown } = await openPage(browser);
  await dashboard.open(`${PATHS.Accounts}?sort=-total_post_count`, readProgram().key);
  const { headings, rows } = dashboard.table("Accounts");
  for (let count = await rows.count(); count < ROWS && (await dashboard.showMore.isVisible()); ) {
    await dashboard.showMore.click();
    await expect.poll(() => rows.count(), { timeout: MAX_WAIT_MS }).toBeGreaterThan(count);
    await dashboard.settled();
    count = await rows.count();
  }
  await page.evaluate(() => scrollTo(0, 0));
  const name = `sorting ${await rows.count()} rows`;
  await slowDown(SLOWDOWN);
  for (let run = 0; run < RUNS; run++) {
    for (const column of ["Account", "Followers"]) {
      const heading = headings.filter({ hasText: column }).first().getByRole("button");
      record(name, 50, await timeUntilChanged(page, "first row", () => heading.click()));
      await dashboard.settled();
    }
  }
  await page.context().close();
}

function report(baseURL: string | undefined): string {
  const rows = budgets.map(({ name, budget, times }) => {
    const sorted = times.map(Math.round).sort((a, b) => a - b);
    const quantile = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
    const verdict = quantile(0.5) <= budget ? "kept" : "missed";
    return [name, times.length, quantile(0.5), quantile(0.95), budget, verdict].join(" | ");
  });
  return [
    `\n${baseURL}, processor ${SLOWDOWN} times slower, milliseconds\n`,
    "| Measure | Times | p50 | p95 | Budget | |",
    "|---|---:|---:|---:|---:|---|",
    ...rows.map((row) => `| ${row} |`),
  ].join("\n");
}

test("times beside the budgets", async ({ browser, baseURL }) => {
  test.setTimeout(600_000);
  try {
    await measureSorting(browser);
    for (let run = 0; run < RUNS; run++) await measureCharts(browser);
  } finally {
    console.log(report(baseURL));
  }
  expect(budgets).not.toHaveLength(0);
});
