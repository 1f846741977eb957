"""Records of ``__consumer_offsets`` that a coordinator refuses: of two kinds of one group.

A coordinator takes in all records of a partition in their order. It stops at a record that is of
another kind than its group, and then no group of the partition is available. A group that only
commits offsets is a simple one: it may become a group of any kind but a share group.

Source: GroupMetadataManager.replay, OffsetMetadataManager.replay (Kafka 4.4). Before 4.0 a
coordinator knows no other kind than classic groups.
"""

from __future__ import annotations

from typing import NamedTuple

from pylog.errors import InvalidRecordError
from pylog.internal_topics import consumer_offsets
from pylog.internal_topics.group_state import CLASSIC, CONSUMER, SHARE, STREAMS

_SIMPLE = "simple"
_COMMITS = (consumer_offsets.LEGACY_OFFSET_COMMIT, consumer_offsets.OFFSET_COMMIT)
_KIND_OF = {
    consumer_offsets.GROUP_METADATA: CLASSIC,
    **dict.fromkeys((*range(3, 9), 16), CONSUMER),
    **dict.fromkeys(range(10, 16), SHARE),
    **dict.fromkeys((17, 19, 20, 21, 22, 23), STREAMS),
}
"""By the type of the record; type 9 is of Kafka 4.0 alone, and ignored."""
_ENDING = (
    consumer_offsets.CONSUMER_GROUP_METADATA,
    consumer_offsets.SHARE_GROUP_METADATA,
    consumer_offsets.STREAMS_GROUP_METADATA,
)
"""Records whose tombstone removes the group."""


class MixedKinds(NamedTuple):
    """The record that a coordinator refuses: of a group that is of another kind by then."""

    group_id: str
    offset: int
    kind: str  # of the record
    group_kind: str


class GroupKinds:
    """Takes in the keys of all records of a partition, in their order; `mixed` is the first."""

    def __init__(self) -> None:
        self.mixed: MixedKinds | None = None
        self._kinds: dict[bytes, str] = {}
        self._classic: dict[bytes, tuple[bytes, bytes]] = {}  # the last record of each group

    def take(self, offset: int, key: bytes, value: bytes | None) -> None:
        """Take in the next record, also one of a transaction that is not committed."""
        type_id = int.from_bytes(key[:2])
        size = int.from_bytes(key[2:4])
        group = key[4 : 4 + size]
        if type_id in _COMMITS:
            if value is not None:
                self._kinds.setdefault(group, _SIMPLE)
            return
        kind = _KIND_OF.get(type_id)
        if kind is None or self.mixed is not None:
            return
        if kind == CLASSIC:
            self._take_classic(group, key, value)
            return
        current = self._kinds.get(group)
        if current not in (None, kind) and (kind == SHARE or not self._is_simple(group)):
            name = group.decode(errors="replace")
            self.mixed = MixedKinds(name, offset, kind, current or "")
        elif current is not None or value is not None:
            self._kinds[group] = kind
        if value is None and type_id in _ENDING:
            self._kinds.pop(group, None)

    def _take_classic(self, group: bytes, key: bytes, value: bytes | None) -> None:
        if value is None:
            self._kinds.pop(group, None)
        else:
            self._kinds[group] = CLASSIC
            self._classic[group] = key, value

    def _is_simple(self, group: bytes) -> bool:
        """Whether a group has neither a protocol type nor members."""
        if self._kinds[group] != CLASSIC:
            return self._kinds[group] == _SIMPLE
        try:
            record = consumer_offsets.group_records().read(*self._classic[group])
        except InvalidRecordError:
            return False
        value = record.value or {}
        return not value["protocolType"] and not value["members"]
