// Pictures of every page in target/screenshots, light and dark, on wide and narrow screens: `make ui-screenshots`.

import { test } from "@playwright/test";

import { Dashboard, PATHS } from "./dashboard.ts";
import { apiClient, readProgram } from "./environment.ts";

const FOLDER = process.env.TIDEMARK_SCREENSHOTS ?? "../target/screenshots";
const SIZES = [
  { width: 1280, height: 900 },
  { width: 360, height: 780 },
];
const SCHEMES = ["light", "dark"] as const;

/** The addresses of the records that gained most. */
async function findRecords() {
  const api = apiClient(readProgram());
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
  };
}

for (const viewport of SIZES) {
  for (const colorScheme of SCHEMES) {
    test.describe(`${viewport.width} px, ${colorScheme}`, () => {
      test.use({ viewport, colorScheme, contextOptions: { reducedMotion: "reduce" } });
      test.setTimeout(300_000);

      test("pictures", async ({ page }) => {
        const dashboard = new Dashboard(page);
        const save = (name: string) => page.screenshot({ path: `${FOLDER}/${name}-${viewport.width}-${colorScheme}.png`, fullPage: true });
        for (const [name, path] of Object.entries({ ...PATHS, ...(await findRecords()) })) {
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
        await page.evaluate(() => sessionStorage.clear());
        await page.reload();
        await save("sign-in");
      });
    });
  }
}
