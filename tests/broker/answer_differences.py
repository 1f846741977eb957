"""Where two answers to one request differ, field by field.

Elements of lists belong together that name the same thing, whatever their order: brokers keep
most things in hash tables.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.raw_client import RawClient

ABSENT: Final = "(absent)"
CLOSED: Final = {"connection": "closed"}
_NAMES = (
    *("name", "topicId", "topic", "partitionIndex", "partition", "groupId", "groupInstanceId"),
    *("memberId", "key", "apiKey", "resourceType", "resourceName", "nodeId", "brokerId"),
    *("producerId", "firstOffset", "source"),
)
_OF_THE_ANSWERER = frozenset(
    {"clusterId", "host", "port", "logDir", "usableBytes", "throttleTimeMs"}
)


class Difference(NamedTuple):
    """A field of an answer that two servers have different values of."""

    api: str
    path: str
    theirs: Any
    ours: Any


def ask(client: RawClient, api: str, version: int, request: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return the answer, `CLOSED` instead of an end of the connection."""
    try:
        answer = client.ask(api, version, request)
    except ConnectionError:
        return CLOSED
    if api == "Fetch":  # a broker lists partitions with errors apart
        answer["responses"] = [
            {**topic, **partition}
            for topic in answer["responses"]
            for partition in topic.pop("partitions")
        ]
    return answer


def differences(api: str, theirs: object, ours: object) -> Iterator[Difference]:
    """Yield where answers differ."""
    for path, one, other in _differences("", theirs, ours):
        yield Difference(api, path.removeprefix("."), one, other)


def _differences(path: str, theirs: Any, ours: Any) -> Iterator[tuple[str, Any, Any]]:  # noqa: ANN401
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in sorted((theirs.keys() | ours.keys()) - _OF_THE_ANSWERER):
            values = theirs.get(name, ABSENT), ours.get(name, ABSENT)
            yield from _differences(f"{path}.{name}", *values)
    elif isinstance(theirs, list) and isinstance(ours, list):
        of_theirs, of_ours = _by_name(theirs), _by_name(ours)
        for name in {**of_theirs, **of_ours}:
            for one, other in zip_longest(of_theirs[name], of_ours[name], fillvalue=ABSENT):
                if ABSENT in (one, other):
                    shown = [name if each is not ABSENT else ABSENT for each in (one, other)]
                    yield f"{path}[]", shown[0], shown[1]
                else:
                    yield from _differences(f"{path}[]", one, other)
    elif theirs != ours:
        yield path, theirs, ours


def _by_name(elements: list[Any]) -> dict[Any, list[Any]]:
    found = defaultdict(list)
    for each in elements:
        name = each
        if isinstance(each, dict):
            name = tuple(each[name] for name in _NAMES if name in each)
        found[name[0] if isinstance(name, tuple) and len(name) == 1 else name].append(each)
    return found
