"""The tasks of a scan as parts for several threads, each of a size that is worth a thread's while.

A large task is cut between segments and, if damage is an error, where its offset index and the
checksums of the batches on both sides prove that one begins; small ones are put together. Parts
begin small, so that the first rows come soon, and grow until what they decode to is as much as is
to be held.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import LogStorageError
from pylog.reading.damage import DamageReport
from pylog.reading.early_batches import late_part
from pylog.reading.read_options import ReadMemory
from pylog.reading.splitting import cut_slice, find_sound_cut
from pylog.worker_threads import WorkerThreads

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    import pyarrow as pa

    from pylog.reading.damage import DamagedRange
    from pylog.reading.read_options import ReadOptions
    from pylog.reading.reader import TaskReader
    from pylog.reading.scan_task import ScanTask
    from pylog.reading.segment_slice import SegmentSlice

FIRST_PART_BYTES = 1 << 20
MOST_DECODED_BYTES = 1 << 24
"""About how much a part decodes to, and the most that a thread makes before it is asked for."""


class Piece(NamedTuple):
    """A task of the plan, or a part of it; ``task_number`` says of which."""

    task_number: int
    task: ScanTask


class Part(NamedTuple):
    """What a thread reads in one go: some small tasks, or a piece of a large one."""

    pieces: list[Piece]
    past: set[int]
    """Tasks of which nothing more can pass the filter, once the part has been read."""


class PartSizes:
    """How large the next part is to be, from what parts before it have decoded to."""

    def __init__(self) -> None:
        self._size_bytes = max(1, FIRST_PART_BYTES // 4)
        self._ratio = 1.0

    def next_bytes(self) -> int:
        """Return how many bytes of files the part that is cut now shall have, about."""
        most = max(FIRST_PART_BYTES, int(MOST_DECODED_BYTES / self._ratio))
        return min(self._size_bytes, most)

    def note(self, part: Part, decoded_bytes: int) -> None:
        """Note that a part has been read."""
        size_bytes = sum(piece.task.size_bytes for piece in part.pieces)
        self._ratio = max(1.0, decoded_bytes / max(1, size_bytes))
        self._size_bytes = min(2 * self._size_bytes, MOST_DECODED_BYTES)


def read_ahead(
    tasks: Sequence[ScanTask],
    options: ReadOptions,
    make_reader: Callable[[ScanTask, DamageReport, ReadMemory], TaskReader],
) -> Iterator[pa.RecordBatch | DamagedRange]:
    """Yield the rows of tasks, the damage between them, and the error, in the order of one thread.

    ``make_reader`` is called by the threads.
    """
    sizes = PartSizes()
    idle: list[ReadMemory] = []
    past: set[int] = set()

    def read(part: Part) -> Iterator[pa.RecordBatch | DamagedRange]:
        memory = idle.pop() if idle else ReadMemory(options)
        for number, task in part.pieces:
            if number not in past:
                damage = DamageReport(is_logged=False)
                reader = make_reader(task, damage, memory)
                yield from _with_damage(reader, damage)
                if reader.is_past:
                    part.past.add(number)
        idle.append(memory)

    # What is left out between two sound batches depends on both, wherever a segment is cut.
    cuts_segments = not options.mode.skips_damage
    parts = parts_of(tasks, sizes.next_bytes, past, cuts_segments=cuts_segments)
    with WorkerThreads(options.threads) as workers:
        for part, items in workers.each_ahead(parts, read, MOST_DECODED_BYTES):
            if part.pieces[0].task_number in past:
                continue  # it was begun before that was known
            decoded_bytes = 0
            for item in items:
                decoded_bytes += item.nbytes
                yield item
            sizes.note(part, decoded_bytes)
            past |= part.past


def _with_damage(
    reader: TaskReader, damage: DamageReport
) -> Iterator[pa.RecordBatch | DamagedRange]:
    try:
        for batch in reader.record_batches():
            yield from damage.take()
            yield batch
    except LogStorageError:
        yield from damage.take()
        raise
    yield from damage.take()


def parts_of(
    tasks: Sequence[ScanTask],
    size: Callable[[], int],
    past: Container[int] = (),
    *,
    cuts_segments: bool = True,
) -> Iterator[Part]:
    """Yield the tasks in order, in parts of about as many bytes as ``size`` says each time.

    A part is some small tasks, or a piece of a large one, whose rest is left out once its number is
    in ``past``.
    """
    small: list[Piece] = []
    small_bytes = 0
    for number, task in enumerate(tasks):
        if small and small_bytes + task.size_bytes > size():
            yield Part(small, set())
            small, small_bytes = [], 0
        if task.size_bytes <= size():
            small.append(Piece(number, task))
            small_bytes += task.size_bytes
            continue
        for each in _cut(task, size, cuts_segments=cuts_segments):
            if number in past:
                break
            yield Part([Piece(number, each)], set())
    if small:
        yield Part(small, set())


def _cut(task: ScanTask, size: Callable[[], int], *, cuts_segments: bool) -> Iterator[ScanTask]:
    cuts_segments = cuts_segments and task.directory.uses_indexes
    slices: list[SegmentSlice] = []
    start, taken = task.start_offset, 0
    for rest in task.slices:
        if taken >= size() and start < rest.base_offset < task.end_offset:
            yield _piece(task, slices, start, rest.base_offset)
            slices, start, taken = [], rest.base_offset, 0
        if cuts_segments:
            rest = late_part(rest, task.where)  # noqa: PLW2901 - as one reader would
        while cuts_segments and taken + rest.size_bytes > 2 * size():
            cut = find_sound_cut(rest, rest.start_position + max(0, size() - taken))
            if cut is None or not start < cut.offset < task.end_offset:
                break
            head, rest = cut_slice(rest, cut, is_bound=False)  # noqa: PLW2901 - what is left of it
            yield _piece(task, [*slices, head], start, cut.offset)
            slices, start, taken = [], cut.offset, 0
        slices.append(rest)
        taken += rest.size_bytes
    yield _piece(task, slices, start, task.end_offset)


def _piece(task: ScanTask, slices: Sequence[SegmentSlice], start: int, end: int) -> ScanTask:
    return replace(
        task, slices=tuple(slices), start_offset=start, end_offset=end, looks_for_late=False
    )
