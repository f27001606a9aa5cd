// The tests of the dashboard in a browser (`browser/*.spec.ts`), its screenshots and its measurements.

import { defineConfig } from "@playwright/test";

import { dashboardUrl } from "./browser/environment.ts";

export default defineConfig({
  testDir: "browser",
  outputDir: process.env.TIDEMARK_BROWSER_OUTPUT ?? "../target/browser",
  // A failure is not behind the names of what passed where a log is cut.
  reporter: [["dot"]],
  forbidOnly: true,
  retries: 0,
  fullyParallel: true,
  // The machines that run the tests have two cores, and run other tests at the same time.
  workers: 2,
  timeout: 60_000,
  expect: { timeout: 15_000 },
  use: {
    baseURL: dashboardUrl(),
    browserName: "chromium",
    viewport: { width: 1280, height: 900 },
    timezoneId: "America/New_York",
    screenshot: "only-on-failure",
    // Colours are checked as soon as a page is loaded, not while it fades in.
    contextOptions: { reducedMotion: "reduce" },
    launchOptions: {
      executablePath: process.env.TIDEMARK_TEST_CHROMIUM ?? "/usr/bin/chromium",
      // Chromium has no sandbox for root, and no test loads a page that is not ours.
      chromiumSandbox: false,
      args: ["--disable-gpu"],
    },
  },
  projects: [
    { name: "tests", testMatch: "*.spec.ts" },
    { name: "screenshots", testMatch: "screenshots.ts" },
    { name: "bench", testMatch: "bench.ts", workers: 1 },
  ],
});
