// Pictures of accounts and posts: copies on the server of the page, or initials in their place.

import type { Locator, Page } from "@playwright/test";

import { copyPath } from "../src/components/picture.tsx";
import { PATHS } from "./dashboard.ts";
import { apiClient, type World } from "./environment.ts";
import { expect, expectAccessible, test } from "./fixtures.ts";

const INITIALS = /^[A-Z0-9]{1,2}$/;
/** Posts that have covers: the APIs of the platforms tell none of videos. */
const POSTS = `${PATHS.Content}?platform=instagram&media_type=image,carousel&sort=-create_time`;

function client({ baseUrl, keys }: World) {
  return apiClient({ baseUrl, key: keys.pictured });
}

/** Accounts whose pictures were copied, and posts with covers, of which all were. */
async function fetchRecords(world: World) {
  const query = {
    platform: "instagram" as const,
    media_type: ["image", "carousel"],
    order_by: "create_time" as const,
  };
  const [accounts, posts] = await Promise.all([
    client(world).GET("/accounts"),
    client(world).GET("/content", { params: { query } }),
  ]);
  return {
    accounts: accounts.data?.data.filter(({ id }) => id !== world.accountWithoutPicture) ?? [],
    posts: posts.data?.data ?? [],
  };
}

/** Checks that rows show the copies of the API's pictures, and initials where there is none. */
async function expectPictures(rows: Locator, urls: readonly (string | null)[]): Promise<void> {
  await expect(rows).toHaveCount(urls.length);
  for (const [position, url] of urls.entries()) {
    const images = rows.nth(position).locator(".picture img");
    if (copyPath(url) === null) await expect(images).toHaveCount(0);
    else await expect(images).toHaveAttribute("src", copyPath(url) ?? "");
    await expect(rows.nth(position).locator(".picture")).toHaveText(INITIALS);
  }
}

async function expectShown(image: Locator): Promise<void> {
  await image.scrollIntoViewIfNeeded();
  await expect(image).toBeVisible();
  await expect
    .poll(() => image.evaluate((image: HTMLImageElement) => image.complete && image.naturalWidth))
    .toBeGreaterThan(0);
}

test("rankings show the pictures of their records", async ({ dashboard, world }) => {
  await dashboard.open(`${PATHS.Overview}?platform=instagram`, world.keys.pictured);
  const query = { period: "30d", include_today: false, platform: "instagram", limit: 7 } as const;
  const params = { query };
  const [content, accounts] = await Promise.all([
    client(world).GET("/content/top", { params }),
    client(world).GET("/accounts/top", { params }),
  ]);
  await expectPictures(
    dashboard.table("Top content").rows,
    content.data?.data.map((post) => post.cover_image_url) ?? [],
  );
  await expectPictures(
    dashboard.table("Top accounts").rows,
    accounts.data?.data.map((account) => account.profile_pic_url) ?? [],
  );
  await expectShown(dashboard.table("Top accounts").rows.locator(".picture img").first());
});

for (const layout of ["table", "grid"] as const) {
  test(`the ${layout} of posts shows their covers`, async ({ dashboard, page, world }) => {
    const { posts } = await fetchRecords(world);
    await dashboard.open(`${POSTS}&layout=${layout}`, world.keys.pictured);
    const items =
      layout === "grid" ? dashboard.card("Posts").getByRole("listitem") : dashboard.table("Content").rows;
    await expectPictures(
      items,
      posts.map((post) => post.cover_image_url),
    );
    await expectShown(items.locator(".picture img").first());
    await expectAccessible(page, `${layout} with covers`);
    await page.emulateMedia({ colorScheme: "dark" });
    await expectAccessible(page, `${layout} with covers, dark`, "looks");
  });
}

test("the table of accounts shows their pictures, and initials of the one that has none", async ({
  dashboard,
  page,
  world,
}) => {
  const { accounts } = await fetchRecords(world);
  await dashboard.open(PATHS.Accounts, world.keys.pictured);
  const rowOf = (id: string) =>
    dashboard.table("Accounts").rows.filter({ has: page.locator(`a[href*="${id}"]`) });
  for (const { id, profile_pic_url } of accounts) {
    await expectPictures(rowOf(id), [profile_pic_url]);
    await expectShown(rowOf(id).locator(".picture img"));
  }
  const { data } = await client(world).GET("/accounts/{account_id}", {
    params: { path: { account_id: world.accountWithoutPicture } },
  });
  expect(data?.data.profile_pic_url).toMatch(/^http/);
  expect(data?.data.profile_pic_url).toBe(data?.data.profile_pic_url_original);
  await expectPictures(rowOf(world.accountWithoutPicture), [null]);
  await expectAccessible(page, "accounts with pictures");
});

test("a record shows its own picture, and a creator that of an account", async ({
  dashboard,
  page,
  world,
}) => {
  const request = page.waitForRequest("**/media/*.webp");
  const {
    accounts,
    posts: [post],
  } = await fetchRecords(world);
  const shown = dashboard.picture.locator("img");
  for (const account of accounts) {
    await dashboard.open(`${PATHS.Accounts}/${account.id}`, world.keys.pictured);
    await expect(shown).toHaveAttribute("src", copyPath(account.profile_pic_url) ?? "");
    await expectShown(shown);
  }
  expect(await (await request).headerValue("referer")).toBeNull();
  await dashboard.open(`${PATHS.Content}/${post?.id}`, world.keys.pictured);
  await expect(shown).toHaveAttribute("src", copyPath(post?.cover_image_url) ?? "");
  await expectShown(shown);
  const linked = accounts.find(({ creator_id }) => creator_id !== null);
  await dashboard.open(`${PATHS.Creators}/${linked?.creator_id}`, world.keys.pictured);
  await expectShown(shown);
  await expectShown(dashboard.table("Accounts").rows.locator(".picture img").first());
});

test("the palette shows pictures", async ({ dashboard, page, world }) => {
  const {
    accounts: [account],
  } = await fetchRecords(world);
  await dashboard.open(PATHS.API, world.keys.pictured);
  await page.keyboard.press("/");
  await page.keyboard.type(account?.username ?? "");
  const hit = dashboard.palette.hits.filter({
    hasText: `@${account?.username}`,
    has: page.locator(`img[src="${copyPath(account?.profile_pic_url)}"]`),
  });
  await expectShown(hit.locator("img"));
});

test("accounts are loaded once more after they were read, because copies follow", async ({
  dashboard,
  page,
  world,
}) => {
  let isWaiting = true;
  let isRead = false;
  // After the one that says that they were read.
  let loads = 0;
  await page.route(/\/v2\/accounts\/top\?/, async (route) => {
    if (isRead) loads += 1;
    isRead = !isWaiting;
    const status = isRead ? "active" : "pending";
    const response = await route.fetch();
    const body = await response.json();
    body.data[0].tracking = { ...body.data[0].tracking, status };
    await route.fulfill({ response, json: body });
  });
  // News would load them, too.
  await page.route("**/v2/events/stream", () => {});
  await page.clock.install();
  await dashboard.open(PATHS.Accounts, world.keys.pictured);
  const waiting = dashboard.table("Accounts").rows.filter({ hasText: "Waiting" });
  await expect(waiting).toHaveCount(1);
  isWaiting = false;
  await expect(async () => {
    // What is due while they load would load them again.
    if (!isRead) await page.clock.runFor(1_000);
    await expect(waiting).toHaveCount(0, { timeout: 50 });
  }).toPass({ intervals: [20] });
  for (let passed = 0; passed < 3; passed++) {
    await page.clock.runFor(6_000);
    await dashboard.settled();
    await expect.poll(() => loads).toBe(1);
  }
});

/** Where everything is that may move. */
function boxes(page: Page) {
  return page.evaluate(() =>
    [...document.querySelectorAll("main, .page-head, .card, tbody tr, .grid li, .picture")].map((element) => {
      const { x, y, width, height } = element.getBoundingClientRect();
      return [element.className || element.localName, x, y, width, height];
    }),
  );
}

const PAGES: Readonly<Record<string, (world: World) => Promise<string> | string>> = {
  overview: () => PATHS.Overview,
  "table of accounts": () => PATHS.Accounts,
  "table of posts": () => POSTS,
  "grid of posts": () => `${POSTS}&layout=grid`,
  account: async (world) => `${PATHS.Accounts}/${(await fetchRecords(world)).accounts[0]?.id}`,
  post: async (world) => `${PATHS.Content}/${(await fetchRecords(world)).posts[0]?.id}`,
};

for (const outcome of ["loaded", "missing"] as const) {
  for (const [name, pathOf] of Object.entries(PAGES)) {
    test(`nothing moves when pictures are ${outcome}: ${name}`, async ({ dashboard, page, watch, world }) => {
      if (outcome === "missing") watch.allow(/status of 404/);
      let answer = () => {};
      const isAnswered = new Promise<void>((resolve) => (answer = resolve));
      await page.route("**/media/*.webp", async (route) => {
        await isAnswered;
        await (outcome === "loaded" ? route.continue() : route.fulfill({ status: 404 }));
      });
      await dashboard.open(await pathOf(world), world.keys.pictured);
      const picture = dashboard.main.locator(".picture:has(img)").first();
      await picture.scrollIntoViewIfNeeded();
      const before = await boxes(page);
      answer();
      if (outcome === "loaded") await expectShown(picture.locator("img"));
      else await expect(picture.locator("img")).toBeHidden();
      await expect(picture).toHaveText(INITIALS);
      expect(await boxes(page)).toEqual(before);
    });
  }
}
