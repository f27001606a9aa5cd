// Pictures of every page in target/screenshots, light and dark, on wide and narrow screens: `make ui-screenshots`.

import { test } from "@playwright/test";

import { Dashboard, PATHS } from "./dashboard.ts";
import { apiClient, readProgram } from "./environment.ts";

const FOLDER = process.env.TIDEMARK_SCREENSHOTS ?? "../target/screenshots";
const SIZES = [
  { width: 1280, height: 900 },
  { width: 360, height: 780 },
];
const VARIANTS = {
  grid: "/content?layout=grid",
  filters: "/content?kind=tracked&period=90d&sort=-create_time",
  split: "/?split=platform&period=90d&metric=engagement_rate",
  "not-updating": "/accounts?status=failing",
  "no-match": "/accounts?q=nothinghasthisname",
  coverage: "/tracking?period=90d",
  "new-collection": "/collections?edit=true",
};
const SCHEMES = ["light", "dark"] as const;

/** The addresses of the records that gained most, and of some that do not update. */
async function findRecords() {
  const api = apiClient(readProgram());
  const first = async (status: "failing" | "unavailable") =>
    (await api.GET("/accounts", { params: { query: { status: [status], limit: 1 } } })).data?.data[0]?.id;
  const params = { query: { period: "30d", limit: 1 } } as const;
  const [content, accounts, creators] = await Promise.all([
    api.GET("/content/top", { params }),
    api.GET("/accounts/top", { params }),
    api.GET("/creators/top", { params: { query: { ...params.query, limit: 3 } } }),
  ]);
  return {
    post: `/content/${content.data?.data[0]?.id}`,
    account: `/accounts/${accounts.data?.data[0]?.id}`,
    creator: `/creators/${creators.data?.data[0]?.id}`,
    comparison: `/creators?creators=${creators.data?.data.map(({ id }) => id).join()}`,
    failing: `/accounts/${await first("failing")}`,
    unavailable: `/accounts/${await first("unavailable")}`,
  };
}

for (const viewport of SIZES) {
  for (const colorScheme of SCHEMES) {
    test.describe(`${viewport.width} px, ${colorScheme}`, () => {
      test.use({ viewport, colorScheme, contextOptions: { reducedMotion: "reduce" } });
      test.setTimeout(300_000);

      test("pictures", async ({ page }) => {
        const dashboard = new Dashboard(page);
        const save = (name: string) =>
          page.screenshot({ path: `${FOLDER}/${name}-${viewport.width}-${colorScheme}.png`, fullPage: true });
        for (const [name, path] of Object.entries({ ...PATHS, ...VARIANTS, ...(await findRecords()) })) {
          await dashboard.open(path, readProgram().key);
          await save(name.toLowerCase());
        }
        await dashboard.open(PATHS.Accounts, readProgram().key);
        await dashboard.addAccounts.click();
        await save("adding");
        await page.keyboard.press("Control+k");
        await dashboard.palette.input.fill("an");
        await dashboard.palette.hits.first().waitFor();
        await save("search");
        await page.keyboard.press("Escape");
        await page.route(/\/v2\/(?!whoami)/, (route) =>
          route.fulfill({
            status: 503,
            json: {
              detail: "the analytics store did not answer",
              code: "UNAVAILABLE",
              request_id: "01a2192b-eaee-72d0-ba65-c875c1ecf6c8",
            },
          }),
        );
        for (const name of ["Overview", "Accounts", "Tracking"] as const) {
          await dashboard.open(PATHS[name], readProgram().key);
          await save(`down-${name.toLowerCase()}`);
        }
        await page.evaluate(() => sessionStorage.clear());
        await page.reload();
        await save("sign-in");
      });
    });
  }
}
