// Times of the dashboard with a processor that is slowed down, beside the budgets: `make bench-ui`. Nothing is asserted.

import { type Browser, expect, type Page, test } from "@playwright/test";

import { Dashboard, PATHS } from "./dashboard.ts";
import { readProgram } from "./environment.ts";

const SLOWDOWN = 4;
const RUNS = Number(process.env.TIDEMARK_BENCH_RUNS ?? 7);

const budgets: { name: string; budget: number; times: number[] }[] = [];

function record(name: string, budget: number, time: number): void {
  const row = budgets.find((row) => row.name === name);
  if (row) row.times.push(time);
  else budgets.push({ name, budget, times: [time] });
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

async function openSlowPage(browser: Browser): Promise<Page> {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.addInitScript(installClock);
  const session = await context.newCDPSession(page);
  await session.send("Emulation.setCPUThrottlingRate", { rate: SLOWDOWN });
  return page;
}

function firstChart(page: Page): Promise<number> {
  return page.evaluate(() => (window as unknown as BenchWindow).firstChart);
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
      read === "chart"
        ? clock.chart()
        : (document.querySelector("main tbody tr:not([aria-hidden])")?.textContent ?? null);
    const before = current();
    return clock.painted(() => current() !== null && current() !== before).then((time) => time - clock.acted);
  }, read);
  await act();
  return shown;
}

async function measureCharts(browser: Browser): Promise<void> {
  const page = await openSlowPage(browser);
  const dashboard = new Dashboard(page);
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
  const page = await openSlowPage(browser);
  const dashboard = new Dashboard(page);
  await dashboard.open(`${PATHS.Accounts}?sort=-total_post_count`, readProgram().key);
  const { headings, rows } = dashboard.table("Accounts");
  while (await dashboard.showMore.isVisible()) {
    await dashboard.showMore.click();
    await dashboard.settled();
  }
  const name = `sorting ${await rows.count()} rows`;
  for (const column of ["Account", "Followers"]) {
    record(
      name,
      50,
      await timeUntilChanged(page, "first row", () =>
        headings.filter({ hasText: column }).first().getByRole("button").click(),
      ),
    );
    await dashboard.settled();
  }
  await page.context().close();
}

test("times beside the budgets", async ({ browser, baseURL }) => {
  test.setTimeout(600_000);
  for (let run = 0; run < RUNS; run++) {
    await measureCharts(browser);
    await measureSorting(browser);
  }
  const rows = budgets.map(({ name, budget, times }) => {
    const sorted = times.map(Math.round).sort((a, b) => a - b);
    const quantile = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? 0;
    const verdict = quantile(0.5) <= budget ? "kept" : "missed";
    return [name, times.length, quantile(0.5), quantile(0.95), budget, verdict].join(" | ");
  });
  console.log(`${baseURL}, processor ${SLOWDOWN} times slower, milliseconds\n`);
  console.log(
    [
      "| Measure | Times | p50 | p95 | Budget | |",
      "|---|---:|---:|---:|---:|---|",
      ...rows.map((row) => `| ${row} |`),
    ].join("\n"),
  );
  expect(budgets).not.toHaveLength(0);
});
