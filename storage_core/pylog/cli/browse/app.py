"""The application: the screen of topics and partitions, and the way from screen to screen."""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import click
from rich.text import Text
from textual.app import App
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.message import Message
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Static

import pylog
from pylog.cli import exit_status
from pylog.cli.browse.background import (
    BackgroundWork,
    Failure,
    Progress,
    Summary,
    find_all_findings,
)
from pylog.cli.browse.cells import (
    PLACE,
    STYLES,
    WIDTH_FOR_DATES,
    fitted_name,
    printable_text,
    progress_text,
)
from pylog.cli.browse.record_windows import PartitionRecords
from pylog.cli.browse.records_screen import RecordsScreen
from pylog.cli.browse.search_screen import ABOUT_SEARCH, SearchScreen, parse_search
from pylog.cli.browse.widgets import HelpScreen, PromptScreen, RowTable
from pylog.errors import LogStorageError
from pylog.text.words import counted, format_bytes, offsets_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from textual.app import ComposeResult

    from pylog.cli.browse.background import Match
    from pylog.cli.record_options import ChosenRecords, WayOfReading
    from pylog.results import Finding, GroupListing, ListedPartition, LogDirectory

_BOTTOM_SCREENS = 2  # Textual's own, and the first one of ours
_SECONDS_BETWEEN_LOOKS = 2  # at whether the terminal is still there
_SECONDS_BETWEEN = 0.1  # of changes on the screen while partitions are listed
_CSS = """
.title { height: 1; padding: 0 1; background: $panel; text-style: bold; }
.status { height: auto; max-height: 3; padding: 0 1; color: $text-muted; }
.panes { layout: vertical; }
.-wide .panes { layout: horizontal; }
DataTable { height: 1fr; scrollbar-size-vertical: 1; }
RecordTree { height: 40%; width: 100%; border-top: solid $panel; padding: 0; }
.-wide RecordTree { height: 100%; width: 40%; border-top: none; border-left: solid $panel; }
RecordTree.-maximized, .-wide RecordTree.-maximized { height: 100%; width: 100%; border: none; }
.-wide #topics { width: 1fr; }
.-wide #partitions { width: 1fr; border-left: solid $panel; }
#partitions { border-top: solid $panel; }
.-wide #partitions { border-top: none; }
PromptScreen { align: left bottom; background: transparent; }
PromptScreen Vertical { height: auto; padding: 0 1; background: $panel; }
HelpScreen { align: center middle; }
HelpScreen VerticalScroll { width: 64; max-height: 90%; height: auto; border: round $primary; }
FindingsScreen { align: center middle; }
FindingsScreen Container { width: 95%; height: 80%; border: round $primary; }
FindingsScreen Static { height: auto; max-height: 50%; padding: 0 1; }
"""


class BrowseApp(App[None]):
    """The browser. It reads, and changes and locks nothing.

    Parameters
    ----------
    chosen
        What is shown: paths, topics, partitions, and a range of each.
    way
        How records are read.
    """

    TITLE = "pylog browse"
    ENABLE_COMMAND_PALETTE = False
    CSS = _CSS
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDTH_FOR_DATES, "-wide")]  # noqa: RUF012 - as Textual has it
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "help", "Help", tooltip="lnav, kaskade"),
        Binding("Q,ctrl+q", "quit", "Quit", show=False, tooltip="VisiData's gq"),
    ]

    def __init__(self, chosen: ChosenRecords, way: WayOfReading) -> None:
        super().__init__()
        self.chosen = chosen
        self.way = way
        self.failure: Exception | None = None
        self.directory = chosen.directory()
        self.partitions = _chosen_partitions(self.directory, chosen)

    def on_mount(self) -> None:
        """Show the topics, or the records at once if they are of one partition."""
        if not self.is_headless:
            self.set_interval(_SECONDS_BETWEEN_LOOKS, self._leave_without_terminal)
        if len(self.partitions) == 1:
            self.open_partition(self.partitions[0])
        else:
            self.push_screen(TopicsScreen(self.partitions))

    def _leave_without_terminal(self) -> None:
        # Where nobody sends a SIGHUP, Textual would read from one that is gone for ever, and wait
        # for its own writer at an ordinary exit.
        if not os.isatty(sys.__stdin__.fileno() if sys.__stdin__ is not None else -1):
            os._exit(exit_status.BROKEN_PIPE)

    def _handle_exception(self, error: Exception) -> None:
        # Textual would print a traceback; the command raises the error when the screen is restored.
        self.failure = error
        super()._handle_exception(error)
        self._exit_renderables.clear()

    def open_partition(
        self,
        partition: pylog.TopicPartition,
        offset: int | None = None,
        matches: Mapping[int, Match] | None = None,
    ) -> None:
        """Show the records of a partition, from its first one or around an offset."""
        extent, way = self.chosen.extent, self.way.arguments()
        records = PartitionRecords(self.directory, partition, extent, way)
        self.push_screen(RecordsScreen(self, records, offset, matches or {}))

    def search(self, text: str, partition: pylog.TopicPartition | None) -> None:
        """Search in a partition or, if it is None, in all."""
        try:
            request = parse_search(text, self.chosen, partition)
        except (click.UsageError, ValueError) as error:
            self.complain(error)
            return
        self.push_screen(SearchScreen(request, self.chosen.directory, self.open_partition))

    def reload(self) -> None:
        """Look again at what there is."""
        try:
            self.directory = self.chosen.directory()
            self.partitions = _chosen_partitions(self.directory, self.chosen)
        except (LogStorageError, OSError) as error:
            self.complain(error)
            return
        self.switch_screen(TopicsScreen(self.partitions))

    def complain(self, error: Exception) -> None:
        """Show what is wrong with something that was typed."""
        text = error.format_message() if isinstance(error, click.UsageError) else str(error)
        self.notify(pylog.jobs.printable(text), severity="error", markup=False)

    def go_back(self) -> None:
        """Go to the screen before this one; from the first one, leave."""
        if len(self.screen_stack) > _BOTTOM_SCREENS:
            self.pop_screen()
        elif isinstance(self.screen, TopicsScreen):
            self.exit()
        else:
            self.switch_screen(TopicsScreen(self.partitions))

    def action_help(self) -> None:
        """List the keys that work now."""
        if not isinstance(self.screen, (HelpScreen, PromptScreen)):
            self.push_screen(HelpScreen(self.screen))


def _chosen_partitions(
    directory: LogDirectory, chosen: ChosenRecords
) -> list[pylog.TopicPartition]:
    """Return the partitions to show: without a choice all, internal ones as well."""
    if not (chosen.names or chosen.pattern or chosen.partitions):
        return sorted(directory.topic_partitions)
    assign = pylog.jobs.choose_partitions(
        directory, chosen.names, chosen.partitions, pattern=chosen.pattern
    )
    return sorted(
        pylog.TopicPartition(topic, each) for topic, numbers in assign.items() for each in numbers
    )


class TopicTable(RowTable):
    """The topics; the footer says that Enter goes to the partitions of one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Partitions", tooltip="kaskade, VisiData"),
    ]


class PartitionTable(RowTable):
    """The partitions of a topic; the footer says that Enter opens one, and Esc leaves them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Records", tooltip="kaskade, VisiData"),
        Binding("escape", "screen.back", "Topics", tooltip="kaskade"),
    ]


class TopicsScreen(Screen[None]):
    """Topics, and the partitions of the one that the cursor is on."""

    app: BrowseApp

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "app.focus_next", "Next pane", tooltip="kaskade"),
        Binding("slash", "search", "Search all", tooltip="lnav, kaskade, VisiData"),
        Binding("escape", "back", "Topics", show=False, tooltip="kaskade"),
        Binding("q", "app.quit", "Quit", tooltip="lnav, kaskade"),
        Binding("d", "doctor", "Doctor", tooltip="pylog doctor"),
        Binding("r", "reload", "Read again", show=False, tooltip="kaskade"),
    ]

    @dataclass
    class Examined(Message):
        """What the doctor says of all partitions; None at the end."""

        content: object

    @dataclass
    class Listed(Message):
        """A thread has listed some partitions."""

        listed: list[ListedPartition]
        is_last: bool

    @dataclass
    class Grouped(Message):
        """A thread has read what groups have committed, or could not."""

        groups: GroupListing | None
        note: str

    def __init__(self, partitions: Sequence[pylog.TopicPartition]) -> None:
        super().__init__()
        self._by_topic: dict[str, list[pylog.TopicPartition]] = defaultdict(list)
        for each in partitions:
            self._by_topic[each.topic].append(each)
        self._topics = list(self._by_topic)
        self._listed: dict[pylog.TopicPartition, ListedPartition] = {}
        self._lag: dict[pylog.TopicPartition, dict[str, int]] = {}
        self._found: dict[pylog.TopicPartition, list[Finding]] = {}
        self._doctor: BackgroundWork | None = None
        self._note = ""

    def compose(self) -> ComposeResult:
        """Yield both tables."""
        paths = ", ".join(map(str, self.app.chosen.paths))
        room = self.app.size.width - len(" pylog browse   ")
        title = Text("pylog browse  ").append_text(fitted_name(paths, room))
        yield Static(title, classes="title")
        with Container(classes="panes"):
            yield TopicTable(id="topics")
            yield PartitionTable(id="partitions")
        yield Static("listing…", classes="status", markup=False)
        yield Footer()

    @property
    def _is_wide(self) -> bool:
        return self.app.size.width >= WIDTH_FOR_DATES

    @property
    def _tables(self) -> tuple[RowTable, RowTable]:
        topics, partitions = self.query(RowTable)
        return topics, partitions

    def on_mount(self) -> None:
        """Show all names, then find out the rest."""
        topics, partitions = self._tables
        for heading in ("TOPIC", "PARTITIONS", "OFFSETS", "SIZE", "LAG", "NOTE"):
            topics.add_column(heading, key=heading)
        partitions.add_columns("PARTITION", "START", "END", "SIZE", "SEGMENTS", "LAG", "NOTE")
        for topic in self._topics:
            topics.add_row(*self._topic_cells(topic), key=topic)
        topics.focus()
        self.run_worker(self._list, thread=True)

    def _list(self) -> None:
        """List partitions, then groups, in a thread."""
        listed: list[ListedPartition] = []
        sent_at = time.monotonic()
        for topic in self._topics:
            for each in self._by_topic[topic]:
                listed += self._list_one(each)
            if time.monotonic() - sent_at > _SECONDS_BETWEEN:
                self.post_message(self.Listed(listed, is_last=False))
                listed, sent_at = [], time.monotonic()
        self.post_message(self.Listed(listed, is_last=True))
        try:
            groups, note = pylog.groups(*self.app.chosen.paths), ""
        except (LogStorageError, OSError, ValueError) as error:
            groups, note = None, f"lag is not known: {error}"
        self.post_message(self.Grouped(groups, note))

    def _list_one(self, partition: pylog.TopicPartition) -> list[ListedPartition]:
        path = self.app.directory[partition].directory.path
        try:
            found = pylog.list_partitions(path).partitions
        except (LogStorageError, OSError) as error:
            self._note = str(error)
            return []
        # A stray directory has another name among the topics than in its own.
        return [replace(found[0], topic=partition.topic)]

    def on_topics_screen_listed(self, message: Listed) -> None:
        """Show what is known of some partitions."""
        for each in message.listed:
            self._listed[pylog.TopicPartition(each.topic, each.partition)] = each
        self._update({each.topic for each in message.listed})
        if message.is_last:
            size = sum(each.size_bytes for each in self._listed.values())
            findings = sum(len(each.findings) for each in self._listed.values())
            parts = [
                counted(len(self._topics), "topic"),
                counted(len(self._listed), "partition"),
                format_bytes(size),
                *([counted(findings, "finding")] if findings else []),
                *(
                    [f"{len(self.app.directory.others)} not live"]
                    if self.app.directory.others
                    else []
                ),
                *([self._note] if self._note else []),
            ]
            self._note = ", ".join(parts)
            self._say(self._note)

    def on_topics_screen_grouped(self, message: Grouped) -> None:
        """Show the lag of groups."""
        lag: dict[pylog.TopicPartition, dict[str, int]] = defaultdict(dict)
        for group in message.groups.groups if message.groups else ():
            committed = [(each.topic, each.partition, each.lag) for each in group.offsets]
            shared = [(each.topic, each.partition, each.lag) for each in group.share_partitions]
            for topic, partition, count in committed + shared:
                if count is not None:
                    lag[pylog.TopicPartition(topic, partition)][group.group_id] = count
        self._lag = dict(lag)
        self._update(self._topics)
        self._say("; ".join(each for each in (self._note, message.note) if each))

    def _update(self, topics: Iterable[str]) -> None:
        table, _ = self._tables
        columns = list(table.columns)
        for topic in topics:
            for column, cell in zip(columns, self._topic_cells(topic), strict=True):
                table.update_cell(topic, column, cell, update_width=True)
        table.fit()
        self._show_partitions()

    def _topic_cells(self, topic: str) -> list[Text]:
        partitions = self._by_topic[topic]
        listed = [self._listed[each] for each in partitions if each in self._listed]
        is_known = len(listed) == len(partitions)
        offsets = sum((each.log_end_offset or 0) - (each.log_start_offset or 0) for each in listed)
        size = sum(each.size_bytes for each in listed)
        findings = [finding for each in listed for finding in each.findings]
        findings += [str(one) for each in partitions for one in self._problems(each)]
        lag: dict[str, int] = defaultdict(int)
        for each in partitions:
            for group, count in self._lag.get(each, {}).items():
                lag[group] += count
        return [
            fitted_name(topic, self.app.size.width // (6 if self._is_wide else 3), PLACE),
            _number(len(partitions)),
            _number(offsets if is_known else None),
            Text(format_bytes(size) if is_known else "", justify="right"),
            _lags(lag),
            Text(counted(len(findings), "finding"), STYLES["error"]) if findings else Text(),
        ]

    def _show_partitions(self) -> None:
        topics, table = self._tables
        at = table.cursor_row
        table.clear()
        if not topics.row_count:
            return
        for each in self._by_topic[self._topics[topics.cursor_row]]:
            listed = self._listed.get(each)
            if listed is None:
                table.add_row(_number(each.partition))
                continue
            problems = [_problem_text(one) for one in self._problems(each)]
            note = "; ".join([*problems, *listed.findings, *listed.notes])
            table.add_row(
                _number(each.partition),
                _number(listed.log_start_offset, "?"),
                _number(listed.log_end_offset, "?"),
                Text(format_bytes(listed.size_bytes), justify="right"),
                _number(listed.segments),
                _lags(self._lag.get(each, {})),
                printable_text(note, STYLES["error" if problems or listed.findings else "info"]),
            )
        table.move_cursor(row=at)
        table.fit()

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Show the partitions of the topic."""
        if event.data_table.id == "topics":
            self._show_partitions()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Go from a topic to its partitions, and from a partition to its records."""
        event.stop()
        topics, partitions = self._tables
        chosen = self._by_topic[self._topics[topics.cursor_row]]
        if event.data_table is partitions:
            self.app.open_partition(chosen[event.cursor_row])
        elif len(chosen) == 1:
            self.app.open_partition(chosen[0])
        else:
            partitions.focus()

    def _problems(self, partition: pylog.TopicPartition) -> list[Finding]:
        """Return what the doctor has found in a partition, but what is only worth knowing."""
        return [each for each in self._found.get(partition, ()) if each.severity != "info"]

    def action_doctor(self) -> None:
        """Have the doctor read all partitions; what he finds stands in NOTE."""
        if self._doctor is None:
            self._doctor = BackgroundWork(find_all_findings, self.app.chosen.paths)
            self._say("doctor: starting; Esc stops")
            self.run_worker(partial(self._receive, self._doctor), thread=True)

    def on_unmount(self) -> None:
        """End the doctor's work."""
        if self._doctor is not None:
            self._doctor.end()

    def _receive(self, doctor: BackgroundWork) -> None:
        for message in doctor.messages():
            self.post_message(self.Examined(message))
        self.post_message(self.Examined(None))

    def on_topics_screen_examined(self, message: Examined) -> None:
        """Take in what the doctor says."""
        content = message.content
        if isinstance(content, Progress):
            self._say(f"doctor: {progress_text(*content)}; Esc stops")
        elif isinstance(content, dict):
            self._found = content
            self._update(self._topics)
        elif isinstance(content, Summary):
            self._note = f"doctor: {'; '.join(content.lines)}"
            self._say(self._note)
        elif isinstance(content, Failure):
            self._say(f"doctor: {content.message}")
        elif content is None:
            self._doctor = None

    def action_back(self) -> None:
        """End the doctor's work, or go back to the topics."""
        if self._doctor is not None:
            self._doctor.end()
            self._say("doctor: stopped")
        self._tables[0].focus()

    def action_reload(self) -> None:
        """Look again at what there is."""
        self.app.reload()

    def action_search(self) -> None:
        """Ask what to look for in all partitions, and look for it."""
        self.app.push_screen(PromptScreen("search", ABOUT_SEARCH), self._search)

    def _search(self, text: str | None) -> None:
        if text is not None:
            self.app.search(text, None)

    def _say(self, text: str) -> None:
        self.query_one(".status", Static).update(printable_text(text))


def _problem_text(finding: Finding) -> str:
    """Return a finding in a few words: its code, and where."""
    if finding.next_offset is None:
        return finding.code
    return f"{finding.code}, {offsets_text(finding.next_offset, finding.end_offset)}"


def _number(value: int | None, unknown: str = "") -> Text:
    return Text(unknown if value is None else str(value), justify="right")


def _lags(by_group: Mapping[str, int]) -> Text:
    """Return the lag of each group, the largest first."""
    largest = sorted(by_group.items(), key=lambda item: (-item[1], item[0]))
    return printable_text(", ".join(f"{count} {group}" for group, count in largest))
