// Retries, timeouts and streams, against a server that answers as a test says.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, test } from "node:test";

import { Problem, Tidemark } from "../dist/index.js";

const requests = [];
let answers = [];
const server = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk) => {
    body += chunk;
  });
  request.on("end", () => {
    requests.push({ method: request.method, url: request.url, headers: request.headers, body });
    const answer = answers.shift();
    if (typeof answer === "function") answer(response);
    else response.writeHead(answer?.status ?? 200, answer?.headers).end(JSON.stringify(answer?.body ?? {}));
  });
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${server.address().port}`;
after(() => server.close().closeAllConnections());

/** A client whose requests get these answers. */
function answering(...given) {
  answers = given;
  requests.length = 0;
  return new Tidemark({ url: `${url}/v2/`, key: "key", timeout: 2000 });
}

const problem = (status, retryAfter, body = {}) => ({
  status,
  headers: retryAfter === undefined ? {} : { "Retry-After": String(retryAfter) },
  body: { status, code: "CODE", detail: "detail", request_id: "id", ...body },
});
const hangUp = (response) => response.destroy();
const page = (data, next_cursor = null) => ({
  body: { data, pagination: { has_next: !!next_cursor, next_cursor, limit: 1 } },
});
const collect = async (items) => {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
};

test("parameters go into the path and the query", async () => {
  const tidemark = answering();
  const input = { account_id: "a/b", ids: ["x", "y"], metadata: { team: "north east" }, cursor: undefined };
  await tidemark.get("/accounts/{account_id}", input);
  assert.equal(requests[0].url, "/v2/accounts/a%2Fb?ids=x&ids=y&metadata.team=north+east");
  assert.equal(requests[0].headers.authorization, "Bearer key");
  await assert.rejects(async () => tidemark.get("/accounts/{account_id}"), /needs account_id/);
});

test("a body is JSON, a file is sent as it is", async () => {
  const tidemark = answering({}, {}, { status: 204 });
  await tidemark.patch("/accounts/{account_id}", { account_id: "a", body: { is_active: false } });
  await tidemark.post("/import", { filename: "f", body: new TextEncoder().encode("a,b") });
  assert.equal(await tidemark.delete("/accounts/{account_id}", { account_id: "a" }), undefined);
  assert.deepEqual(
    requests.map(({ method, url, body }) => [method, url, body]),
    [
      ["PATCH", "/v2/accounts/a", '{"is_active":false}'],
      ["POST", "/import?filename=f", "a,b"],
      ["DELETE", "/v2/accounts/a", ""],
    ],
  );
  assert.deepEqual(
    requests.map(({ headers }) => headers["content-type"]),
    ["application/json", "application/octet-stream", undefined],
  );
});

test("a create is repeated with its idempotency key", async () => {
  const lost = answering(hangUp, problem(409), problem(503, 0), { status: 201, body: { data: 1 } });
  assert.deepEqual(await lost.post("/creators", { body: { name: "n" } }), { data: 1 });
  const keys = requests.map(({ headers }) => headers["idempotency-key"]);
  assert.match(keys[0], /^[!-~]{1,255}$/);
  assert.deepEqual(keys, Array(4).fill(keys[0]));
  const own = answering({});
  await own.post("/creators", { body: { name: "n" } }, { idempotencyKey: "mine" });
  assert.equal(requests[0].headers["idempotency-key"], "mine");
});

test("waits as Retry-After says", async () => {
  const tidemark = answering(problem(429, 1), {});
  const begun = performance.now();
  await tidemark.get("/meta");
  assert.ok(performance.now() - begun >= 1000);
});

test("other problems are thrown at once", async () => {
  const errors = [{ field: "limit", message: "must be from 1 to 200" }];
  for (const answer of [problem(422, undefined, { errors }), problem(409), problem(503, 3600)]) {
    const error = await answering(answer)
      .get("/meta")
      .catch((error) => error);
    assert.ok(error instanceof Problem);
    assert.deepEqual([error.status, error.code, error.requestId], [answer.status, "CODE", "id"]);
    assert.equal(requests.length, 1);
  }
  const error = await answering(problem(422, undefined, { errors }))
    .get("/meta")
    .catch((error) => error);
  assert.equal(error.message, "422: detail; limit must be from 1 to 200");
  const foreign = await answering((response) => response.writeHead(404).end("<html>"))
    .get("/meta")
    .catch((error) => error);
  assert.deepEqual([foreign.status, foreign.code], [404, "UNKNOWN"]);
});

test("gives up after the retries", async () => {
  const tidemark = answering(...Array(9).fill(problem(503, 0)));
  await assert.rejects(tidemark.get("/meta"), { status: 503 });
  assert.equal(requests.length, 5);
});

test("a silent service is a timeout, and an aborted request ends", async () => {
  const tidemark = new Tidemark({ url, key: "key", timeout: 50, retries: 0 });
  answers = [() => {}, () => {}];
  await assert.rejects(tidemark.get("/meta"), { name: "TimeoutError" });
  const aborted = new Tidemark({ url, key: "key" }).get("/meta", {}, { signal: AbortSignal.timeout(50) });
  await assert.rejects(aborted, { name: "TimeoutError" });
});

test("a list has the entries of all pages", async () => {
  const given = [page([1, 2], "next"), page([]), page([3])];
  assert.deepEqual(await collect(answering(...given).list("/accounts", { limit: 2 })), [1, 2]);
  assert.deepEqual(
    requests.map(({ url }) => url),
    ["/v2/accounts?limit=2", "/v2/accounts?limit=2&cursor=next"],
  );
  assert.deepEqual(
    (
      await collect(
        answering(...given)
          .list("/accounts")
          .pages(),
      )
    ).map(({ data }) => data),
    [[1, 2], []],
  );
});

test("a list begins at a cursor", async () => {
  const given = [page([1], "later"), page([2])];
  const list = answering(...given, ...given).list("/accounts", { limit: 1, cursor: "given" });
  assert.deepEqual([await collect(list), await collect(list)], Array(2).fill([1, 2]));
  const found = requests.map(({ url }) => new URL(url, "http://host").searchParams.get("cursor"));
  assert.deepEqual(found, ["given", "later", "given", "later"]);
});

test("an export that breaks off is an error", async () => {
  const text = (chunks) => Buffer.concat(chunks).toString();
  const whole = answering((response) => response.writeHead(200).end("a,b"));
  assert.equal(text(await collect(whole.export("/export/accounts.csv", { period: "7d" }))), "a,b");
  assert.equal(requests[0].url, "/export/accounts.csv?period=7d");
  const broken = answering((response) => response.writeHead(200).write("a,", () => response.destroy()));
  await assert.rejects(collect(broken.export("/export/accounts.csv")));
});

test("events continue after the last one", async () => {
  const event = (id) => ({ id, type: "video.published", created_at: "", data: {} });
  const lines = (id) => `event: video.published\nid: ${id}\ndata: ${JSON.stringify(event(id))}\n\n`;
  const changed = ": comment\n\nevent: data.changed\ndata: {}\n\n";
  const tidemark = answering(
    page([event("0")]),
    (response) =>
      response
        .writeHead(200)
        .write(`${changed}${lines("1")}${lines("2").slice(0, 20)}`, () => response.destroy()),
    problem(503, 0),
    (response) => response.writeHead(200).write(lines("2")),
  );
  const found = [];
  for await (const event of tidemark.events()) {
    found.push(event.id ?? event.type);
    if (event.id === "2") break;
  }
  assert.deepEqual(found, ["data.changed", "1", "2"]);
  assert.deepEqual(
    requests.map(({ headers }) => headers["last-event-id"]),
    [undefined, "0", "1", "1"],
  );
  await assert.rejects(collect(answering(problem(401)).events({ lastEventId: "1" })), { status: 401 });
});
