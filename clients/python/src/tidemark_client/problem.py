"""Error responses."""

import json
from email.message import Message

from .types import Violation

RETRYABLE = (429, 500, 502, 503, 504)
# A longer Retry-After is an error at once.
MAX_RETRY_AFTER_SECONDS = 120.0


class Problem(Exception):
    """An error response. `code` is for programs, the message for people."""

    def __init__(self, status: int, headers: Message, body: bytes) -> None:
        try:
            problem = json.loads(body)
        except ValueError:
            problem = {}
        self.status = status
        self.code: str = problem.get("code", "UNKNOWN")
        self.detail: str = problem.get("detail", f"the response has status {status} and is not from Tidemark")
        self.request_id: str | None = problem.get("request_id")
        """Quote it when you report a problem."""
        self.errors: list[Violation] = problem.get("errors", [])
        """The fields that are wrong; of a 422 only."""
        after = headers.get("Retry-After", "")
        self.retry_after: float | None = float(after) if after.isdecimal() else None
        """Seconds until the request may be retried: the header `Retry-After`."""
        violations = [f"{error['field']} {error['message']}" for error in self.errors]
        super().__init__(f"{status}: {'; '.join([self.detail, *violations])}")

    @property
    def is_retryable(self) -> bool:
        return self.status in RETRYABLE and (self.retry_after or 0) <= MAX_RETRY_AFTER_SECONDS
