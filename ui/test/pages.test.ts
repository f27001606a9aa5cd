import assert from "node:assert/strict";
import { test } from "node:test";

import { type Page, usePages, useTotal } from "../src/api/pages.ts";
import { rendered } from "./rendering.ts";

interface List {
  key: string;
  sort: string;
}

let requests = 0;

/** Lists of three pages with a row each, which is called by its list, its order and its page. */
async function load({ key, sort }: List, cursor: string | null): Promise<Page<string>> {
  requests++;
  if (key === "down") throw new Error("the server is down");
  const page = Number(cursor ?? 1);
  return { rows: [`${key} ${sort} ${page}`], next: page < 3 ? String(page + 1) : null };
}

function show() {
  return rendered((list: List) => usePages(list.key, (cursor) => load(list, cursor), { sort: list.sort }));
}

const A = { key: "a", sort: "name" };

test("rows are counted where not all of them are there", async () => {
  let counted = 0;
  const count = async () => ++counted && 30;
  const pages = rendered((list: List) => {
    const pages = usePages(list.key, (cursor) => load(list, cursor), { sort: list.sort });
    return { ...pages, total: useTotal(pages, count) };
  });
  await pages.render(A);
  assert.equal(pages.current().total, 30);
  await pages.change(({ loadMore }) => loadMore());
  assert.equal(pages.current().total, 30);
  await pages.change(({ loadMore }) => loadMore());
  assert.equal(pages.current().total, 3);
  assert.equal(counted, 1);
});

test("a list that is shown again starts over", async () => {
  for (const other of [
    { ...A, key: "b" },
    { ...A, key: "down" },
    { ...A, sort: "-name" },
  ]) {
    requests = 0;
    const pages = show();
    await pages.render(A);
    await pages.change(({ loadMore }) => loadMore());
    assert.deepEqual(pages.current().data?.rows, ["a name 1", "a name 2"]);
    await pages.render(other);
    await pages.render(A);
    assert.deepEqual(pages.current().data?.rows, ["a name 1"]);
    await pages.change(({ loadMore }) => loadMore());
    assert.deepEqual(pages.current().data?.rows, ["a name 1", "a name 2"]);
    assert.equal(requests, 5);
  }
});

test("a list that is loaded again keeps its length", async () => {
  const pages = show();
  await pages.render(A);
  await pages.change(({ loadMore }) => loadMore());
  requests = 0;
  await pages.change(({ reload }) => reload());
  assert.deepEqual(pages.current().data?.rows, ["a name 1", "a name 2"]);
  assert.equal(requests, 2);
});

test("a list that is loaded again in place keeps its length, and says nothing of it", async () => {
  const seen: string[] = [];
  let isDown = false;
  const pages = rendered((list: List) => {
    const found = usePages(list.key, (cursor) => load(isDown ? { ...list, key: "down" } : list, cursor), {
      sort: list.sort,
    });
    seen.push(found.status);
    return found;
  });
  await pages.render(A);
  await pages.change(({ loadMore }) => loadMore());
  const before = pages.current().data;
  [requests, seen.length] = [0, 0];
  // What is wanted during a load is loaded once, after it.
  await pages.change(({ refresh }) => {
    for (let times = 0; times < 3; times++) refresh();
  });
  assert.deepEqual(pages.current().data?.rows, ["a name 1", "a name 2"]);
  assert.notEqual(pages.current().data, before);
  assert.equal(requests, 4);
  isDown = true;
  await pages.change(({ refresh }) => refresh());
  assert.deepEqual(pages.current().data?.rows, ["a name 1", "a name 2"]);
  assert.deepEqual([...new Set(seen)], ["ready"]);
  isDown = false;
  await pages.change(({ loadMore }) => loadMore());
  assert.deepEqual(pages.current().data?.rows, ["a name 1", "a name 2", "a name 3"]);
});

test("more rows of a list that failed are not added to those of the list before", async () => {
  let isDown = true;
  const pages = rendered((list: List) =>
    usePages(
      list.key,
      (cursor) => load(list.key === "b" && isDown ? { ...list, key: "down" } : list, cursor),
      {
        sort: list.sort,
      },
    ),
  );
  await pages.render(A);
  await pages.render({ ...A, key: "b" });
  isDown = false;
  await pages.change(({ loadMore }) => loadMore());
  assert.deepEqual(pages.current().data?.rows, ["b name 1"]);
});

test("a page that failed is added once it is there", async () => {
  let isDown = false;
  const pages = rendered((list: List) =>
    usePages(list.key, (cursor) => load(isDown ? { ...list, key: "down" } : list, cursor), {
      sort: list.sort,
    }),
  );
  await pages.render(A);
  isDown = true;
  await pages.change(({ loadMore }) => loadMore());
  assert.equal(pages.current().status, "failed");
  isDown = false;
  await pages.change(({ retry }) => retry());
  assert.deepEqual(pages.current().data?.rows, ["a name 1", "a name 2"]);
});

test("a complete list is sorted without a request, and after it was loaded again", async () => {
  requests = 0;
  const ordered = (sort: string) => (sort === "name" ? ["a", "b"] : ["b", "a"]);
  const pages = rendered((sort: string) =>
    usePages<Page<string>>(
      "all",
      async () => {
        requests++;
        return { rows: ordered(sort), next: null };
      },
      { sort, comparison: () => (left, right) => (left < right === (sort === "name") ? -1 : 1) },
    ),
  );
  await pages.render("name");
  await pages.render("-name");
  assert.deepEqual([pages.current().data?.rows, requests], [["b", "a"], 1]);
  await pages.change(({ reload }) => reload());
  await pages.render("name");
  assert.deepEqual([pages.current().data?.rows, requests], [["a", "b"], 2]);
});
