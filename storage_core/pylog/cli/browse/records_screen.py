"""A partition: its records, one of them in detail, and what ``pylog doctor`` finds in it."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Protocol

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.message import Message
from textual.screen import ModalScreen, Screen
from textual.widgets import DataTable, Footer, Static

import pylog
from pylog.cli.browse.background import (
    BackgroundWork,
    Failure,
    Progress,
    Summary,
    find_findings,
)
from pylog.cli.browse.cells import (
    PLACE,
    STYLES,
    fits_clipboard,
    fitted_name,
    printable_text,
    progress_text,
)
from pylog.cli.browse.record_table import RecordTable
from pylog.cli.browse.record_tree import MOST_BYTES, SHOWN_BYTES, RecordTree
from pylog.cli.browse.search_screen import ABOUT_SEARCH
from pylog.cli.browse.widgets import PromptScreen, RowTable
from pylog.errors import LogStorageError
from pylog.text.instants import calendar_text
from pylog.text.words import counted, format_bytes, offsets_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from textual.app import ComposeResult

    from pylog.cli.browse.background import Match
    from pylog.cli.browse.record_windows import PartitionRecords, Row
    from pylog.cli.record_options import ChosenRecords
    from pylog.results import Finding

_ABOUT_POSITIONS = (
    "An offset (57), the last N offsets (-100), a share of the log (50%), or a time (UTC):\n"
    "2026-11-27   2026-11-27T12:30   12:30 on the day shown   -15m, -2h, -7d before now"
)
_LAST_OFFSETS = re.compile(r"-([0-9]{1,19})", re.ASCII)
_SHARE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?) ?%", re.ASCII)
_TIME_OF_DAY = re.compile(r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,3})?)?", re.ASCII)
_WORDS = ("earliest", "beginning", "latest", "end")
_OFFSET = re.compile(r"[0-9]{1,19}", re.ASCII)


def offset_at(text: str, records: PartitionRecords, now_ms: int, row_ms: int = -1) -> int:
    """Return the offset of a position as it is typed.

    A time without a date is one of the day of ``row_ms``, the time of the row under the cursor.

    Raises
    ------
    ValueError
        It is none.
    """
    start, end = records.start_offset, records.end_offset
    if _OFFSET.fullmatch(text):
        return int(text)
    if last := _LAST_OFFSETS.fullmatch(text):
        return max(end - int(last[1]), start)
    if share := _SHARE.fullmatch(text):
        return start + int((end - 1 - start) * min(float(share[1]), 100) / 100)
    if text.lower() in _WORDS:
        return start if text.lower() in _WORDS[:2] else max(end - 1, start)
    if _TIME_OF_DAY.fullmatch(text) and row_ms >= 0:
        text = f"{calendar_text(row_ms, 1000).partition('T')[0]}T{text}"
    return records.offset_of_time(pylog.jobs.parse_time(text, now_ms))


class Browser(Protocol):
    """What a partition's screen needs of the application."""

    chosen: ChosenRecords

    def search(self, text: str, partition: pylog.TopicPartition | None) -> None:
        """Search in a partition."""

    def complain(self, error: Exception) -> None:
        """Show what is wrong with something that was typed."""

    def go_back(self) -> None:
        """Go to the screen before this one."""


class RecordsScreen(Screen[None]):
    """The records of a partition."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "Back", tooltip="VisiData"),
        Binding("tab", "app.focus_next", "Table, details", show=False, tooltip="kaskade"),
        Binding("enter", "details", "Details", tooltip="kaskade, VisiData"),
        Binding("slash", "search", "Search", tooltip="lnav, kaskade, VisiData"),
        Binding("n", "match(1)", "Next match", show=False, tooltip="lnav, VisiData"),
        Binding("N", "match(-1)", "Previous match", show=False, tooltip="lnav, VisiData"),
        Binding("colon", "go_to", "Go to", tooltip="lnav's :goto"),
        Binding("d", "doctor", "Doctor", tooltip="pylog"),
        Binding("p", "view", "View", show=False, tooltip="lnav's pretty print"),
        Binding("z", "zoom", "Zoom", show=False, tooltip="VisiData's z keys"),
        Binding("l", "load", "All of a large value", show=False, tooltip="pylog"),
        Binding("c,Y", "copy", "Copy", tooltip="lnav, VisiData"),
        Binding("r", "reload", "Read again", show=False, tooltip="kaskade"),
    ]

    @dataclass
    class Seen(Message):
        """A thread has read a record."""

        row: Row
        batch: pa.RecordBatch | None
        most_bytes: int

    @dataclass
    class Opened(Message):
        """A thread knows where the log starts and ends, and where the cursor goes."""

        offset: int | None

    @dataclass
    class Examined(Message):
        """The doctor has sent something; None at its end."""

        content: object

    def __init__(
        self,
        browser: Browser,
        records: PartitionRecords,
        offset: int | None,
        matches: Mapping[int, Match],
    ) -> None:
        super().__init__()
        self._browser = browser
        self._records = records
        self._offset = offset
        self._table = RecordTable(records, matches)
        self._tree = RecordTree()
        self._batch: pa.RecordBatch | None = None
        self._has_matches = bool(matches)
        self._doctor: BackgroundWork | None = None
        self._doctor_says = ""
        self.findings: list[Finding] | None = None

    def compose(self) -> ComposeResult:
        """Yield the heading, the table, the details and the line of status."""
        yield Static("", classes="title", markup=False)
        with Container(classes="panes"):
            yield self._table
            yield self._tree
        yield Static("reading…", classes="status", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Read."""
        self._table.focus()
        self._open(self._offset)

    def on_unmount(self) -> None:
        """End the doctor's work with the screen."""
        if self._doctor is not None:
            self._doctor.end()

    def _open(self, offset: int | None) -> None:
        self.run_worker(partial(self._look, offset), thread=True, exclusive=True, group="look")

    def _look(self, offset: int | None) -> None:
        """Find out where the log starts and ends, in a thread."""
        try:
            self._records.refresh()
        except (LogStorageError, OSError, ValueError) as error:
            self.app.call_from_thread(self._say, f"error: {error}")
            return
        self.post_message(self.Opened(offset))

    def on_records_screen_opened(self, message: Opened) -> None:
        """Show the records."""
        records = self._records
        about = offsets_text(records.start_offset, records.end_offset)
        title = Text.assemble(
            fitted_name(str(records.partition), self.size.width - len(about) - 4, f"bold {PLACE}"),
            f"  {about}",
        )
        self.query_one(".title", Static).update(title)
        self._table.go_to(records.start_offset if message.offset is None else message.offset)

    # The record that the cursor is on

    def on_record_table_moved(self, message: RecordTable.Moved) -> None:
        """Show the record's details."""
        self._show_status()
        row = message.row
        if row is None:
            self._batch = None
            self._tree.show_note(Text("" if self._table.is_reading else "no record here", "dim"))
        elif row.is_record:
            self._read_record(row, SHOWN_BYTES)
        else:
            self._batch = None
            self._tree.show_note(*self._about(row))

    def _read_record(self, row: Row, most_bytes: int) -> None:
        work = partial(self._see, row, most_bytes)
        self.run_worker(work, thread=True, exclusive=True, group="record")

    def _see(self, row: Row, most_bytes: int) -> None:
        """Read a record, in a thread; not if the cursor has moved on before it began."""
        if self._table.row != row:
            return
        try:
            batch = self._records.record(row.offset)
        except (LogStorageError, OSError, ValueError) as error:
            self.app.call_from_thread(self._say, f"error: {error}")
            return
        self.post_message(self.Seen(row, batch, most_bytes))

    def on_records_screen_seen(self, message: Seen) -> None:
        """Show it, if the cursor is still there."""
        if message.row == self._table.row:
            self._batch = message.batch
            self._tree.show_record(message.batch, message.most_bytes)

    def _about(self, row: Row) -> list[Text]:
        """Return what is known of offsets that have no record."""
        end = max(row.end_offset, row.offset + 1)
        about = offsets_text(row.offset, end)
        if row.is_damage:
            about = f"{counted(end - row.offset, 'record')}, {about}"
        lines = [
            Text(about, PLACE),
            printable_text(row.note, STYLES["error" if row.is_damage else "warning"]),
        ]
        if self.findings is None and not row.is_damage:
            about = "removed by compaction, markers of transactions, aborted, or lost: d looks"
            lines.append(Text(about, "dim"))
        for each in self.findings or ():
            start = each.next_offset
            if start is None or start >= row.end_offset:
                continue
            if each.end_offset is None or each.end_offset > row.offset:
                lines += _about_finding(each)
        return lines

    # Keys

    def action_back(self) -> None:
        """Undo a zoom, end the doctor's work, or go back."""
        if self.maximized is not None:
            self.minimize()
        elif self._doctor is not None:
            self._doctor.end()
        else:
            self._browser.go_back()

    def action_table(self) -> None:
        """Leave the details; first undo a zoom, or end the doctor's work."""
        if self.maximized is not None or self._doctor is not None:
            self.action_back()
        else:
            self._table.focus()

    def action_details(self) -> None:
        """Go to the details."""
        self._tree.focus()

    def action_zoom(self) -> None:
        """Give the details all of the screen, or take it back."""
        if self.maximized is None:
            self.maximize(self._tree)
            self._tree.focus()
        else:
            self.minimize()
            self._table.focus()

    def action_view(self) -> None:
        """Show key and value in the next way."""
        self._tree.next_view()
        self._show_status()

    def action_load(self) -> None:
        """Show as much of the record as can be."""
        row = self._table.row
        if row is not None and row.is_record:
            self._read_record(row, MOST_BYTES)

    def action_copy(self) -> None:
        """Copy the record as ``pylog cat`` prints it in a pipe."""
        if self._batch is None:
            self.notify("There is no record to copy here.")
            return
        lines = pylog.jobs.LineFormat.json("text").lines_of(self._batch)
        text = str(b"".join(lines), "utf-8").rstrip("\n")
        if not fits_clipboard(text):
            size = format_bytes(len(text))
            self.notify(f"{size} are too much for a terminal's clipboard; use pylog cat.")
            return
        self.app.copy_to_clipboard(text)
        self.notify("Copied as JSON, if the terminal allows it (OSC 52).")

    def action_reload(self) -> None:
        """Look where the log ends now, and read again."""
        row = self._table.row
        self._table.forget()
        self._open(None if row is None else row.offset)

    def action_go_to(self) -> None:
        """Ask for a position and go there."""
        self.app.push_screen(PromptScreen("offset or time", _ABOUT_POSITIONS), self._go_to)

    def _go_to(self, text: str | None) -> None:
        if text is not None:
            self.run_worker(partial(self._find, text), thread=True, exclusive=True, group="look")

    def _find(self, text: str) -> None:
        """Find a position, in a thread."""
        try:
            row_ms = -1 if self._table.row is None else self._table.row.timestamp
            offset = offset_at(text, self._records, int(time.time() * 1000), row_ms)
        except (LogStorageError, OSError, ValueError) as error:
            self.app.call_from_thread(self._browser.complain, error)
        else:
            self.app.call_from_thread(self._table.go_to, offset)

    def action_search(self) -> None:
        """Ask what to look for in this partition, and look for it."""
        self.app.push_screen(PromptScreen("search", ABOUT_SEARCH), self._search)

    def _search(self, text: str | None) -> None:
        if text is not None:
            self._browser.search(text, self._records.partition)

    def action_match(self, step: int) -> None:
        """Go to the next or previous match."""
        if not self._has_matches:
            self.notify("/ searches; then n and N go from match to match.")
        elif not self._table.go_to_match(step):
            self.notify("No further match in this partition.")

    # The doctor

    def action_doctor(self) -> None:
        """Look for everything that is wrong, or show what has been found."""
        if self.findings is not None:
            self._show_findings()
        elif self._doctor is None:
            records = self._records
            self._doctor = BackgroundWork(
                find_findings, self._browser.chosen.paths, records.path, records.partition
            )
            self._doctor_says = "doctor: starting"
            self._show_status()
            self.run_worker(partial(self._receive, self._doctor), thread=True)

    def _receive(self, doctor: BackgroundWork) -> None:
        for message in doctor.messages():
            self.post_message(self.Examined(message))
        self.post_message(self.Examined(None))

    def on_records_screen_examined(self, message: Examined) -> None:
        """Take in what the doctor says."""
        content = message.content
        if isinstance(content, Progress):
            self._doctor_says = f"doctor: {progress_text(*content)}; Esc stops"
        elif isinstance(content, list):
            self.findings = content
            self._table.damaged_offsets |= {
                each.next_offset
                for each in content
                if each.next_offset is not None and each.severity == "error"
            }
        elif isinstance(content, Summary):
            self._doctor_says = f"doctor: {'; '.join(content.lines)}"
        elif isinstance(content, Failure):
            self._doctor_says = f"doctor: {content.message}"
        elif content is None:
            self._doctor = None
            if self.findings is None and "Esc" in self._doctor_says:
                self._doctor_says = "doctor: stopped"
            elif self.findings:
                self._show_findings()
            self.on_record_table_moved(RecordTable.Moved(self._table.row))
        self._show_status()

    def _show_findings(self) -> None:
        if not self.findings:
            self.notify("The doctor has found nothing here.")
            return
        self.app.push_screen(FindingsScreen(self.findings), self._go_to_finding)

    def _go_to_finding(self, finding: Finding | None) -> None:
        if finding is None:
            return
        if finding.next_offset is None:
            self.notify("This finding is of no offset.")
            return
        self._table.go_to(finding.next_offset)

    # Status

    def _show_status(self) -> None:
        row = self._table.row
        parts = [] if row is None else [f"offset {row.offset} of {self._records.end_offset - 1}"]
        parts.append(self._tree.value_view)
        if self.findings:
            parts.append(counted(len(self.findings), "finding"))
        elif self.findings is None and self._table.damaged_offsets:
            parts.append(f"damage in {counted(len(self._table.damaged_offsets), 'place')} so far")
        if self._doctor_says:
            parts.append(self._doctor_says)
        self._say("  ".join(parts))

    def _say(self, text: str) -> None:
        self.query_one(".status", Static).update(printable_text(text))


def _about_finding(finding: Finding) -> list[Text]:
    style = STYLES[finding.severity]
    return [
        printable_text(f"{finding.severity}: {finding.code}: {finding.message}", style),
        printable_text(f"broker: {finding.broker_action}"),
        printable_text(f"advice: {finding.advice}"),
    ]


def _finding_cells(finding: Finding) -> list[Text]:
    offsets = ""
    if finding.next_offset is not None:
        offsets = offsets_text(finding.next_offset, finding.end_offset).partition(" ")[2]
    return [
        Text(finding.severity, STYLES[finding.severity]),
        printable_text(finding.code),
        Text(offsets, PLACE),
        printable_text(finding.message),
    ]


class FindingsScreen(ModalScreen["Finding | None"]):
    """The findings of a partition, the worst first; returns the one that is chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "Close", tooltip="VisiData"),
    ]

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__()
        self._findings = findings

    def compose(self) -> ComposeResult:
        """Yield the table, and what is said of the finding that the cursor is on."""
        table = RowTable()
        headings = ("SEVERITY", "CODE", "OFFSETS", "MESSAGE")
        rows = [_finding_cells(each) for each in self._findings]
        widest = map(
            max, zip(map(len, headings[:-1]), *(map(len, row[:-1]) for row in rows), strict=True)
        )
        # The box has 95 % of the width, and a border; each cell has a blank on both sides.
        room = self.app.size.width * 95 // 100 - 3 - sum(widest) - 2 * len(headings)
        table.add_columns(*headings)
        for row in rows:
            row[-1].truncate(max(room, len(headings[-1])), overflow="ellipsis")
            table.add_row(*row)
        with Container():
            yield table
            yield Static("", markup=False)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Tell what a broker does, and what to do."""
        finding = self._findings[event.cursor_row]
        about = Text("\n").join([*_about_finding(finding), printable_text(finding.path, "dim")])
        self.query_one(Static).update(about)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Return the finding."""
        self.dismiss(self._findings[event.cursor_row])
