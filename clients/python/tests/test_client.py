"""Retries, timeouts and streams, against a server that answers as a test says."""

import io
import json
import shutil
import threading
import time
import unittest
from collections.abc import Callable
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tidemark_client import Problem, Tidemark


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answers: list[Any] = []
    requests: list[dict[str, Any]] = []

    def answer(self) -> None:
        length = self.headers["Content-Length"]
        body = self.rfile.read(int(length)) if length else self.read_chunks()
        self.requests.append({"line": f"{self.command} {self.path}", "headers": self.headers, "body": body})
        answer = self.answers.pop(0) if self.answers else (200, {}, {})
        if callable(answer):
            answer(self)
            self.close_connection = True
            return
        status, headers, content = answer
        self.respond(status, headers, json.dumps(content).encode())

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer

    def read_chunks(self) -> bytes:
        body = b""
        if self.headers["Transfer-Encoding"] == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        return body

    def respond(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if status != 204:
            self.wfile.write(content)

    def send_chunk(self, content: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))

    def log_message(self, *_: Any) -> None:
        pass


def hang_up(_: Service) -> None:
    """Closes the connection without an answer."""


def chunked(*chunks: bytes, end: bytes = b"") -> Callable[[Service], None]:
    """Sends chunks, and closes the connection."""

    def answer(service: Service) -> None:
        service.send_response(200)
        service.send_header("Transfer-Encoding", "chunked")
        service.end_headers()
        for chunk in chunks:
            service.send_chunk(chunk)
        service.wfile.write(end)

    return answer


def problem(status: int, retry_after: int | None = None, **fields: Any) -> Any:
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return status, headers, {"status": status, "code": "CODE", "detail": "detail", "request_id": "id", **fields}


def page(data: list[Any], next_cursor: str | None = None) -> Any:
    return 200, {}, {"data": data, "pagination": {"has_next": next_cursor is not None, "next_cursor": next_cursor}}


class ClientTest(unittest.TestCase):
    server: ThreadingHTTPServer

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
        cls.server.daemon_threads = True
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.shutdown()
        cls.server.server_close()

    def answering(self, *answers: Any, **options: Any) -> Any:
        """A client whose requests get these answers."""
        Service.answers, Service.requests = list(answers), []
        return Tidemark(f"http://127.0.0.1:{self.server.server_port}/v2/", "key", **{"timeout": 2, **options})

    @property
    def lines(self) -> list[str]:
        return [request["line"] for request in Service.requests]

    def headers(self, name: str) -> list[str | None]:
        return [request["headers"][name] for request in Service.requests]

    def test_parameters_go_into_the_path_and_the_query(self) -> None:
        client = self.answering()
        values = {"account_id": "a/b", "ids": ["x", "y"], "metadata": {"team": "north east"}, "raw": True, "q": None}
        client.get("/accounts/{account_id}", values)
        self.assertEqual(self.lines, ["GET /v2/accounts/a%2Fb?ids=x&ids=y&metadata.team=north+east&raw=true"])
        self.assertEqual(self.headers("Authorization"), ["Bearer key"])
        with self.assertRaisesRegex(ValueError, "needs account_id"):
            client.get("/accounts/{account_id}")

    def test_a_body_is_json_and_a_file_is_sent_as_it_is(self) -> None:
        client = self.answering((200, {}, {}), hang_up, (202, {}, {}), (202, {}, {}), (204, {}, None))
        client.patch("/accounts/{account_id}", {"account_id": "a"}, body={"is_active": False})
        client.post("/import", {"filename": "f"}, body=io.BytesIO(b"a,b"))
        client.post("/import", body=b"c,d")
        self.assertIsNone(client.delete("/accounts/{account_id}", {"account_id": "a"}))
        bodies = [(request["line"], request["body"]) for request in Service.requests]
        self.assertEqual(bodies[0], ("PATCH /v2/accounts/a", b'{"is_active": false}'))
        self.assertEqual(bodies[1:3], [("POST /import?filename=f", b"a,b")] * 2)
        self.assertEqual(bodies[3:], [("POST /import", b"c,d"), ("DELETE /v2/accounts/a", b"")])
        self.assertEqual(self.headers("Content-Type")[0], "application/json")
        self.assertEqual(self.headers("Content-Type")[1:4], ["application/octet-stream"] * 3)

    def test_a_create_is_repeated_with_its_idempotency_key(self) -> None:
        client = self.answering(hang_up, problem(409), problem(503, 0), (201, {}, {"data": 1}))
        self.assertEqual(client.post("/creators", body={"name": "n"}), {"data": 1})
        keys = self.headers("Idempotency-Key")
        self.assertEqual(len(keys), 4)
        self.assertEqual(len(set(keys)), 1)
        self.answering().post("/creators", body={"name": "n"}, idempotency_key="mine")
        self.assertEqual(self.headers("Idempotency-Key"), ["mine"])

    def test_waits_as_retry_after_says(self) -> None:
        client = self.answering(problem(429, 1), (200, {}, {}))
        begun = time.monotonic()
        client.get("/meta")
        self.assertGreaterEqual(time.monotonic() - begun, 1)

    def test_other_problems_are_raised_at_once(self) -> None:
        errors = [{"field": "limit", "message": "must be from 1 to 200"}]
        for answer in problem(422, errors=errors), problem(409), problem(503, 3600):
            with self.assertRaises(Problem) as caught:
                self.answering(answer).get("/meta")
            found = caught.exception
            self.assertEqual((found.status, found.code, found.request_id), (answer[0], "CODE", "id"))
            self.assertEqual(len(self.lines), 1)
        with self.assertRaisesRegex(Problem, "422: detail; limit must be from 1 to 200"):
            self.answering(problem(422, errors=errors)).get("/meta")
        with self.assertRaisesRegex(Problem, "404: the response has status 404"):
            self.answering(lambda service: service.respond(404, {}, b"<html>")).get("/meta")
        with self.assertRaisesRegex(Problem, "302"):
            self.answering(lambda service: service.respond(302, {"Location": "/other"}, b"")).get("/meta")
        self.assertEqual(len(self.lines), 1)

    def test_gives_up_after_the_retries(self) -> None:
        with self.assertRaisesRegex(Problem, "503"):
            self.answering(*[problem(503, 0)] * 9, retries=2).get("/meta")
        self.assertEqual(len(self.lines), 3)
        with self.assertRaises(ConnectionError):
            self.answering(hang_up, retries=0).get("/meta")

    def test_a_silent_service_is_a_timeout(self) -> None:
        ended = threading.Event()
        self.addCleanup(ended.set)
        with self.assertRaisesRegex(ConnectionError, "timed out"):
            self.answering(lambda _: ended.wait(), retries=0).get("/meta", timeout=0.05)

    def test_a_list_has_the_entries_of_all_pages(self) -> None:
        pages = page([1, 2], "next"), page([3]), page([4])
        self.assertEqual(list(self.answering(*pages).list("/accounts", {"limit": 2})), [1, 2, 3])
        self.assertEqual(self.lines, ["GET /v2/accounts?limit=2", "GET /v2/accounts?limit=2&cursor=next"])
        found = [page["data"] for page in self.answering(*pages).list("/accounts").pages()]
        self.assertEqual(found, [[1, 2], [3]])

    def test_a_list_begins_at_a_cursor(self) -> None:
        entries = self.answering(*[page([1], "later"), page([2])] * 2).list("/accounts", {"limit": 1, "cursor": "given"})
        self.assertEqual([list(entries), list(entries)], [[1, 2]] * 2)
        cursors = [line.removeprefix("GET /v2/accounts?limit=1&cursor=") for line in self.lines]
        self.assertEqual(cursors, ["given", "later"] * 2)

    def test_an_export_that_breaks_off_is_an_error(self) -> None:
        copy = io.BytesIO()
        with self.answering(chunked(b"a,", b"b", end=b"0\r\n\r\n")).export("/export/accounts.csv", {"period": "7d"}) as file:
            shutil.copyfileobj(file, copy)
        self.assertEqual((copy.getvalue(), self.lines), (b"a,b", ["GET /export/accounts.csv?period=7d"]))
        with self.assertRaises(HTTPException), self.answering(chunked(b"a,")).export("/export/accounts.csv") as file:
            shutil.copyfileobj(file, io.BytesIO())

    def test_events_continue_after_the_last_one(self) -> None:
        def event(id: str) -> dict[str, Any]:
            return {"id": id, "type": "video.published", "created_at": "", "data": {}}

        def lines(id: str) -> bytes:
            return f"event: video.published\nid: {id}\ndata: {json.dumps(event(id))}\n\n".encode()

        changed = b": comment\n\nevent: data.changed\ndata: {}\n\n"
        client = self.answering(
            page([event("0")]),
            chunked(changed, lines("1"), lines("2")[:20]),
            problem(503, 0),
            chunked(lines("2")),
        )
        found = []
        for each in client.events():
            found.append(each.get("id") or each["type"])
            if each.get("id") == "2":
                break
        self.assertEqual(found, ["data.changed", "1", "2"])
        self.assertEqual(self.headers("Last-Event-ID"), [None, "0", "1", "1"])
        with self.assertRaisesRegex(Problem, "401"):
            next(self.answering(problem(401)).events("1"))


if __name__ == "__main__":
    unittest.main()
