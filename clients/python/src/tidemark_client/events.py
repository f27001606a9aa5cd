"""The stream of events: server-sent events, read until the connection ends."""

import json
from collections.abc import Iterable, Iterator
from typing import Literal, TypedDict

from .types import Event


class DataChanged(TypedDict):
    """Figures changed: ask again for what you show. It has no id."""

    type: Literal["data.changed"]


def parse(lines: Iterable[bytes]) -> Iterator[Event | DataChanged]:
    """Parses the lines of a stream; an empty one ends an event."""
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            fields[name] = value
            continue
        if fields.get("event") == "data.changed":
            yield {"type": "data.changed"}
        elif "data" in fields:
            event: Event = json.loads(fields["data"])
            yield event
        fields = {}
