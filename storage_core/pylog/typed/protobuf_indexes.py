"""Which message of a schema a payload is of, as what stands before it says.

==========  =======================================================================================
``spec``    Confluent's: how many indexes, and these, all as zigzag varints, the outermost message
            first; the one index 0 is a single byte ``00``
``no-maps`` the same, where the entries of maps are not counted among the messages within one:
            schemas have these as messages, and texts do not show them
``plain``   as ``spec``, without zigzag: clients on librdkafka, until they were mended
``reverse`` as ``spec``, the innermost message first: confluent-kafka-dotnet 2.10.1
``none``    nothing: the first message
``glue``    AWS Glue: a varint, the place among all messages of the file, sorted by name
``ref``     Apicurio: a length, and a message whose field 1 is the name
==========  =======================================================================================

What is read by ``spec`` and names no message is tried as ``ref``, ``no-maps``, ``plain`` and
``reverse``. Where ``spec`` and ``ref`` or ``no-maps`` name two messages it is an error: ``maps`` is
``spec`` without this doubt.

Source: MessageIndexes (Schema Registry 8), ProtobufKafkaSerializer (Apicurio Registry 3.1),
ProtobufWireFormatEncoder (Glue Schema Registry 1.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pylog.typed.protobuf_schema import all_messages
from pylog.typed.protobuf_wire import DELIMITED, WireError, sized, varint_at, wire_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from pylog.typed.decoder import Payloads
    from pylog.typed.protobuf_schema import ProtoFile

_MOST_INDEXES = 64
_MOST_BYTES = 1024
"""Before a payload."""
_KEY_BYTES = 16


class NamedMessages(NamedTuple):
    """Payloads of one message.

    Attributes
    ----------
    name
        Of the message; None if there is none.
    rows
        Their places among the payloads.
    starts
        Where the messages start.
    reason
        Why there is no message.
    """

    name: str | None
    rows: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    reason: str = ""


class MessageIndexes:
    """Reads what stands before payloads of a file's messages."""

    def __init__(self, file: ProtoFile, encoding: str) -> None:
        self._file = file
        ways: dict[str, Callable[[bytes], tuple[str | None, int]]] = {
            "spec": self._without_doubt,
            "maps": lambda content: self._by_path(content, _zigzag, is_reversed=False),
            "no-maps": lambda content: self._by_path(
                content, _zigzag, is_reversed=False, counts_maps=False
            ),
            "plain": lambda content: self._by_path(content, int, is_reversed=False),
            "reverse": lambda content: self._by_path(content, _zigzag, is_reversed=True),
            "glue": self._by_level,
            "ref": self._by_name,
        }
        if encoding not in {*ways, "none"}:
            known = ", ".join((*ways, "none"))
            raise ValueError(f"message indexes are {encoding!r}, expected one of {known}")
        all_ways = ("spec", "ref", "no-maps", "plain", "reverse")
        order = all_ways if encoding == "spec" else (encoding,)
        self._ways = [ways[each] for each in order if each in ways]
        self._names = {message.name for message in all_messages(file.messages)}

    def split(self, payloads: Payloads) -> list[NamedMessages]:
        """Return the payloads of each message, and those of none."""
        data, starts, ends = payloads
        rows = np.arange(starts.size)
        first = self._file.messages[0].name if self._file.messages else None
        if not self._ways:
            return [NamedMessages(first, rows, starts, "the schema has no message")]
        found: list[NamedMessages] = []
        # As a rule all have the index 0.
        heads = data[np.minimum(starts, data.size - 1)] if data.size else np.zeros(0, np.uint8)
        is_zero = (starts < ends) & (heads == 0) if data.size else np.zeros(starts.size, np.bool_)
        if is_zero.any() and self._ways[0](b"\0")[1] == 1:
            zero = rows[is_zero]
            found.append(NamedMessages(self._ways[0](b"\0")[0], zero, starts[zero] + 1, _NONE))
            rows = rows[~is_zero]
        groups: dict[tuple[str | None, str], list[tuple[int, int]]] = {}
        known: dict[bytes, tuple[str | None, int, str]] = {}
        for row in rows.tolist():
            start, end = int(starts[row]), int(ends[row])
            key = data[start : min(start + _KEY_BYTES, end)].tobytes()
            if key not in known:
                content = data[start : min(start + _MOST_BYTES, end)].tobytes()
                named = self._read(content)
                # What has been read beyond the key may differ from payload to payload.
                if named[1] <= len(key):
                    known[key] = named
            else:
                named = known[key]
            name, length, reason = named
            groups.setdefault((name, reason), []).append((row, start + length))
        for (name, reason), places in groups.items():
            of_group, begins = np.array(places, dtype=np.int64).T.copy()
            found.append(NamedMessages(name, of_group, begins, reason))
        return found

    def _read(self, content: bytes) -> tuple[str | None, int, str]:
        for way in self._ways:
            try:
                name, length = way(content)
            except WireError:
                continue
            except _DoubtError as error:
                return None, 0, str(error)
            if name is not None:
                return name, length, ""
        shown = content[:6].hex(" ") or "nothing"
        return None, 0, f"before the message stands {shown}, which names no message of the schema"

    def _without_doubt(self, content: bytes) -> tuple[str | None, int]:
        found = self._by_path(content, _zigzag, is_reversed=False)
        if found[0] is not None and found[1] > 1:
            try:
                named, _ = self._by_name(content)
            except WireError:
                named = None
            if named is not None:
                raise _DoubtError(
                    f"it is a {found[0]} by Confluent's indexes, and a {named} by Apicurio's name: "
                    "choose one as message_indexes or with --message-indexes, 'maps' or 'ref'"
                )
        other, _ = self._by_path(content, _zigzag, is_reversed=False, counts_maps=False)
        if None not in {found[0], other} and found[0] != other:
            raise _DoubtError(
                f"it is a {found[0]} if the entries of maps count as messages, as compiled clients "
                f"have it, and a {other} if not: choose one as message_indexes or with "
                "--message-indexes, 'maps' or 'no-maps'"
            )
        return found

    def _by_path(
        self,
        content: bytes,
        number: Callable[[int], int],
        *,
        is_reversed: bool,
        counts_maps: bool = True,
    ) -> tuple[str | None, int]:
        raw, at = varint_at(content, 0)
        count = number(raw)
        if count == 0:
            return self._message((0,), counts_maps=counts_maps), at
        if not 0 < count <= _MOST_INDEXES:
            return None, 0
        path = []
        for _ in range(count):
            raw, at = varint_at(content, at)
            path.append(number(raw))
        path = path[::-1] if is_reversed else path
        return self._message(path, counts_maps=counts_maps), at

    def _message(self, path: Sequence[int], *, counts_maps: bool) -> str | None:
        messages, found = self._file.messages, None
        for index in path:
            if not counts_maps:
                messages = [each for each in messages if not each.is_implied]
            if not 0 <= index < len(messages):
                return None
            found = messages[index]
            messages = found.messages
        return None if found is None or found.is_map_entry else found.name

    def _by_level(self, content: bytes) -> tuple[str | None, int]:
        index, at = varint_at(content, 0)
        names = sorted(self._names)
        return names[index] if index < len(names) else None, at

    def _by_name(self, content: bytes) -> tuple[str | None, int]:
        length, at = varint_at(content, 0)
        if length > len(content) - at:
            return None, 0
        fields = wire_fields(content[at : at + length])
        names = [each for number, wire, each in fields if number == 1 and wire == DELIMITED]
        if len(names) != 1 or not isinstance(names[0], bytes):
            return None, 0
        name = names[0].decode(errors="replace")
        absolute = f"{self._file.package}.{name}".removeprefix(".")
        found = [each for each in (name, absolute) if each in self._names]
        return found[0] if found else None, at + length


def reference_to(name: bytes) -> bytes:
    """Return what Apicurio writes before a message of a name."""
    return sized(b"\x0a" + sized(name))


_NONE = "the schema has no message"


class _DoubtError(Exception):
    """An index names two messages."""


def _zigzag(raw: int) -> int:
    return (raw >> 1) ^ -(raw & 1)
