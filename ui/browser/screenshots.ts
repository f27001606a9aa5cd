// Pictures of every page in target/screenshots, light and dark, on narrow and wide screens, with names from right to left, and on
// paper: `make ui-screenshots`. Of another organization, such as an empty or a large one: with its TIDEMARK_API_KEY, and
// TIDEMARK_SCREENSHOTS for their folder.

import { type Page, test } from "@playwright/test";

import { Dashboard, PATHS } from "./dashboard.ts";
import { apiClient, readProgram } from "./environment.ts";

const FOLDER = process.env.TIDEMARK_SCREENSHOTS ?? "../target/screenshots";
const SIZES = [
  { width: 1920, height: 1080 },
  { width: 1280, height: 900 },
  { width: 360, height: 780 },
];
/** What A4 leaves between its margins. */
const PAPER = { width: 703, height: 1_000 };
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
async function findRecords(): Promise<Record<string, string>> {
  const api = apiClient(readProgram());
  const first = async (status: "failing" | "unavailable") =>
    (await api.GET("/accounts", { params: { query: { status: [status], limit: 1 } } })).data?.data[0]?.id;
  const params = { query: { period: "30d", limit: 1 } } as const;
  const [content, accounts, creators, collections] = await Promise.all([
    api.GET("/content/top", { params }),
    api.GET("/accounts/top", { params }),
    api.GET("/creators/top", { params: { query: { ...params.query, limit: 3 } } }),
    api.GET("/collections", { params: { query: { limit: 1 } } }),
  ]);
  const ids = {
    post: ["content", content.data?.data[0]?.id],
    account: ["accounts", accounts.data?.data[0]?.id],
    creator: ["creators", creators.data?.data[0]?.id],
    collection: ["collections", collections.data?.data[0]?.id],
    failing: ["accounts", await first("failing")],
    unavailable: ["accounts", await first("unavailable")],
  };
  const addresses = Object.entries(ids).flatMap(([name, [path, id]]) =>
    id ? [[name, `/${path}/${id}`]] : [],
  );
  const compared = creators.data?.data.map(({ id }) => id) ?? [];
  if (compared.length > 1) addresses.push(["comparison", `/creators?creators=${compared.join()}`]);
  return Object.fromEntries(addresses);
}

function savePictures(page: Page, form: string) {
  return async (name: string) => {
    // What is loaded when it comes near the screen.
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    await new Dashboard(page).settled();
    await page.evaluate(() => scrollTo(0, 0));
    await page.screenshot({ path: `${FOLDER}/${name}-${form}.png`, fullPage: true });
  };
}

/** Names and captions as they are in Arabic and Hebrew, with Latin letters and digits between them. */
const FROM_RIGHT_TO_LEFT: Readonly<Record<string, string>> = {
  name: "مقهى الأمواج 24 (Salt & Tide)",
  creator_name: "מרתה סוארש",
  description: "أول موجة في الموسم 🌊 #surf مع @salt.and.tide — 50% خصم",
  category: "قهوة",
};

async function writeFromRightToLeft(page: Page): Promise<void> {
  await page.route(/\/v2\/(?!events\/stream)/, async (route) => {
    const response = await route.fetch();
    const text = await response.text();
    const body = JSON.parse(text || "null", (name, value: unknown) =>
      typeof value === "string" ? (FROM_RIGHT_TO_LEFT[name] ?? value) : value,
    ) as unknown;
    await route.fulfill({ response, json: body });
  });
}

async function pages(): Promise<Record<string, string>> {
  return { ...PATHS, ...(await findRecords()) };
}

test.describe("from right to left", () => {
  test.use({ viewport: { width: 1280, height: 900 }, contextOptions: { reducedMotion: "reduce" } });
  test.setTimeout(300_000);

  test("pictures", async ({ page }) => {
    const dashboard = new Dashboard(page);
    await writeFromRightToLeft(page);
    for (const [name, path] of Object.entries(await pages())) {
      await dashboard.open(path, readProgram().key);
      await savePictures(page, "right-to-left")(name.toLowerCase());
    }
  });
});

test.describe("on paper", () => {
  test.use({ viewport: PAPER, contextOptions: { reducedMotion: "reduce" } });
  test.setTimeout(300_000);

  test("pictures", async ({ page }) => {
    const dashboard = new Dashboard(page);
    for (const [name, path] of Object.entries(await pages())) {
      await page.emulateMedia({ media: "screen" });
      await dashboard.open(path, readProgram().key);
      await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
      await dashboard.settled();
      await page.emulateMedia({ media: "print" });
      await page.screenshot({ path: `${FOLDER}/${name.toLowerCase()}-paper.png`, fullPage: true });
    }
  });
});

for (const viewport of SIZES) {
  for (const colorScheme of SCHEMES) {
    test.describe(`${viewport.width} px, ${colorScheme}`, () => {
      test.use({ viewport, colorScheme, contextOptions: { reducedMotion: "reduce" } });
      test.setTimeout(300_000);

      test("pictures", async ({ page }) => {
        const dashboard = new Dashboard(page);
        const save = savePictures(page, `${viewport.width}-${colorScheme}`);
        for (const [name, path] of Object.entries({ ...(await pages()), ...VARIANTS })) {
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
        await page.screenshot({ path: `${FOLDER}/sign-in-${viewport.width}-${colorScheme}.png` });
      });
    });
  }
}
