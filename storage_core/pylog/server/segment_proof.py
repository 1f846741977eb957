"""Which bytes of a segment have been proved intact, and where its batches begin.

A client may not check checksums, and ``sendfile`` cannot. So every batch is checked before it is
served for the first time: header, offsets, checksum, and what a control batch says. The walk is
that of all readers (`pylog.reading.checked_windows`), window by window, from where a client begins
to where it reads, in threads. What was proved is remembered for as long as the file is as it was: a
second client costs one look at the file's size and times. Where these differ, each window is proved
again before it is served. It may hold what it held, since the file has only grown; else the
partition has to be looked at anew.

Memory is bounded. A window of some megabytes is remembered by its two ends; where each of its
batches begins is kept for the windows that were used last, and looked up again for others. Small
windows, as they come with a log that grows, are joined.
"""

from __future__ import annotations

import threading
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from pylog.errors import CorruptRecordError, SegmentVanishedError
from pylog.files.storage import change_mark, open_file
from pylog.kernels.decode_headers import LAST_OFFSET, OFFSET, SIZE_BYTES
from pylog.locations import is_remote
from pylog.log_file.segment_windows import SegmentWindows, WindowMemory
from pylog.reading.checked_windows import CheckedWindows
from pylog.reading.slicing import open_slice, slice_of
from pylog.record.batch_header import TRANSACTIONAL_FLAG_MASK
from pylog.record.batch_scan import find_bad_checksum

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    import numpy.typing as npt

    from pylog.files.byte_source import ByteSource
    from pylog.reading.log_view import LogView
    from pylog.record.batch_scan import Window

_FIRST_WINDOW_BYTES = 1 << 20
_NEAR_BYTES = 1 << 22
"""Up to so many bytes are proved on the way to an offset; beyond, the offset index is asked."""
_JOINED_BYTES = 1 << 19
_ENTRY_BATCHES = 32
"""As much memory as so many batches is what a window takes by itself."""


class ProvedWindow(NamedTuple):
    """Intact batches one after the other; they answer for ``[lowest_offset, next_offset)``.

    ``look`` tells when they were proved, see `SegmentProof.look`; ``checksum`` is of their headers.
    """

    position: int
    end_position: int
    lowest_offset: int
    next_offset: int
    has_transactions: bool
    look: int
    checksum: int

    def followed_by(self, other: ProvedWindow, checksum: int) -> ProvedWindow:
        """Return both as one, which is as old as this one."""
        return self._replace(
            end_position=other.end_position,
            next_offset=other.next_offset,
            has_transactions=self.has_transactions or other.has_transactions,
            checksum=checksum,
        )


class Batches(NamedTuple):
    """Where the batches of a window begin, and the last offset of each."""

    positions: array[int]
    last_offsets: array[int]

    def followed_by(self, other: Batches) -> Batches:
        """Return both as one; readers of this one are not disturbed."""
        return Batches(self.positions + other.positions, self.last_offsets + other.last_offsets)


class BatchCache:
    """Remembers the batches of the windows that were used last. Any number of threads."""

    def __init__(self, max_batches: int = 1 << 19) -> None:
        self._max_batches = max_batches
        self._count = 0
        self._kept: OrderedDict[tuple[int, int], Batches] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[int, int]) -> Batches | None:
        """Return the batches of a window if they are remembered."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: tuple[int, int], batches: Batches) -> None:
        """Remember the batches of a window, and forget others if they are too many."""
        with self._lock:
            before = self._kept.pop(key, None)
            self._count += _cost(batches) - (_cost(before) if before else 0)
            self._kept[key] = batches
            while self._count > self._max_batches and len(self._kept) > 1:
                _, dropped = self._kept.popitem(last=False)
                self._count -= _cost(dropped)


def _cost(batches: Batches) -> int:
    return _ENTRY_BATCHES + len(batches.positions)


class ProvedRange(NamedTuple):
    """What a fetch gets of one segment: ``size_bytes`` bytes that are proved.

    There are none if the first batch ``exceeds`` what is asked for. A batch that has to be sent
    with another base offset than it says comes alone. ``is_ahead`` if as much again is proved.
    """

    position: int
    size_bytes: int
    next_offset: int
    has_transactions: bool
    exceeds: bool = False
    base_offset: int | None = None
    is_ahead: bool = False


class NotProvedError(Exception):
    """The answer needs a look at bytes that nobody has had yet."""


_memories = threading.local()


class SegmentProof:
    """The batches of one segment's file that are proved to be intact.

    Any number of threads: proving takes the lock, and replaces `windows` as a whole.

    Attributes
    ----------
    look
        Counts how often the file was another one than at the look before.
    """

    def __init__(self, cache: BatchCache, path: str, *, each_time: bool = False) -> None:
        self.windows: tuple[ProvedWindow, ...] = ()
        self.source: ByteSource | None = None
        self.look = 0
        self.is_left_out = False  # it cannot be read, and damage is left out
        self.has_transactions = False  # whether a batch of a transaction has been met so far
        self._path = path
        self._is_remote = is_remote(path)
        self._each_time = each_time  # whether nothing is believed that was proved before
        # What the file was at the last look, and where the segment ended in the view.
        self._seen: tuple[object, int] = None, 0
        # Up to where the segment has been walked, to its end, and what that was: it may grow.
        self._walked: tuple[int, int] | None = None
        self._gaps: set[int] = set()  # where damage begins that is left out
        # Where batches begin that have other offsets than they say: their first and last one.
        self._moved: dict[int, tuple[int, int]] = {}
        self._defects: dict[int, CorruptRecordError] = {}
        self._cache = cache
        self._lock = threading.Lock()

    def locate(
        self,
        offset: int,
        max_bytes: int,
        limit_offset: int,
        *,
        whole_batch: bool,
        end: int,
        is_fresh: bool = False,
    ) -> ProvedRange | None:
        """Return the bytes for a fetch; None if the segment holds no batch from ``offset`` on.

        The bounds are a broker's (LogSegment.read, ReplicaManager.readFromLog): from the batch that
        holds ``offset``, at most ``max_bytes``, with ``whole_batch`` at least that batch, else
        nothing if it does not fit, and no batch that ends at or after ``limit_offset``. ``end`` is
        where the segment ends. Only what is proved is given, however little that is. Right after
        `prove` it ``is_fresh``: a file that grows without a pause has changed again by then.

        Raises
        ------
        NotProvedError
            `prove` must have a look first.
        CorruptRecordError
            Damage is at ``offset``.
        """
        windows, seen = self.windows, self._seen
        mark = seen[0] if is_fresh else self._mark()
        if (mark, end) != seen or (self.source is None and not self.is_left_out):
            raise NotProvedError
        index = bisect_right(windows, offset, key=attrgetter("next_offset"))
        if index == len(windows) or windows[index].lowest_offset > offset:
            self._ensure_walked(windows, index, offset, end)
            return None
        window = windows[index]
        if window.look != self.look:
            raise NotProvedError
        batches = self._batches(window)
        place = bisect_left(batches.last_offsets, offset)
        if batches.last_offsets[place] >= limit_offset:
            return ProvedRange(batches.positions[place], 0, offset, has_transactions=False)
        position = batches.positions[place]
        is_last = place + 1 == len(batches.positions)
        batch_end = window.end_position if is_last else batches.positions[place + 1]
        fits = max_bytes >= batch_end - position
        moved = self._moved.get(position)
        if fits and moved is None:
            return self._extend(windows[index:], position, max_bytes, limit_offset, end)
        # A part of the first batch is of no use to anybody.
        size_bytes = batch_end - position if whole_batch or fits else 0
        exceeds = max_bytes > 0 and not size_bytes
        found = ProvedRange(
            position, size_bytes, window.next_offset, window.has_transactions, exceeds
        )
        return found if moved is None else found._replace(base_offset=moved[0])

    def _extend(
        self,
        windows: tuple[ProvedWindow, ...],
        position: int,
        wanted: int,
        limit_offset: int,
        end: int,
    ) -> ProvedRange:
        """Return up to ``wanted`` bytes from a position in the first of some windows."""
        has_transactions = False
        for number, window in enumerate(windows, 1):
            following = windows[number] if number < len(windows) else None
            has_transactions = has_transactions or window.has_transactions
            stop = window.end_position
            if window.next_offset > limit_offset:
                batches = self._batches(window)
                place = bisect_left(batches.last_offsets, limit_offset)
                stop = batches.positions[place]
                break
            if stop - position >= wanted:
                break
            if following is None or following.position != stop:
                if stop < end and not self._is_end(stop, end):
                    raise NotProvedError
                break
            if following.look != window.look:
                break
        if self._moved:
            stop = min((stop, *(each for each in self._moved if each > position)))
        size_bytes = min(stop - position, wanted)
        is_ahead = _are_proved(windows[number:], window, wanted)
        return ProvedRange(
            position, size_bytes, window.next_offset, has_transactions, is_ahead=is_ahead
        )

    def _ensure_walked(
        self, windows: tuple[ProvedWindow, ...], index: int, offset: int, end: int
    ) -> None:
        """Raise why no window has the offset, unless the whole segment has been walked."""
        before = windows[index - 1].end_position if index else 0
        lowest = windows[index - 1].next_offset if index else 0
        defect = self._defects.get(before)
        if defect is not None and lowest == offset:
            raise defect
        if index == len(windows) and (before == end or self._walked == (before, end)):
            return
        raise NotProvedError

    def _is_end(self, position: int, end: int) -> bool:
        """Whether nothing more can be given after a position."""
        return (
            position in self._defects or position in self._gaps or self._walked == (position, end)
        )

    def _batches(self, window: ProvedWindow) -> Batches:
        batches = self._cached(window)
        if batches is None:
            raise NotProvedError
        return batches

    def _cached(self, window: ProvedWindow) -> Batches | None:
        batches = self._cache.get((id(self), window.position))
        is_of_window = batches is not None and batches.last_offsets[-1] + 1 == window.next_offset
        return batches if is_of_window else None

    def _mark(self) -> object:
        """Return a value that differs once the file has changed."""
        if self._each_time:
            return object()
        if self._is_remote:
            return None  # what is read there is copied, and asked for: `ByteSource.ensure_same`
        return change_mark(self._path) or object()

    def release(self) -> None:
        """Close the file, once nobody sends of it; `prove` opens it again."""
        self.source = None

    def _look(self, view: LogView, index: int) -> ByteSource | None:
        """Have a look at the file; `SegmentVanishedError` if it is not that of the view."""
        seen = self._mark(), view.segment_end(index)
        source = self.source
        if source is None:
            source = self.source = open_slice(slice_of(view, index), view.damage)
            self.is_left_out = source is None
        elif seen[0] != self._seen[0]:
            with open_file(self._path) as now:
                if now.file_id() != source.file_id():
                    raise _changed(self._path, "was replaced by another one")
        if source is not None and source.size() < seen[1]:
            raise _changed(self._path, "has become shorter")
        if seen != self._seen:
            self._defects, self._gaps, self._walked = {}, set(), None
            self._seen = seen
            self.look += 1
        return source

    def _prove_again(self, source: ByteSource, offset: int, max_bytes: int) -> int | None:
        """Prove windows of an earlier look that hold up to some bytes from an offset on.

        And the ones before and after, where walks begin and end. Where one holds other batches
        nothing is proved any more, and its look is returned.
        """
        first = bisect_right(self.windows, offset, key=attrgetter("next_offset"))
        for index in range(max(0, first - 1), len(self.windows)):
            window = self.windows[index]
            if window.look != self.look:
                if self._checksum_now(source, window) != window.checksum:
                    self.windows, self._defects, self._gaps = (), {}, set()
                    self._walked, self._moved = None, {}
                    return window.look
                again = window._replace(look=self.look)
                self.windows = (*self.windows[:index], again, *self.windows[index + 1 :])
            if max_bytes <= 0:
                break
            if index >= first:
                max_bytes -= window.end_position - window.position
        return None

    def _checksum_now(self, source: ByteSource, window: ProvedWindow) -> int | None:
        """Return the checksum of the headers of batches that are intact; None if one is not."""
        windows = SegmentWindows(
            source, window.position, window.end_position, make_memory=_memory()
        )
        checksum = 0
        try:
            for each in windows:
                if find_bad_checksum(each) is not None:
                    return None
                checksum = _checksum(self._as_moved(each), checksum)
        except (CorruptRecordError, SegmentVanishedError):
            return None
        return checksum

    def _as_moved(self, window: Window) -> npt.NDArray[np.int64]:
        """Return the headers of a window with the offsets that its batches are served with."""
        columns = window.headers.columns
        if self._moved:
            columns = columns.copy()
            for place, position in enumerate(window.headers.positions.tolist()):
                moved = self._moved.get(window.file_position + position)
                if moved is not None:
                    columns[OFFSET, place], columns[LAST_OFFSET, place] = moved
        return columns

    def prove(
        self, view: LogView, index: int, offset: int, max_bytes: int, limit_offset: int
    ) -> int | None:
        """Have a look at what `locate` needs; at least one window more is proved afterwards.

        Returns
        -------
        The look at which other batches were proved than the file has by now; None if none were.

        Raises
        ------
        SegmentVanishedError
            The file is not that of the view, or ends before what the view has of it.
        """
        with self._lock:
            source = self._look(view, index)
            if source is None:
                self._walked = 0, view.segment_end(index)
                return None
            outdated = self._prove_again(source, offset, max_bytes)
            self._look_up_batches(source, offset, limit_offset)
            end = view.segment_end(index)
            start, lowest = self._start(view, index, source, offset)
            wanted = start + max(max_bytes, 1)
            self._walk(view, index, source, (start, lowest, min(wanted, end)))
            return outdated

    def _look_up_batches(self, source: ByteSource, *offsets: int) -> None:
        """Find the batches of the windows that hold some offsets again, if they are forgotten."""
        for offset in offsets:
            index = bisect_right(self.windows, offset, key=attrgetter("next_offset"))
            if index == len(self.windows) or self.windows[index].lowest_offset > offset:
                continue
            window = self.windows[index]
            if self._cached(window) is not None:
                continue
            size = window.end_position - window.position
            again = SegmentWindows(
                source,
                window.position,
                window.end_position,
                window_bytes=size,
                first_window_bytes=size,
            )
            positions, last_offsets = array("q"), array("q")
            for each in again:
                batches = _batches_of(each)
                positions.extend(batches.positions)
                last_offsets.extend(batches.last_offsets)
            for place, position in enumerate(positions):
                if position in self._moved:
                    last_offsets[place] = self._moved[position][1]
            self._cache.put((id(self), window.position), Batches(positions, last_offsets))

    def _start(self, view: LogView, index: int, source: ByteSource, offset: int) -> tuple[int, int]:
        """Return where to begin to prove, and the lowest offset that may be there."""
        windows = self.windows
        at = bisect_right(windows, offset, key=attrgetter("next_offset"))
        if at < len(windows) and windows[at].lowest_offset <= offset:
            # It is there: more is wanted after it, where windows are no longer side by side.
            while at + 1 < len(windows) and windows[at].end_position == windows[at + 1].position:
                at += 1
            return windows[at].end_position, windows[at].next_offset
        position, lowest = 0, 0
        if at:
            position, lowest = windows[at - 1].end_position, windows[at - 1].next_offset
        defect = self._defects.get(position)
        end = windows[at].position if at < len(windows) else view.segment_end(index)
        is_near = view.damage is not None or end - position <= _NEAR_BYTES
        if defect is None and (is_near or lowest == offset):
            return position, lowest
        found = None
        with suppress(CorruptRecordError):  # the walk tells exactly where
            found = view.segments[index].find_batch(source, offset, end)
        if found is not None and found.position > position:
            return found.position, offset
        if defect is not None:
            raise defect
        return position, lowest

    def _walk(
        self, view: LogView, index: int, source: ByteSource, way: tuple[int, int, int]
    ) -> None:
        """Prove from a position on, at least up to another one; the first damage ends it."""
        start, lowest_offset, wanted = way
        following = bisect_right(self.windows, start - 1, key=attrgetter("position"))
        stop = self.windows[following].position if following < len(self.windows) else None
        if stop is not None and stop == start:
            known = self.windows[following]
            answers = known._replace(lowest_offset=min(known.lowest_offset, lowest_offset))
            self.windows = (*self.windows[:following], answers, *self.windows[following + 1 :])
            return
        segment_slice = slice_of(view, index, start, stop)
        end = segment_slice.end_position
        if start >= end:
            self._walked = start, end
            return
        # An offset inside the first batch may be below what is looked for.
        checked = CheckedWindows(
            source,
            segment_slice,
            lowest_offset=0 if self._begins_inside(start) else lowest_offset,
            damage=view.damage,
            checks_counts=True,
            first_window_bytes=_FIRST_WINDOW_BYTES,
            memory=_memory(),
        )
        windows = iter(checked)
        expected = start
        try:
            for window in windows:
                if window.file_position != expected:
                    self._gaps.add(expected)
                if checked.moved:
                    self._moved = self._moved | checked.moved  # others may be looking at it
                self._add(window, lowest_offset)
                lowest_offset = int(window.headers.last_offsets[-1]) + 1
                expected = window.end_position
                if expected >= wanted:
                    break
            else:
                if stop is None:
                    self._walked = expected, end
        except CorruptRecordError as error:
            # The next fetch gets the error; what stands before the damage is served.
            self._defects[self._end_of_proved(start)] = error
        finally:
            windows.close()

    def _begins_inside(self, start: int) -> bool:
        """Whether nothing is known of what stands before a position."""
        return start > 0 and all(each.end_position != start for each in self.windows)

    def _end_of_proved(self, start: int) -> int:
        position = start
        for each in self.windows:
            if each.position <= position < each.end_position:
                position = each.end_position
        return position

    def _add(self, window: Window, lowest_offset: int) -> None:
        batches = _batches_of(window)
        proved = ProvedWindow(
            window.file_position,
            window.end_position,
            lowest_offset,
            batches.last_offsets[-1] + 1,
            window.headers.traits.any_has(TRANSACTIONAL_FLAG_MASK),
            self.look,
            _checksum(window.headers.columns),
        )
        self.has_transactions = self.has_transactions or proved.has_transactions
        at = bisect_right(self.windows, proved.position, key=attrgetter("position"))
        before, after = list(self.windows[:at]), list(self.windows[at:])
        if before and _can_be_joined(before[-1], proved):
            known = self._cached(before[-1])
            proved = before[-1].followed_by(
                proved, _checksum(window.headers.columns, before.pop().checksum)
            )
            if known is not None:  # else `prove` looks all of them up again
                self._cache.put((id(self), proved.position), known.followed_by(batches))
        else:
            self._cache.put((id(self), proved.position), batches)
        if after and after[0].position == proved.end_position:
            after[0] = after[0]._replace(lowest_offset=proved.next_offset)
        self.windows = (*before, proved, *after)


def _are_proved(windows: Iterable[ProvedWindow], before: ProvedWindow, wanted: int) -> bool:
    """Whether windows hold so many bytes after another one."""
    end = before.end_position
    for each in windows:
        if each.position != end or each.look != before.look:
            return False
        end = each.end_position
        if end - before.end_position >= wanted:
            return True
    return False


def _can_be_joined(one: ProvedWindow, following: ProvedWindow) -> bool:
    return (
        one.end_position == following.position
        and one.next_offset == following.lowest_offset
        and following.end_position - one.position <= _JOINED_BYTES
    )


def _checksum(headers: npt.NDArray[np.int64], before: int = 0) -> int:
    """Return a checksum of the headers of batches that follow others."""
    return zlib.crc32(headers[SIZE_BYTES:].T.tobytes(), before)


def _changed(path: str, how: str) -> SegmentVanishedError:
    return SegmentVanishedError(f"file {how} since the directory was looked at", path)


def _memory() -> WindowMemory:
    """Return this thread's memory, into which windows are read one after the other."""
    memory: WindowMemory | None = getattr(_memories, "windows", None)
    if memory is None:
        memory = _memories.windows = WindowMemory()
    return memory


def _batches_of(window: Window) -> Batches:
    positions = array("q", (window.headers.positions + window.file_position).tobytes())
    return Batches(positions, array("q", window.headers.last_offsets.tobytes()))
