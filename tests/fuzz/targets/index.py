"""Offset and time indexes: look-ups in any bytes, and against linear searches in sound ones.

An input: a byte of flags, a byte for the length of the zero tail, an int64 to look up, and entries.
The flags may ask for the entries to be summed up, which makes them a sound index: sorted columns of
that many bytes are nothing that a fuzzer finds.
"""

from __future__ import annotations

import struct
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, TypeVar

from pylog.files.offset_index import OffsetIndexEntries
from pylog.files.time_index import TimeIndexEntries
from pylog.model import NO_TIMESTAMP, OffsetPosition, TimestampOffset
from tests.fuzz.byte_file import ByteFile
from tests.fuzz.golden_files import golden_files
from tests.support.log_files import offset_index_bytes, time_index_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pylog.files.index_entries import IndexEntries

EntryT = TypeVar("EntryT", OffsetPosition, TimestampOffset)

MAX_BYTES = 10_000  # three pages
IS_TIME_INDEX, SUMMED, LONG_TAIL, TORN, FAR = 0x01, 0x02, 0x04, 0x08, 0x10
OFFSET_ENTRY, TIME_ENTRY = struct.Struct(">ii"), struct.Struct(">qi")
_HEAD_BYTES = 10
_FAR_BASE_OFFSET = 2**62
_SLOTS_OF_LONG_TAIL = 4096

Entries = list[tuple[int, int]]
"""As they are stored."""


def check(data: bytes, file: Path) -> None:
    flags, tail, target = struct.unpack(">BBq", data[:_HEAD_BYTES].ljust(_HEAD_BYTES, b"\0"))
    layout = TIME_ENTRY if flags & IS_TIME_INDEX else OFFSET_ENTRY
    content = data[_HEAD_BYTES:]
    whole = content[: len(content) - len(content) % layout.size]
    entries: Entries = list(layout.iter_unpack(whole))
    if flags & SUMMED:
        entries = _summed(entries, layout)
        content = b"".join(layout.pack(*entry) for entry in entries)
    slots = tail * (_SLOTS_OF_LONG_TAIL if flags & LONG_TAIL else 1)
    if len(content) % layout.size:
        slots = 0  # a torn entry is at the end, or it is none
    elif flags & TORN:
        content, slots = content + b"\1", 0
    source = ByteFile(content, slots * layout.size)
    base = _FAR_BASE_OFFSET if flags & FAR else 0
    is_torn = bool(len(content) % layout.size)
    if flags & IS_TIME_INDEX:
        stamps = [TimestampOffset(stamp, base + relative) for stamp, relative in entries]
        sound_stamps = _sound(stamps, slots, TimestampOffset(0, base))
        _check_time_index(
            TimeIndexEntries.paged(source, base), sound_stamps, target, is_torn=is_torn
        )
    else:
        positions = [OffsetPosition(base + relative, position) for relative, position in entries]
        sound = _sound(positions, slots, OffsetPosition(base, 0))
        _check_offset_index(OffsetIndexEntries.paged(source, base), sound, target, is_torn=is_torn)


def _summed(entries: Entries, layout: struct.Struct) -> Entries:
    """Return entries that go up by what ``entries`` hold, up to where a column would overflow."""
    wide = layout is TIME_ENTRY
    steps = [(1 + (a & 0xFFFF), 1 + (b & 0xFFFF)) for a, b in entries]
    # The first relative offset may be 0, and so may a first position or timestamp.
    sums = list(accumulate(steps, lambda a, b: (a[0] + b[0], a[1] + b[1]), initial=(-1, -1)))
    limit = 2**63 if wide else 2**31
    return [(a, b) for a, b in sums[1:] if a < limit and b < 2**31]


def _sound(entries: list[EntryT], slots: int, zero: EntryT) -> list[EntryT] | None:
    """Return what an index of these entries and a zero tail must show, None if it is not sound."""
    for column in (0, 1):
        numbers = [entry[column] for entry in entries]
        if any(later <= number for number, later in pairwise(numbers)):
            return None
        if numbers and numbers[0] < zero[column]:
            return None
    # Slots of zeros may hold an entry only if it is the first, and the only one of the file.
    everything = entries + [zero] * min(slots, 2)
    if entries and entries != [zero]:
        return entries
    return everything if len(everything) == 1 else []


def _check_offset_index(
    index: OffsetIndexEntries, sound: list[OffsetPosition] | None, target: int, *, is_torn: bool
) -> None:
    shown = _check_entries(index, sound, is_torn=is_torn)
    base = index.base_offset
    start = OffsetPosition(base, 0)
    for wanted in _wanted([entry.offset for entry in shown], base, target):
        found = index.lookup(wanted)
        after = index.fetch_upper_bound_offset(OffsetPosition(0, wanted - base), 1)
        assert found == start or found in shown
        assert after is None or after in shown
        if sound is not None:
            assert found == next((e for e in reversed(sound) if e.offset <= wanted), start)
            assert after == next((e for e in sound if e.position > wanted - base), None)
    assert index.last_offset == (shown[-1].offset if shown else base)


def _check_time_index(
    index: TimeIndexEntries, sound: list[TimestampOffset] | None, target: int, *, is_torn: bool
) -> None:
    shown = _check_entries(index, sound, is_torn=is_torn)
    none = TimestampOffset(NO_TIMESTAMP, index.base_offset)
    for wanted in _wanted([entry.timestamp for entry in shown], 0, target):
        found = index.lookup(wanted)
        assert found == none or found in shown
        if sound is not None:
            assert found == next((e for e in reversed(sound) if e.timestamp <= wanted), none)


def _check_entries(
    index: IndexEntries[EntryT], sound: list[EntryT] | None, *, is_torn: bool
) -> list[EntryT]:
    """Check what the index shows, and return it."""
    shown = list(index)
    assert index.entry_count == len(shown) <= index.slot_count
    assert index.last_entry() == (shown[-1] if shown else None)
    assert _refuses(index, -1)
    assert _refuses(index, len(shown))
    defect = index.find_defect()
    assert not is_torn or defect is not None
    if sound is not None:
        assert shown == sound
        assert (defect is not None) == is_torn
    return shown


def _refuses(index: IndexEntries[EntryT], slot: int) -> bool:
    try:
        index.entry(slot)
    except ValueError:
        return True
    return False


def _wanted(numbers: list[int], lowest: int, target: int) -> set[int]:
    """Return numbers to look up: around some of those that are there, and far from them."""
    some = [*numbers[:3], *numbers[len(numbers) // 2 :][:2], *numbers[-2:]]
    near = {number + step for number in some for step in (-1, 0, 1)}
    return near | {target, lowest - 1, lowest, lowest + target % 2**32, -(2**63), 2**63 - 1}


def seeds() -> Iterator[bytes]:
    entries = [(number * 7, number * 400) for number in range(1, 600)]
    stamps = [(1_000 + number * 3, number * 7) for number in range(400)]
    for count in (0, 1, 5, len(entries)):
        for flags, tail in ((0, 0), (0, 1), (LONG_TAIL, 200), (TORN, 0), (FAR, 3)):
            head = struct.pack(">BBq", flags, tail, 20)
            yield head + offset_index_bytes(entries[:count], 0)
            head = struct.pack(">BBq", flags | IS_TIME_INDEX, tail, 1_500)
            yield head + time_index_bytes(stamps[:count], 0)
    for flags in (SUMMED, SUMMED | IS_TIME_INDEX):
        yield struct.pack(">BBq", flags, 9, 3_000) + bytes(range(240))


def golden_seeds() -> Iterator[bytes]:
    for name, data in golden_files(".index", ".timeindex", max_bytes=2_400):
        flags = IS_TIME_INDEX if name.endswith(".timeindex") else 0
        yield struct.pack(">BBq", flags, 0, 10) + data
