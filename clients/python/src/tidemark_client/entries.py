"""Lists with pages, requested as they are needed."""

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

Entry = TypeVar("Entry")
Page = TypeVar("Page")


class Entries(Generic[Entry, Page]):
    """The entries of all pages of a list."""

    def __init__(self, request: Callable[[str | None], Any]) -> None:
        self._request = request

    def __iter__(self) -> Iterator[Entry]:
        page: Any
        for page in self.pages():
            yield from page["data"]

    def pages(self) -> Iterator[Page]:
        cursor = None
        while True:
            page = self._request(cursor)
            yield page
            cursor = page["pagination"]["next_cursor"]
            if cursor is None:
                return
