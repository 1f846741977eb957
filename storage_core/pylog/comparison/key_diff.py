"""Two compacted logs: the latest record of each key, whatever a cleaner has taken out before.

A key whose latest record is a tombstone is one that is not there: a cleaner removes the tombstone,
too. What is held of each key is a digest, not the value.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from pylog.comparison.copy_diff import header_hashes
from pylog.comparison.diff_summary import Difference, Differences, DiffKind, PartitionDiff
from pylog.reading.scan import scan

if TYPE_CHECKING:
    from pylog.comparison.replica_log import ReplicaLog
    from pylog.model import IsolationLevel

_DIGEST_BYTES = 16
_SHOWN_BYTES = 40


def diff_latest(
    left: ReplicaLog,
    right: ReplicaLog,
    *,
    isolation: IsolationLevel,
    end_offset: int | None = None,
) -> PartitionDiff:
    """Return in which keys' latest values, or their headers, two logs differ.

    A key with a record at ``end_offset`` or later is left out: for such a record a cleaner may have
    removed what one of the logs had below.
    """
    found = Differences()
    later: set[bytes] = set()
    one = _latest(left, isolation, found, DiffKind.DAMAGED_LEFT, end_offset, later)
    other = _latest(right, isolation, found, DiffKind.DAMAGED_RIGHT, end_offset, later)
    for key in later:
        one.pop(key, None)
        other.pop(key, None)
    same = 0
    for key, mine in sorted(one.items(), key=lambda each: each[1].offset):
        yours = other.get(key)
        shown, offset = _shown(key), mine.offset
        if yours is None:
            found.add(Difference(DiffKind.ONLY_LEFT, offset, offset + 1, 1, shown))
        elif (mine.digest, mine.headers) != (yours.digest, yours.headers):
            detail = shown if mine.digest != yours.digest else f"{shown}: headers"
            found.add(Difference(DiffKind.LATEST, offset, offset + 1, 1, detail, yours.offset))
        else:
            same += 1
    for key, yours in sorted(other.items(), key=lambda each: each[1].offset):
        if key not in one:
            offset = yours.offset
            found.add(Difference(DiffKind.ONLY_RIGHT, offset, offset + 1, 1, _shown(key)))
    return PartitionDiff(
        *left.directory.topic_partition,
        left.path,
        right.path,
        "compacted",
        same,
        found.in_order(),
        found.counts,
    )


class _Latest(NamedTuple):
    """The latest record of a key."""

    digest: bytes
    headers: int
    offset: int


def _latest(
    log: ReplicaLog,
    isolation: IsolationLevel,
    differences: Differences,
    damaged: DiffKind,
    end_offset: int | None,
    later: set[bytes],
) -> dict[bytes, _Latest]:
    """Return the latest record of each key; ``later`` gets keys with one from an offset on."""
    found: dict[bytes, _Latest] = {}
    records = scan(
        log.directory.path,
        columns=["offset", "key", "value", "headers"],
        isolation=isolation,
        mode="DROPMALFORMED",
    )
    for batch in records.to_reader():
        columns = (batch[name].to_pylist() for name in ("offset", "key", "value"))
        hashes = header_hashes(batch["headers"])
        for offset, key, value, headers in zip(*columns, hashes, strict=True):
            if key is not None and end_offset is not None and offset >= end_offset:
                later.add(key)
            elif key is not None and value is None:
                found.pop(key, None)
            elif key is not None:
                digest = hashlib.blake2b(value, digest_size=_DIGEST_BYTES).digest()
                found[key] = _Latest(digest, headers, offset)
    differences.add_damage(damaged, records.damage)
    return found


def _shown(key: bytes) -> str:
    text = key[:_SHOWN_BYTES].decode("utf-8", "backslashreplace")
    return f"key {text}{'…' if len(key) > _SHOWN_BYTES else ''}"
