"""Two log directories that should be the same: what is not, in words.

Files are compared byte for byte, with two exceptions. A producer snapshot lists producers in the
order of Kafka's hash map, so its entries are compared as a set. And where both have compressed a
batch anew, by libraries that need not give the same bytes, its header and what it decompresses to
are compared; the indexes of such a segment, whose positions are others then, must have entries that
are right.

Since Kafka 4.4 the last batch of a cleaning goes as any other, if no record of it stays; its header
is kept only at the high watermark. Ours always is, as Kafka 3.9.2 to 4.3 keep it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tests.support.batch_parser import ParsedBatch, split_batches
from tests.support.batches import V2_HEADER_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SNAPSHOT_HEAD, _SNAPSHOT_ENTRY = 10, 46
_OFFSET_ENTRY, _TIME_ENTRY = 8, 12
# The tests' own clocks stand years before.
_OF_THE_SYSTEM_CLOCK_MS = 1_750_000_000_000
_CHECKPOINTS = (
    "cleaner-offset-checkpoint",
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
)


def differences(kafkas: Path, ours: Path, partition: str, *, keeps_last: bool = True) -> list[str]:
    """Return how the log directory that we left differs from the one that Kafka left.

    ``keeps_last`` says whether Kafka keeps the header of a cleaning's last batch.
    """
    return [
        *_checkpoint_differences(kafkas, ours),
        *_partition_differences(kafkas / partition, ours / partition, keeps_last=keeps_last),
    ]


def _checkpoint_differences(kafkas: Path, ours: Path) -> Iterator[str]:
    for name in _CHECKPOINTS:
        expected, found = _lines(kafkas / name), _lines(ours / name)
        if expected != found:
            yield f"{name}: Kafka has {expected}, we have {found}"


def _lines(path: Path) -> list[str]:
    """Return the entries of a checkpoint; none of one that is not there or has none."""
    return sorted(path.read_text().split("\n")[2:-1]) if path.exists() else []


def _partition_differences(kafkas: Path, ours: Path, *, keeps_last: bool) -> Iterator[str]:
    expected, found = (_names(each) for each in (kafkas, ours))
    for name in sorted(expected - found):
        yield f"{name}: Kafka has it, we have not"
    for name in sorted(found - expected):
        yield f"{name}: we have it, Kafka has not"
    for name in sorted(expected & found):
        found_here = _file_differences(kafkas / name, ours / name, keeps_last=keeps_last)
        yield from (f"{name}: {each}" for each in found_here)


def _file_time_ms(path: Path) -> int:
    """Return the file time; all that the system's clock has given count as the same."""
    return min(path.stat().st_mtime_ns // 10**6, _OF_THE_SYSTEM_CLOCK_MS)


def _names(directory: Path) -> set[str]:
    """Return the names of files; an empty index of transactions counts as none."""
    return {
        path.name
        for path in directory.iterdir()
        if not (path.name.endswith(".txnindex") and not path.stat().st_size)
    }


def _file_differences(kafkas: Path, ours: Path, *, keeps_last: bool) -> Iterator[str]:
    base, _, kind = kafkas.name.removesuffix(".deleted").partition(".")
    if kind == "log" and _file_time_ms(kafkas) != _file_time_ms(ours):
        yield f"file time {_file_time_ms(ours)}, Kafka's {_file_time_ms(kafkas)}"
    expected, found = kafkas.read_bytes(), ours.read_bytes()
    if expected == found or (kind == "snapshot" and _producers(expected) == _producers(found)):
        return
    if kind == "log":
        yield from _log_differences(expected, found, keeps_last=keeps_last)
        return
    logs = [path.with_name(path.name.replace(kind, "log")) for path in (kafkas, ours)]
    if kind in ("index", "timeindex") and logs[0].read_bytes() != logs[1].read_bytes():
        # Other sizes: entries lie elsewhere, and after other batches.
        wrong = _wrong_positions if kind == "index" else _wrong_times
        yield from wrong(found, logs[1].read_bytes(), int(base))
        return
    yield f"Kafka has {_beginning_of(expected)}, we have {_beginning_of(found)}"


def _producers(snapshot: bytes) -> set[bytes]:
    entries = range(_SNAPSHOT_HEAD, len(snapshot), _SNAPSHOT_ENTRY)
    return {snapshot[:2], *(snapshot[at : at + _SNAPSHOT_ENTRY] for at in entries)}


def _beginning_of(data: bytes) -> str:
    return f"{len(data)} bytes {data[:200].hex()}"


def _log_differences(expected: bytes, found: bytes, *, keeps_last: bool) -> Iterator[str]:
    kafkas, ours = split_batches(expected), split_batches(found)
    if not keeps_last and len(ours) == len(kafkas) + 1 and len(ours[-1]) == V2_HEADER_SIZE:
        ours.pop()
    if [each[:8] for each in kafkas] != [each[:8] for each in ours]:
        offsets = [[int.from_bytes(each[:8]) for each in batches] for batches in (kafkas, ours)]
        yield f"base offsets of batches are {offsets[1]}, Kafka's {offsets[0]}"
        return
    for one, other in zip(kafkas, ours, strict=True):
        if one != other and _without_compression(one) != _without_compression(other):
            offset = int.from_bytes(one[:8])
            yield f"batch at offset {offset}: Kafka has {_described(one)}, we {_described(other)}"


def _without_compression(batch: bytes) -> tuple[bytes, ...]:
    """Return all of a batch but the bytes that depend on who compressed it."""
    if batch[16] != 2 or ParsedBatch.of(batch).codec == "none":
        return (batch,)
    return (batch[:8], batch[12:17], batch[21:V2_HEADER_SIZE], ParsedBatch.of(batch).payload)


def _described(batch: bytes) -> str:
    return str(ParsedBatch.of(batch)) if batch[16] == 2 else f"v{batch[16]}, {batch.hex()}"


def _wrong_positions(index: bytes, log: bytes, base: int) -> Iterator[str]:
    starts, position = {}, 0
    for batch in split_batches(log):
        starts[position] = ParsedBatch.of(batch).last_offset
        position += len(batch)
    for at in range(0, len(index), _OFFSET_ENTRY):
        relative, position = struct.unpack_from(">ii", index, at)
        if starts.get(position) != base + relative:
            yield f"entry of offset {base + relative} says byte {position}"


def _wrong_times(index: bytes, log: bytes, base: int) -> Iterator[str]:
    """Find entries that are not a batch's maximum timestamp and last offset, or do not rise."""
    batches = [ParsedBatch.of(each) for each in split_batches(log)]
    times = {each.last_offset: each.max_timestamp for each in batches}
    last = -(2**63)
    for at in range(0, len(index), _TIME_ENTRY):
        timestamp, relative = struct.unpack_from(">qi", index, at)
        if times.get(base + relative) != timestamp or timestamp <= last:
            yield f"entry of offset {base + relative} says {timestamp}"
        last = timestamp
    if times and (not index or last != max(times.values())):
        yield f"last entry says {last}, the largest timestamp is {max(times.values())}"
