// The `test` of all specs. In every test the page must stay without console errors, violations of its content security policy, and
// requests to other hosts.

import AxeBuilder from "@axe-core/playwright";
import { type BrowserContext, test as base, expect, type Page } from "@playwright/test";

import { Dashboard } from "./dashboard.ts";
import { readWorld, type World } from "./environment.ts";

const WCAG_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];

/** Records what a page must not do. */
export class Watch {
  readonly faults: string[] = [];
  readonly #allowed: RegExp[] = [];
  readonly #hosts: ReadonlySet<string>;

  constructor(context: BrowserContext, hosts: readonly string[]) {
    this.#hosts = new Set(hosts);
    context.on("console", (message) => {
      if (message.type() === "error") this.#add(`console: ${message.text()} (${message.location().url})`);
    });
    context.on("weberror", (error) =>
      this.#add(`exception: ${error.error().stack ?? error.error().message}`),
    );
    context.on("request", (request) => {
      const { protocol, host } = new URL(request.url());
      if (protocol.startsWith("http") && !this.#hosts.has(host))
        this.#add(`request to another host: ${request.url()}`);
    });
  }

  /** Faults that this test causes on purpose. */
  allow(pattern: RegExp): void {
    this.#allowed.push(pattern);
  }

  #add(fault: string): void {
    if (!this.#allowed.some((pattern) => pattern.test(fault))) this.faults.push(fault);
  }
}

interface Fixtures {
  world: World;
  watch: Watch;
  dashboard: Dashboard;
}

export const test = base.extend<Fixtures>({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads from it which fixtures are needed
  world: async ({}, use) => use(readWorld()),
  watch: [
    async ({ context, world }, use) => {
      const watch = new Watch(
        context,
        [world.baseUrl, world.outageUrl].map((url) => new URL(url).host),
      );
      // Alone where the service clock is moved: Playwright's clock replaces timers, too.
      if (world.clockOffset !== 0) await context.clock.setSystemTime(Date.now() + world.clockOffset);
      await use(watch);
      // Answers of tests may be under way.
      for (const page of context.pages()) await page.unrouteAll({ behavior: "ignoreErrors" });
      expect(watch.faults).toEqual([]);
    },
    { auto: true },
  ],
  dashboard: async ({ page }, use) => use(new Dashboard(page)),
});

/** What depends on colours and sizes. */
const LOOKS = ["color-contrast", "target-size"];
/** Rows of a table are alike. */
const REPEATED_ROWS = "tbody tr:nth-child(n+16)";

/**
 * Checks the page, or what a selector finds, by the rules of WCAG 2.2 AA that a program can check; `looks` only, where the rest was
 * checked before.
 */
export async function expectAccessible(
  page: Page,
  what: string,
  rules: "all" | "looks" = "all",
  within = "html",
): Promise<void> {
  const axe = new AxeBuilder({ page }).include(within).exclude(REPEATED_ROWS);
  const { violations } = await (rules === "all" ? axe.withTags(WCAG_TAGS) : axe.withRules(LOOKS)).analyze();
  const texts = violations.map(
    ({ id, help, nodes }) =>
      `${id}: ${help}; ${nodes.length} of ${nodes
        .slice(0, 3)
        .map(({ html, failureSummary }) => `${html} ${failureSummary ?? ""}`)
        .join("\n")}`,
  );
  expect(texts, `${what} is accessible`).toEqual([]);
}

/** Checks that the page as a whole does not scroll sideways, once charts have taken its width. */
export async function expectNoSidewaysScroll(page: Page, what: string): Promise<void> {
  const findWide = () =>
    page.evaluate(() => {
      const { scrollWidth, clientWidth } = document.documentElement;
      if (scrollWidth <= clientWidth) return null;
      const outside = [...document.querySelectorAll("body *")].filter(
        (element) => element.getBoundingClientRect().right > clientWidth + 1,
      );
      return `${scrollWidth} of ${clientWidth} px: ${outside
        .slice(0, 5)
        .map((element) => element.outerHTML.slice(0, 120))
        .join(" ")}`;
    });
  await expect.poll(findWide, { message: `${what} does not scroll sideways` }).toBeNull();
}

export { expect };
