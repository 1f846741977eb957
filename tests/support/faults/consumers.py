"""Harms that a broker starts on, and by which consumers get wrong answers, or none.

They are done to a partition of three segments or more, with transactions, of which some were
aborted, and an entry in the time index for most batches.
"""

from __future__ import annotations

import os
import struct
from itertools import pairwise
from typing import TYPE_CHECKING

from tests.support.batches import crc32c
from tests.support.corruption import entries, resealed
from tests.support.log_files import OFFSET_ENTRY, TIME_ENTRY, TRANSACTION_ENTRY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.faults.partitions import Harm, Harmed

HOUR_MS = 3_600_000
_FAR_AHEAD_S = 4_000_000_000
_SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
_SNAPSHOT_HEADER_BYTES = 10
_MAX_TIMESTAMP_AT, _PRODUCER_AT = 35, 43


def _without(*suffixes: str, segment: int | None = None) -> Callable[[Harmed], None]:
    def harm(harmed: Harmed) -> None:
        chosen = harmed.logs if segment is None else [harmed.logs[segment]]
        for path in chosen:
            for suffix in suffixes:
                path.with_suffix(suffix).unlink(missing_ok=True)

    return harm


def _rotated(suffix: str) -> Callable[[Harmed], None]:
    def harm(harmed: Harmed) -> None:
        paths = sorted(harmed.directory.glob(f"*{suffix}"))
        contents = [each.read_bytes() for each in paths]
        for path, content in zip(paths, [*contents[1:], contents[0]], strict=True):
            path.write_bytes(content)

    return harm


def _rewritten(
    segment: int, suffix: str, change: Callable[[bytes], bytes]
) -> Callable[[Harmed], None]:
    def harm(harmed: Harmed) -> None:
        path = harmed.of(segment, suffix)
        path.write_bytes(change(path.read_bytes()))

    return harm


def _each_entry(
    layout: struct.Struct, change: Callable[[int, tuple[int, ...]], tuple[int, ...]]
) -> Callable[[bytes], bytes]:
    def changed(content: bytes) -> bytes:
        found = layout.iter_unpack(content)
        return b"".join(layout.pack(*change(place, each)) for place, each in enumerate(found))

    return changed


def _later(milliseconds: int) -> Callable[[bytes], bytes]:
    """Move the times of a time index."""
    return _each_entry(TIME_ENTRY, lambda _place, each: (each[0] + milliseconds, each[1]))


def _one_early(content: bytes) -> bytes:
    """Let the last time but one of a time index be just behind the second one."""
    found = list(TIME_ENTRY.iter_unpack(content))
    found[2:] = [(found[1][0] + 1, found[-2][1]), found[-1]]
    return b"".join(TIME_ENTRY.pack(*each) for each in found)


def _last_late(content: bytes) -> bytes:
    return content[:-12] + _later(HOUR_MS)(content[-12:])


def _moved(count: int) -> Callable[[bytes], bytes]:
    """Move the positions of an offset index by some bytes."""
    return _each_entry(OFFSET_ENTRY, lambda _place, each: (each[0], each[1] + count))


def _one_entry_on(content: bytes) -> bytes:
    """Let each entry of an offset index lead to where the next one does."""
    found = list(OFFSET_ENTRY.iter_unpack(content))
    moved = [(one[0], other[1]) for one, other in pairwise(found)]
    return b"".join(OFFSET_ENTRY.pack(*each) for each in moved)


def _batches(path: Path) -> list[bytes]:
    return entries(path.read_bytes())


def _zeroed_block(content: bytes) -> bytes:
    """Lose the second quarter of a file, as by an extent that a disk has not written."""
    quarter = len(content) // 4
    return content[:quarter] + bytes(quarter) + content[2 * quarter :]


def _flipped(content: bytes) -> bytes:
    at = len(content) // 2
    return content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :]


def _with_header_time(milliseconds: int) -> Callable[[bytes], bytes]:
    """Move the largest timestamp that the header of a middle batch of records has."""

    def changed(content: bytes) -> bytes:
        found = entries(content)
        place = next(at for at in range(len(found) // 2, len(found)) if not found[at][22] & 0x20)
        batch = found[place]
        time = int.from_bytes(batch[_MAX_TIMESTAMP_AT : _MAX_TIMESTAMP_AT + 8], "big")
        moved = (time + milliseconds).to_bytes(8, "big")
        found[place] = resealed(batch[:_MAX_TIMESTAMP_AT] + moved + batch[_MAX_TIMESTAMP_AT + 8 :])
        return b"".join(found)

    return changed


def _empty_and_touched(harmed: Harmed) -> None:
    harmed.of(0, ".timeindex").write_bytes(b"")
    os.utime(harmed.logs[0], (_FAR_AHEAD_S, _FAR_AHEAD_S))


def _committed_as_aborted(harmed: Harmed) -> None:
    """Let a transaction index name the first transaction of a log, which was committed."""
    data, *others = _batches(harmed.logs[0])
    marker = next(each for each in others if each[22] & 0x20)
    producer, first, last = (
        int.from_bytes(each, "big")
        for each in (data[_PRODUCER_AT : _PRODUCER_AT + 8], data[:8], marker[:8])
    )
    path = harmed.of(0, ".txnindex")
    entry = TRANSACTION_ENTRY.pack(0, producer, first, last, last + 1)
    path.write_bytes(entry + (path.read_bytes() if path.exists() else b""))


def _open_in_the_snapshot(harmed: Harmed) -> None:
    """Let the newest producer snapshot say that a transaction is open since the second segment."""
    _set_open(harmed.directory, int(harmed.logs[1].stem))


def nothing_open(directory: Path) -> None:
    """Let the newest producer snapshot say that no transaction is open."""
    _set_open(directory, -1)


def _set_open(directory: Path, offset: int) -> None:
    path = sorted(directory.glob("*.snapshot"))[-1]
    content = path.read_bytes()
    fields = list(_SNAPSHOT_ENTRY.unpack_from(content, _SNAPSHOT_HEADER_BYTES))
    fields[-1] = offset
    after = content[_SNAPSHOT_HEADER_BYTES + _SNAPSHOT_ENTRY.size :]
    body = content[6:_SNAPSHOT_HEADER_BYTES] + _SNAPSHOT_ENTRY.pack(*fields) + after
    path.write_bytes(content[:2] + struct.pack(">I", crc32c(body)) + body)


def _no_snapshots(harmed: Harmed) -> None:
    for path in harmed.directory.glob("*.snapshot"):
        path.unlink()


def _epoch_from_the_second_segment(epoch: int) -> Callable[[Harmed], None]:
    def harm(harmed: Harmed) -> None:
        path = harmed.directory / "leader-epoch-checkpoint"
        path.write_text(f"0\n2\n0 0\n{epoch} {int(harmed.logs[1].stem)}\n")

    return harm


CONSUMER_HARMS: tuple[Harm, ...] = (
    ("nothing", lambda _harmed: None),
    ("transaction indexes gone", _without(".txnindex")),
    ("transaction indexes of other segments", _rotated(".txnindex")),
    ("a transaction index names a committed transaction", _committed_as_aborted),
    ("a time index an hour early", _rewritten(1, ".timeindex", _later(-HOUR_MS))),
    ("a time index an hour late", _rewritten(1, ".timeindex", _later(HOUR_MS))),
    ("an entry of a time index early", _rewritten(1, ".timeindex", _one_early)),
    ("the last entry of the last time index late", _rewritten(-1, ".timeindex", _last_late)),
    ("the end of a time index gone", _rewritten(1, ".timeindex", lambda found: found[:24])),
    ("the end of the last time index gone", _rewritten(-1, ".timeindex", lambda all_: all_[:12])),
    ("a time index of zeros", _rewritten(1, ".timeindex", lambda found: bytes(len(found)))),
    ("a time index with a tail of zeros", _rewritten(1, ".timeindex", lambda a: a + bytes(1200))),
    ("a time index without entries", _rewritten(1, ".timeindex", lambda _: b"")),
    ("a time index without entries, of a log that was changed later", _empty_and_touched),
    ("the last time index without entries", _rewritten(-1, ".timeindex", lambda _: b"")),
    ("a time index missing", _without(".timeindex", segment=1)),
    ("time indexes of other segments", _rotated(".timeindex")),
    ("an offset index that leads on", _rewritten(1, ".index", _one_entry_on)),
    ("an offset index into the batches", _rewritten(1, ".index", _moved(7))),
    ("an offset index behind the segment", _rewritten(1, ".index", _moved(1_000_000))),
    ("an offset index of zeros", _rewritten(1, ".index", lambda found: bytes(len(found)))),
    ("an offset index missing", _without(".index", segment=1)),
    ("offset indexes of other segments", _rotated(".index")),
    ("a middle segment gone", _without(".log", ".index", ".timeindex", ".txnindex", segment=1)),
    ("a middle log gone", _without(".log", segment=1)),
    ("the last segment gone", _without(".log", ".index", ".timeindex", ".txnindex", segment=-1)),
    ("a block of zeros", _rewritten(1, ".log", _zeroed_block)),
    ("a byte flipped", _rewritten(1, ".log", _flipped)),
    ("a header an hour early", _rewritten(1, ".log", _with_header_time(-HOUR_MS))),
    ("a header an hour late", _rewritten(1, ".log", _with_header_time(HOUR_MS))),
    ("a transaction that is open in the snapshot alone", _open_in_the_snapshot),
    ("snapshots gone", _no_snapshots),
    ("a leader epoch that began before", _epoch_from_the_second_segment(1)),
    ("a leader epoch that is not reached yet", _epoch_from_the_second_segment(90)),
)
