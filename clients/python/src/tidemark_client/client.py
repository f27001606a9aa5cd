"""The client, on the standard library alone: at 600 requests a minute, a connection for each costs little."""

import gzip
import json
import os
import random
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException, HTTPResponse
from typing import IO, Any, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from .entries import Entries
from .events import DataChanged, parse
from .operations import Operations
from .problem import Problem
from .types import Event

Read = TypeVar("Read")

# Files have no version.
UNVERSIONED = re.compile(r"/(export/|import$)")
# The service sends a comment every 15 seconds.
STREAM_TIMEOUT_SECONDS = 45.0
# The position before all events.
START = str(uuid.UUID(int=0))


class _NoRedirects(HTTPRedirectHandler):
    """A redirect would send the key elsewhere."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Tidemark(Operations):
    """A client for one API key, for any number of threads.

    `url` is that of the API, with or without `/v2`; it and `key` are by default `TIDEMARK_URL` and `TIDEMARK_API_KEY` of the
    environment. `timeout` are the seconds that a connection may take, and then each wait for data.

    Requests are repeated after a lost connection, 429, 500 and 502 to 504, up to `retries` times, as `Retry-After` says. That is
    safe: creates are sent with an `Idempotency-Key`, and other operations may be repeated. Other error responses are raised as a
    `Problem`, and a `ConnectionError` if there is none.
    """

    def __init__(self, url: str | None = None, key: str | None = None, *, timeout: float = 60, retries: int = 4) -> None:
        url, key = url or os.environ.get("TIDEMARK_URL"), key or os.environ.get("TIDEMARK_API_KEY")
        if not url:
            raise ValueError("the URL of the API is missing: set url or TIDEMARK_URL")
        if not key:
            raise ValueError("the API key is missing: set key or TIDEMARK_API_KEY")
        self._root = url.rstrip("/").removesuffix("/v2")
        self._key = key
        self._timeout = timeout
        self._retries = retries
        self._opener = build_opener(_NoRedirects)

    def events(self, last_event_id: str | None = None) -> Iterator[Event | DataChanged]:
        """Events as they become known, without end: from now on, or after an id.

        A lost connection is continued without a gap or a repetition. Store the id of the last event to continue after a restart.
        """
        if last_event_id is None:
            latest = self.get("/events", {"limit": 1})["data"]
            last_event_id = latest[0]["id"] if latest else START
        while True:
            headers = {"Accept": "text/event-stream", "Last-Event-ID": last_event_id}
            try:
                url = self._locate("/events/stream", {})
                with self._send(Request(url, headers=headers), STREAM_TIMEOUT_SECONDS, _whole) as response:
                    for event in parse(response):
                        if event["type"] != "data.changed":
                            last_event_id = event["id"]
                        yield event
            except Problem as problem:
                if not problem.is_retryable:
                    raise
            except (OSError, HTTPException):
                pass
            time.sleep(0.5 + random.random() / 2)

    def _request(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        body: Any = None,
        timeout: float | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        is_file = isinstance(body, bytes) or hasattr(body, "read")
        headers = {"Accept": "application/json", "Accept-Encoding": "gzip"}
        if method in ("POST", "PATCH"):
            headers["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        if body is not None:
            headers["Content-Type"] = "application/octet-stream" if is_file else "application/json"
            body = body if is_file else json.dumps(body).encode()
        url = self._locate(path, parameters)
        return self._send(Request(url, body, headers, method=method), timeout, _json)

    def _list(self, path: str, parameters: Mapping[str, Any] | None, *, timeout: float | None) -> Any:
        def request(cursor: str | None) -> Any:
            continued = parameters if cursor is None else {**(parameters or {}), "cursor": cursor}
            return self._request("GET", path, continued, timeout=timeout)

        return Entries(request)

    def _export(self, path: str, parameters: Mapping[str, Any] | None, *, timeout: float | None) -> IO[bytes]:
        return self._send(Request(self._locate(path, parameters)), timeout, _whole)

    def _locate(self, template: str, parameters: Mapping[str, Any] | None) -> str:
        """Fills the path in; what it does not name becomes the query."""
        rest = {name: value for name, value in (parameters or {}).items() if value is not None}

        def fill(name: re.Match[str]) -> str:
            if not rest.get(name[1]):
                raise ValueError(f"{template} needs {name[1]}")
            return quote(str(rest.pop(name[1])), safe="")

        path = re.sub(r"\{(\w+)\}", fill, template)
        query = urlencode([pair for name, value in rest.items() for pair in _pairs(name, value)])
        version = "" if UNVERSIONED.match(template) else "/v2"
        return f"{self._root}{version}{path}{'?' if query else ''}{query}"

    def _send(self, request: Request, timeout: float | None, read: Callable[[HTTPResponse], Read]) -> Read:
        """Sends a request until it is answered."""
        request.add_header("Authorization", f"Bearer {self._key}")
        request.add_header("User-Agent", "tidemark-client (Python)")
        data: Any = request.data
        start = data.tell() if hasattr(data, "tell") else None
        was_lost = False
        for attempt in range(self._retries + 1):
            wait = min(0.5 * 2**attempt, 8)
            try:
                if start is not None and attempt > 0:
                    data.seek(start)
                return read(self._opener.open(request, timeout=timeout or self._timeout))
            except HTTPError as error:
                with error:
                    problem = Problem(error.code, error.headers, error.read())
                # The first request of an idempotency key may still run, if its connection was lost.
                may_run = was_lost and problem.status == 409
                if attempt == self._retries or not (problem.is_retryable or may_run):
                    raise problem from None
                wait = wait if problem.retry_after is None else problem.retry_after
            except (OSError, HTTPException) as error:
                if attempt == self._retries:
                    raise ConnectionError(f"{request.get_method()} {request.full_url}: {error}") from error
                was_lost = True
            time.sleep(wait + random.random() / 4)
        raise AssertionError("the last attempt returns or raises")


def _pairs(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for tag, text in value.items():
            yield f"{name}.{tag}", text
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _pairs(name, item)
    else:
        yield name, str(value).lower() if isinstance(value, bool) else str(value)


def _whole(response: HTTPResponse) -> HTTPResponse:
    return response


def _json(response: HTTPResponse) -> Any:
    with response:
        content = response.read()
    if response.headers["Content-Encoding"] == "gzip":
        content = gzip.decompress(content)
    return json.loads(content) if content else None
