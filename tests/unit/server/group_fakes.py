"""What groups stand on, in the hands of a test: time, topics, requests with their defaults."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from pylog.internal_topics.message_writer import EachOf
from pylog.server.group_config import CoordinatorTimer
from pylog.server.messages import APIS
from pylog.server.metadata_cache import MetadataCache
from pylog.server.protocol import RequestContext

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, KeysView

    from pylog.internal_topics.schema import Field


class ManualTimer(CoordinatorTimer):
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self._now_ms = 0
        self._scheduled: dict[Hashable, tuple[int, Callable[[], None]]] = {}

    def schedule(self, key: Hashable, delay_ms: int, callback: Callable[[], None]) -> None:
        """Call back in so many ms."""
        self._scheduled[key] = (self._now_ms + delay_ms, callback)

    def cancel(self, key: Hashable) -> None:
        """Forget it."""
        self._scheduled.pop(key, None)

    def milliseconds(self) -> int:
        """Return the time."""
        return self._now_ms

    @property
    def keys(self) -> list[Hashable]:
        """What is scheduled."""
        return list(self._scheduled)

    def advance(self, delay_ms: int) -> None:
        """Let time pass, and call whom it is time for, in the order of their times."""
        end = self._now_ms + delay_ms
        while self._scheduled:
            key, (due, callback) = min(self._scheduled.items(), key=lambda each: each[1][0])
            if due > end:
                break
            self._now_ms = max(self._now_ms, due)
            del self._scheduled[key]
            callback()
        self._now_ms = end


class Topics(MetadataCache):
    """Topics by name, with their numbers of partitions; a test may change them."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts

    def topic_names(self) -> KeysView[str]:
        """Return all names."""
        return self.counts.keys()

    def topic_id(self, name: str) -> uuid.UUID | None:
        """Return an id that follows from the name."""
        return id_of(name) if name in self.counts else None

    def topic_name(self, topic_id: uuid.UUID) -> str | None:
        """Return the name behind an id."""
        return next((name for name in self.counts if id_of(name) == topic_id), None)

    def partition_count(self, name: str) -> int:
        """Return the number of partitions."""
        return self.counts.get(name, 0)


def id_of(topic: str) -> uuid.UUID:
    """Return the id of a topic of `Topics`."""
    return uuid.uuid5(uuid.NAMESPACE_OID, topic)


def request(name: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - of any type
    """Return a request with all fields of its schema."""
    return {**_defaults(APIS[name].request.fields), **fields}


def _defaults(fields: tuple[Field, ...]) -> dict[str, Any]:
    return {field.name: field.default for field in fields}


def context(name: str, version: int | None = None, client_id: str = "tester") -> RequestContext:
    """Return the context of a request; the newest version if none is named."""
    api = APIS[name]
    newest = api.versions.stop - 1
    return RequestContext(
        api, newest if version is None else version, client_id, "127.0.0.1", "localhost", 9092
    )


def expanded(value: Any) -> Any:  # noqa: ANN401 - a value of a message
    """Return a response with lists in place of arrays that are made while they are written."""
    if isinstance(value, dict):
        return {name: expanded(each) for name, each in value.items()}
    if isinstance(value, list | EachOf):
        return [expanded(each) for each in value]
    return value
