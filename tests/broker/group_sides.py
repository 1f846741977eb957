"""The same requests about groups to a real broker and to `pylog.serve`, and what each answers.

Answers are made comparable: ids of members that a server has made up are replaced by the order in
which they came, addresses and nodes by names, lists without an order are sorted, and why a regular
expression is wrong is left out: there each library has its own words.
"""

from __future__ import annotations

import json
import re
import uuid
from typing import TYPE_CHECKING, Any, Self

from pylog.server.messages import APIS
from tests.support.raw_client import RawClient

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

_MADE_UP_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_IS_SOMEWHERE = ("host", "port", "nodeId")


class Side:
    """A server, what clients of it do, and the answers so far, in a form that can be compared."""

    def __init__(self, address: str, topic_ids: dict[str, uuid.UUID]) -> None:
        self.topic_ids = topic_ids
        self.answers: list[Any] = []
        self._address = address
        self._names: dict[str, str] = {}
        self._connections: dict[str, RawClient] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for each in self._connections.values():
            each.__exit__(None, None, None)

    def send(self, client: str, name: str, version: int, **request: Any) -> None:  # noqa: ANN401 - fields
        """Send a request of a client whose answer is asked for later."""
        if client not in self._connections:
            self._connections[client] = RawClient(self._address)
        self._connections[client].send(APIS[name], version, request)

    def receive(self, client: str) -> dict[str, Any]:
        """Return, and keep for comparison, the answer that a client gets."""
        answer = self._connections[client].receive()
        self.answers.append(self._comparable(answer))
        return answer

    def ask(self, client: str, name: str, version: int, **request: Any) -> dict[str, Any]:  # noqa: ANN401 - fields
        """Send a request and return its answer."""
        self.send(client, name, version, **request)
        return self.receive(client)

    def is_waiting(self, client: str, seconds: float = 0.5) -> bool:
        """Return, and keep for comparison, whether a client has not been answered yet."""
        is_waiting = self._connections[client].is_silent(seconds)
        self.answers.append(f"{client} is waiting: {is_waiting}")
        return is_waiting

    def _comparable(self, value: Any, name: str = "") -> Any:  # noqa: ANN401 - parts of an answer
        if isinstance(value, dict):
            return {key: self._comparable(each, key) for key, each in value.items()}
        if isinstance(value, list):
            comparable = [self._comparable(each) for each in value]
            return sorted(comparable, key=lambda each: json.dumps(each, default=str))
        if name in _IS_SOMEWHERE and value not in ("", -1):
            return f"<{name}>"
        if isinstance(value, str):
            value = value.partition("is not a valid regular expression")[0]
            return _MADE_UP_ID.sub(self._name, value)
        if isinstance(value, uuid.UUID):
            ids = {each: topic for topic, each in self.topic_ids.items()}
            return f"<id of {ids.get(value, value)}>"
        return value

    def _name(self, found: re.Match[str]) -> str:
        return self._names.setdefault(found[0], f"<member {len(self._names) + 1}>")


def differences(run: Callable[[Side], None], broker: Side, served: Side) -> list[str]:
    """Return where the answers of two servers to the same requests differ."""
    for side in (broker, served):
        with side:
            run(side)
    found = [
        f"answer {number}: broker {expected}, served {actual}"
        for number, (expected, actual) in enumerate(
            zip(broker.answers, served.answers, strict=True), 1
        )
        if expected != actual
    ]
    broker.answers.clear()
    served.answers.clear()
    return found
