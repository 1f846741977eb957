"""The tasks of a scan as parts for several threads, each of a size that is worth a thread's while.

The caller's thread reads the first rows, so that they come as soon as with one thread. Parts after
them grow until what they decode to is as much as is to be held: more does not fit into the
processor's cache, and less costs more for the parts than it saves.
"""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pylog.errors import LogStorageError, SegmentVanishedError
from pylog.reading.damage import DamageReport
from pylog.reading.early_batches import late_part
from pylog.reading.reader import ReadMemory
from pylog.reading.splitting import cut_task
from pylog.scheduling.worker_threads import WorkerThreads

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence

    import pyarrow as pa

    from pylog.reading.checked_windows import ReadOptions
    from pylog.reading.damage import DamagedRange
    from pylog.reading.reader import TaskReader
    from pylog.reading.task_range import TaskRange

    _Item: TypeAlias = pa.RecordBatch | DamagedRange

FIRST_PART_BYTES = 1 << 20
"""What has no more is read by the caller's thread."""
MOST_DECODED_BYTES = 3 << 23
"""About how much a part decodes to, and the most that a thread makes before it is asked for."""
_GROWTH = 4


class TaskPiece(NamedTuple):
    """A task of the plan, or a part of it; ``task_number`` says of which."""

    task_number: int
    task: TaskRange


class Part(NamedTuple):
    """What a thread reads in one go: some small tasks, or a piece of a large one."""

    pieces: list[TaskPiece]
    past: set[int]
    """Tasks of which nothing more can pass the filter, once the part has been read."""

    @property
    def size_bytes(self) -> int:
        """Bytes of ``.log`` files to read."""
        return sum(piece.task.size_bytes for piece in self.pieces)


class PartSizes:
    """How large the next part is to be, from what parts before it have decoded to."""

    def __init__(self, window_bytes: int) -> None:
        self._window_bytes = window_bytes
        self._size_bytes = max(1, FIRST_PART_BYTES // _GROWTH)
        self._ratio = 1.0

    def next_bytes(self) -> int:
        """Return how many bytes of files the part that is cut now shall have, about."""
        most = max(FIRST_PART_BYTES, int(MOST_DECODED_BYTES / self._ratio))
        windows = most // self._window_bytes
        if windows:  # and no small one after them, which would cost nearly as much
            most = windows * (self._window_bytes - self._window_bytes // 16)
        return min(self._size_bytes, most)

    def grow(self) -> None:
        """Note that a part has been cut."""
        self._size_bytes = min(_GROWTH * self._size_bytes, MOST_DECODED_BYTES)

    def note(self, part: Part, decoded_bytes: int) -> None:
        """Note that a part has been read."""
        self._ratio = max(1.0, decoded_bytes / max(1, part.size_bytes))


def read_ahead(
    tasks: Sequence[TaskRange],
    options: ReadOptions,
    make_reader: Callable[[TaskRange, DamageReport, ReadMemory], TaskReader],
) -> Iterator[pa.RecordBatch | DamagedRange]:
    """Yield the rows of tasks, the damage between them, and the error, in the order of one thread.

    ``make_reader`` is called by the threads.
    """
    sizes = PartSizes(options.window_bytes)
    idle: list[ReadMemory] = []
    past: set[int] = set()

    def read(part: Part) -> Iterator[pa.RecordBatch | DamagedRange]:
        memory = idle.pop() if idle else ReadMemory(options)
        # The first window need not be small: nobody waits for the rows of this part yet.
        memory.windows(min(options.window_bytes, part.size_bytes))
        for number, task in part.pieces:
            if number not in past:
                damage = DamageReport(is_logged=False)
                reader = make_reader(task, damage, memory)
                yield from _with_damage(reader, damage)
                if reader.is_past:
                    part.past.add(number)
        idle.append(memory)

    def ahead(workers: WorkerThreads) -> Generator[tuple[Part, Iterable[_Item]]]:
        parts = parts_of(tasks, sizes, past, skips_damage=options.mode.skips_damage)
        for part in islice(parts, 1):
            yield part, read(part)
        yield from workers.each_ahead(parts, read, MOST_DECODED_BYTES)

    with WorkerThreads(options.threads) as workers, closing(ahead(workers)) as each:
        for part, items in each:
            if part.pieces[0].task_number in past:
                continue  # it was begun before that was known
            decoded_bytes = 0
            for item in items:
                decoded_bytes += item.nbytes
                yield item
            sizes.note(part, decoded_bytes)
            past |= part.past


def _with_damage(reader: TaskReader, damage: DamageReport) -> Iterator[_Item]:
    try:
        for batch in reader.record_batches():
            yield from damage.take()
            yield batch
    except LogStorageError:
        yield from damage.take()
        raise
    yield from damage.take()


def parts_of(
    tasks: Sequence[TaskRange],
    sizes: PartSizes,
    past: Container[int] = (),
    *,
    skips_damage: bool = False,
) -> Iterator[Part]:
    """Yield the tasks in order, in parts: some small tasks, or a piece of a large one."""
    small: list[TaskPiece] = []
    small_bytes = 0
    for number, task in enumerate(tasks):
        if small and small_bytes + task.size_bytes > sizes.next_bytes():
            yield Part(small, set())
            sizes.grow()
            small, small_bytes = [], 0
        if task.size_bytes <= sizes.next_bytes():
            small.append(TaskPiece(number, task))
            small_bytes += task.size_bytes
            continue
        for each in _pieces(task, sizes, skips_damage=skips_damage):
            if number in past:
                break
            yield Part([TaskPiece(number, each)], set())
            sizes.grow()
    if small:
        yield Part(small, set())


def _pieces(task: TaskRange, sizes: PartSizes, *, skips_damage: bool) -> Iterator[TaskRange]:
    if task.where is not None and task.where.min_timestamp is not None:
        # Early batches are skipped as one reader would: from a cut it would skip others.
        with suppress(SegmentVanishedError):  # its reader will look again
            slices = tuple(late_part(each, task.where) for each in task.slices)
            task = replace(task, slices=slices, looks_for_late=False)
    return cut_task(task, sizes.next_bytes, is_thorough=False, checks_records=skips_damage)
