"""The table of a partition's records: as many rows as fit into memory, of any number of records.

It keeps the rows of one range of offsets, reads on before the cursor reaches an end of it, and
forgets rows at the other end. The scroll bar stands for offsets, and so needs no count of records.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.segment import Segment
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

import pylog
from pylog.cli.browse.cells import (
    KEY,
    MOST_KEY_WIDTH,
    PLACE,
    STYLES,
    WIDTH_FOR_DATES,
    content_text,
    fitted,
    printable_text,
    time_text,
)
from pylog.cli.browse.record_windows import Row, RowWindow, joined
from pylog.errors import LogStorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from textual import events

    from pylog.cli.browse.background import Match
    from pylog.cli.browse.record_windows import PartitionRecords

MOST_ROWS = 4_000  # more than a window and what is read ahead at both ends
_READ_AHEAD_ROWS = 150
_TRACK, _THUMB, _DAMAGE = "│", "█", "!"


class _Columns(NamedTuple):
    offset: int
    time: int
    key: int
    value: int


class RecordTable(Widget, can_focus=True):
    """Rows of one partition, with a cursor and a scroll bar.

    Invariant: ``_rows`` cover ``[loaded.start_offset, loaded.end_offset)`` without holes, and
    ``_top`` and ``_cursor`` are places in them. What threads read comes back as messages of a
    generation; those from before a jump are dropped.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "record-table--cursor",
        "record-table--cursor-elsewhere",
    }
    DEFAULT_CSS = """
    RecordTable { height: 1fr; width: 1fr; }
    RecordTable > .record-table--cursor {
        background: $block-cursor-background; color: $block-cursor-foreground; text-style: bold;
    }
    RecordTable > .record-table--cursor-elsewhere { background: $block-cursor-blurred-background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down", show=False, tooltip="lnav, VisiData"),
        Binding("up,k", "move(-1)", "Up", show=False, tooltip="lnav, VisiData"),
        Binding("pagedown,space,ctrl+f", "page(1)", "Page down", show=False, tooltip="lnav"),
        Binding("pageup,b,ctrl+b", "page(-1)", "Page up", show=False, tooltip="lnav"),
        Binding("home,g", "first", "First record", show=False, tooltip="lnav"),
        Binding("end,G", "last", "Last record", show=False, tooltip="lnav"),
        Binding("e", "damage(1)", "Damage", tooltip="lnav's errors"),
        Binding("E", "damage(-1)", "Previous damage", show=False, tooltip="lnav's errors"),
    ]

    @dataclass
    class Moved(Message):
        """The cursor is on another row; None while there is none."""

        row: Row | None

    @dataclass
    class Read(Message):
        """A thread has read a window, or could not."""

        generation: int
        window: RowWindow | None
        where: str  # "before" or "after" what is there, or "instead"
        to: int  # the offset that the cursor moves to, if it is "instead"

    def __init__(self, records: PartitionRecords, matches: Mapping[int, Match]) -> None:
        super().__init__()
        self.records = records
        self._matches = matches  # by offset
        self.damaged_offsets: set[int] = set()  # seen in what was read, or found by the doctor
        self.loaded = RowWindow(0, 0, [])  # what is in memory
        self._top = self._cursor = 0
        self._generation = 0
        self._reading: set[str] = set()
        self._pending_rows = 0  # that the cursor moves on when they are there
        self._is_dragged = False

    @property
    def row(self) -> Row | None:
        """The row that the cursor is on."""
        return self.loaded.rows[self._cursor] if self.loaded.rows else None

    @property
    def is_reading(self) -> bool:
        """Whether a thread is reading more rows."""
        return bool(self._reading)

    @property
    def _height(self) -> int:
        return max(self.size.height - 1, 1)  # without the heading

    # Reading

    def go_to(self, offset: int) -> None:
        """Put the cursor on the row of an offset, or the one after it."""
        loaded = self.loaded
        if loaded.rows and loaded.start_offset <= offset < loaded.end_offset:
            self._put_cursor_at(offset)
            self._moved()
            return
        self._jump(partial(self.records.around, offset), offset)

    def forget(self) -> None:
        """Forget all rows: the log has changed."""
        self._generation += 1
        self._reading.clear()
        self.loaded = RowWindow(0, 0, [])

    def _jump(self, read: Callable[[], RowWindow], to: int) -> None:
        self._generation += 1
        self._reading.clear()
        self._pending_rows = 0
        self._start("instead", read, to)

    def _start(self, where: str, read: Callable[[], RowWindow], to: int = 0) -> None:
        if where in self._reading:
            return
        self._reading.add(where)
        work = partial(self._read, self._generation, where, read, to)
        self.run_worker(work, thread=True, group="read")

    def _read(self, generation: int, where: str, read: Callable[[], RowWindow], to: int) -> None:
        """Read a window, in a thread."""
        window = None
        try:
            window = read()
        except (LogStorageError, OSError, ValueError) as error:
            text = pylog.jobs.printable(str(error))
            self.app.call_from_thread(self.app.notify, text, severity="error", markup=False)
        self.post_message(self.Read(generation, window, where, to))

    def on_record_table_read(self, message: Read) -> None:
        """Take in a window that has been read."""
        message.stop()
        if message.generation != self._generation:
            return
        self._reading.discard(message.where)
        window = message.window
        if window is None:
            return
        self.damaged_offsets |= {row.offset for row in window.rows if row.is_damage}
        if message.where == "instead":
            self.loaded = window
            self._top = -self._height  # on no row: the cursor comes into the middle
            self._put_cursor_at(message.to)
        elif message.where == "after" and window.start_offset == self.loaded.end_offset:
            self._append(window)
        elif message.where == "before" and window.end_offset == self.loaded.start_offset:
            self._prepend(window)
        self._moved()

    def _append(self, window: RowWindow) -> None:
        self.loaded = joined(self.loaded, window)
        self._forget_first(len(self.loaded.rows) - MOST_ROWS)
        self._move_by(0)

    def _prepend(self, window: RowWindow) -> None:
        before = len(self.loaded.rows)
        self.loaded = joined(window, self.loaded)
        added = len(self.loaded.rows) - before
        self._top += added
        self._cursor += added
        self._move_by(0)
        if len(self.loaded.rows) > MOST_ROWS:
            kept = self.loaded.rows[:MOST_ROWS]
            self.loaded = RowWindow(self.loaded.start_offset, kept[-1].end_offset, kept)

    def _forget_first(self, count: int) -> None:
        if count > 0:
            kept = self.loaded.rows[count:]
            self.loaded = RowWindow(kept[0].offset, self.loaded.end_offset, kept)
            self._top = max(self._top - count, 0)
            self._cursor = max(self._cursor - count, 0)

    def _read_on(self) -> None:
        """Read what comes next where the cursor is near an end of what is there."""
        loaded, records = self.loaded, self.records
        if not loaded.rows or "instead" in self._reading:
            return
        margin = _READ_AHEAD_ROWS + self._height
        if self._cursor + margin >= len(loaded.rows) and loaded.end_offset < records.end_offset:
            self._start("after", partial(records.forward, loaded.end_offset))
        elif self._cursor < margin and loaded.start_offset > records.start_offset:
            self._start("before", partial(records.backward, loaded.start_offset))

    # Moving

    def _put_cursor_at(self, offset: int) -> None:
        rows = self.loaded.rows
        place = bisect_right(rows, offset, key=lambda row: row.offset) - 1
        if 0 <= place < len(rows) - 1 and rows[place].end_offset <= offset:
            place += 1
        self._cursor = max(place, 0)
        if not self._top <= self._cursor < self._top + self._height:
            self._top = self._cursor - self._height // 2

    def _moved(self) -> None:
        """Keep the cursor on the screen, and tell."""
        last = len(self.loaded.rows) - 1
        self._cursor = min(max(self._cursor, 0), max(last, 0))
        lowest = self._cursor - self._height + 1
        self._top = max(min(max(self._top, lowest), self._cursor, last - self._height + 1), 0)
        self._read_on()
        self.refresh()
        self.post_message(self.Moved(self.row))

    def _move_by(self, rows: int) -> None:
        """Move the cursor by this and what is pending, as far as there are rows; keep the rest."""
        wanted = self._cursor + self._pending_rows + rows
        self._cursor = min(max(wanted, 0), max(len(self.loaded.rows) - 1, 0))
        self._pending_rows = min(max(wanted - self._cursor, -MOST_ROWS), MOST_ROWS)

    def action_move(self, rows: int) -> None:
        """Move the cursor; on to rows that are being read as soon as they are there."""
        self._move_by(rows)
        self._moved()
        if not self._reading:
            self._pending_rows = 0  # it is an end of the log

    def action_page(self, pages: int) -> None:
        """Move by as many rows as are seen."""
        self._top += pages * self._height
        self.action_move(pages * self._height)

    def action_first(self) -> None:
        """Go to the first record."""
        self.go_to(self.records.start_offset)

    def action_last(self) -> None:
        """Go to the last record."""
        self.go_to(self.records.end_offset - 1)

    def action_damage(self, step: int) -> None:
        """Go to the next damage, of the rows that have been read and of what the doctor found."""
        at = -1 if self.row is None else self.row.offset
        following = sorted(each for each in self.damaged_offsets if (each - at) * step > 0)
        if following:
            self.go_to(following[0] if step > 0 else following[-1])
        else:
            self.app.notify("No further damage is known. d reads all of the partition.")

    def go_to_match(self, step: int) -> bool:
        """Go to the next match of the search, or the previous one; return whether there is one."""
        at = -1 if self.row is None else self.row.offset
        offsets = sorted(offset for offset in self._matches if (offset - at) * step > 0)
        if offsets:
            self.go_to(offsets[0] if step > 0 else offsets[-1])
        return bool(offsets)

    def on_resize(self) -> None:
        """Keep the cursor on the screen."""
        self._moved()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Move down."""
        event.stop()
        self.action_move(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Move up."""
        event.stop()
        self.action_move(-3)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Put the cursor on a row, or go where the scroll bar says."""
        if event.x >= self.size.width - 1:
            self._is_dragged = True
            self.capture_mouse()
            self._go_to_share(event.y)
        elif event.y > 0:
            self._cursor = self._top + event.y - 1
            self._moved()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Follow the scroll bar."""
        if self._is_dragged:
            self._go_to_share(event.y)

    def on_mouse_up(self) -> None:
        """Let go of the scroll bar."""
        self._is_dragged = False
        self.release_mouse()

    def _go_to_share(self, y: int) -> None:
        share = min(max((y - 1) / max(self._height - 1, 1), 0), 1)
        start, end = self.records.start_offset, self.records.end_offset
        self.go_to(start + int(share * max(end - 1 - start, 0)))

    # Showing

    def _columns(self) -> _Columns:
        offset = max(len(str(self.records.end_offset)), len("OFFSET"))
        time = 24 if self.size.width >= WIDTH_FOR_DATES else 12
        rest = self.size.width - 1 - offset - time - 3  # blanks, and the scroll bar
        key = min(MOST_KEY_WIDTH, max(rest // 3, 0))
        return _Columns(offset, time, key, max(rest - key - 1, 0))

    def render_line(self, y: int) -> Strip:
        """Return a line of the screen."""
        width = self.size.width
        place = self._top + y - 1
        if y == 0:
            line = self._heading()
        elif 0 <= place < len(self.loaded.rows):
            line = self._line(self.loaded.rows[place])
        else:
            is_empty = y == 1 and not self.loaded.rows
            about = "reading…" if self._reading else "no record here"
            line = Text(about if is_empty else "", "dim")
        segments: Iterable[Segment] = fitted(line, max(width - 1, 0)).render(self.app.console)
        if y and place == self._cursor and self.loaded.rows:
            name = "cursor" if self.has_focus else "cursor-elsewhere"
            style = self.get_component_rich_style(f"record-table--{name}")
            segments = Segment.apply_style(segments, post_style=style)
        bar = self._scroll_bar(y).render(self.app.console)
        return Strip([*segments, *bar], width).apply_style(self.rich_style)

    def _heading(self) -> Text:
        columns = self._columns()
        texts = "OFFSET", "TIME (UTC)", "KEY", "VALUE"
        cells = (fitted(Text(each), size) for each, size in zip(texts, columns, strict=True))
        return Text(" ").join(cells)

    def _line(self, row: Row) -> Text:
        columns = self._columns()
        offset = fitted(Text(str(row.offset), PLACE), columns.offset, is_right=True)
        if row.note:
            style = STYLES["error" if row.is_damage else "warning"]
            last = f" to {row.end_offset - 1}" if row.end_offset > row.offset + 1 else ""
            return Text.assemble(offset, printable_text(f"{last}  {row.note}", style))
        match = self._matches.get(row.offset)
        time = time_text(row.timestamp, has_date=columns.time > 12)
        cells = (
            offset,
            fitted(Text(time, "dim"), columns.time),
            fitted(content_text(row.key, KEY, match.key_spans if match else ()), columns.key),
            content_text(row.value, "", match.value_spans if match else ()),
        )
        return Text(" ").join(cells)

    def _scroll_bar(self, y: int) -> Text:
        """Return the bar's part in a line: where the screen and known damage are in the log."""
        records, rows = self.records, self.loaded.rows
        span = records.end_offset - records.start_offset
        if not rows or span <= 0 or y == 0:
            return Text(" ")
        last = min(self._top + self._height, len(rows)) - 1
        height = self._height
        first_line = (rows[self._top].offset - records.start_offset) * height // span
        last_line = (rows[last].end_offset - 1 - records.start_offset) * height // span
        if any((each - records.start_offset) * height // span == y - 1 for each in self._damaged()):
            return Text(_DAMAGE, STYLES["error"])
        return Text(_THUMB if first_line <= y - 1 <= max(first_line, last_line) else _TRACK, "dim")

    def _damaged(self) -> Iterable[int]:
        """Yield the damaged offsets that the scroll bar has a line for."""
        records = self.records
        return (
            each
            for each in self.damaged_offsets
            if records.start_offset <= each < records.end_offset
        )
