"""Search: the line that is typed has the options of ``pylog search``, and matches are a table."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import click
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer, Static

from pylog.cli.browse.background import (
    MOST_MATCHES,
    BackgroundWork,
    Failure,
    Match,
    Progress,
    Summary,
    find_matches,
)
from pylog.cli.browse.cells import (
    KEY,
    MOST_KEY_WIDTH,
    PLACE,
    WIDTH_FOR_DATES,
    content_text,
    fitted_at_most,
    fitted_name,
    printable_text,
    progress_text,
    time_text,
)
from pylog.cli.browse.widgets import RowTable
from pylog.cli.commands.search import search
from pylog.cli.record_options import ChosenRecords, WayOfReading
from pylog.cli.value_options import TypedValues

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from textual.app import ComposeResult

    import pylog

ABOUT_SEARCH = (
    "A text in values, a JSON path ($.user.id=7), or options of pylog search:\n"
    "--key user-7   --value-regex 'a.c' -i   --header trace   --tombstones"
)
_OF_RANGE = ("offset", "start_offset", "end_offset", "start_timestamp", "end_timestamp")
_OF_OUTPUT = {"only_count": "--count", "as_json": "--json", "format_text": "-f"}


class SearchRequest(NamedTuple):
    """The filter of a search, and the partitions that it searches."""

    text: str
    tests: dict[str, Any]
    arguments: dict[str, Any]  # of `pylog.search`, without the tests


def parse_search(
    text: str, chosen: ChosenRecords, partition: pylog.TopicPartition | None
) -> SearchRequest:
    """Return what a line asks for, of one partition or of all that are chosen, unless it says.

    Raises
    ------
    click.UsageError, ValueError
        It is not understood.
    """
    if text.startswith("-"):
        words = shlex.split(text)
    else:
        words = ["--json-path" if text.startswith("$") else "--value-contains", text]
    try:
        parameters = search.make_context("search", [".", *words]).params
    except click.exceptions.Exit:
        raise click.UsageError("pylog search --help lists the options") from None
    for name, option in _OF_OUTPUT.items():
        if parameters.pop(name):
            raise click.UsageError(f"{option} is for output, and not for the browser")
    _check_bytes(parameters)
    typed = _taken(ChosenRecords, parameters)
    if typed.paths != (".",):
        raise click.UsageError(
            f"{shlex.join(map(str, typed.paths[1:]))} belongs to no option; quote text with blanks"
        )
    way = _taken(WayOfReading, parameters)
    limit = parameters.pop("limit") or MOST_MATCHES
    if not (typed.topics or typed.pattern or typed.partitions):
        names = ("topics", "pattern", "partitions")
        typed = replace(typed, **{name: getattr(chosen, name) for name in names})
        if partition is not None:
            topic, number = partition
            typed = replace(typed, topics=(topic,), pattern=None, partitions=(number,))
    if not typed.is_restricted:
        typed = replace(typed, **{name: getattr(chosen, name) for name in _OF_RANGE})
    if typed.isolation == "read_uncommitted":
        typed = replace(typed, isolation=chosen.isolation)
    parameters["key"] = parameters["key"] or None
    arguments = {**typed.arguments(), **way.arguments(), "limit": min(limit, MOST_MATCHES)}
    return SearchRequest(text, parameters, arguments)


def _check_bytes(parameters: dict[str, Any]) -> None:
    """Refuse decoded values, which the browser does not show."""
    is_tested = parameters.pop("where") is not None
    if _taken(TypedValues, parameters).columns or is_tested:
        raise click.UsageError(
            "the browser searches bytes: --where and --value-format are for pylog search"
        )


def _taken(kind: type[Any], parameters: dict[str, Any]) -> Any:  # noqa: ANN401 - one of `kind`
    """Return the value that some of the parameters make, and take them out."""
    return kind(**{each.name: parameters.pop(each.name) for each in fields(kind)})


class SearchScreen(Screen[None]):
    """The matches of a search, as they are found."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "stop_or_back", "Stop, back", tooltip="VisiData"),
    ]

    @dataclass
    class Sent(Message):
        """The other process has sent something; None at its end."""

        content: object

    def __init__(
        self,
        request: SearchRequest,
        open_directory: Callable[[], pylog.results.LogDirectory],
        opens: Callable[[pylog.TopicPartition, int, Mapping[int, Match]], None],
    ) -> None:
        super().__init__()
        self._request = request
        self._opens = opens
        self.matches: list[Match] = []
        self.outcome: list[str] = []
        self.is_searching = True
        self._work = BackgroundWork(find_matches, open_directory, request.tests, request.arguments)

    def compose(self) -> ComposeResult:
        """Yield the heading, the table and the line of progress."""
        yield Static(printable_text(f"search  {self._request.text}"), classes="title")
        table = RowTable()
        table.add_columns("PARTITION", "OFFSET", "TIME (UTC)", "KEY", "VALUE")
        yield table
        yield Static("starting…", classes="status", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Take in what is found."""
        self.run_worker(self._receive, thread=True)

    def on_unmount(self) -> None:
        """End the search with its screen."""
        self._work.end()

    def _receive(self) -> None:
        for message in self._work.messages():
            self.post_message(self.Sent(message))
        self.post_message(self.Sent(None))

    def on_search_screen_sent(self, message: Sent) -> None:
        """Show it."""
        content = message.content
        if isinstance(content, list):
            self._add(content)
        elif isinstance(content, Progress):
            self._say(f"{progress_text(*content)}, {len(self.matches)} found; Esc stops")
        elif isinstance(content, Summary):
            self.outcome = content.lines
        elif isinstance(content, Failure):
            self.outcome = [f"error: {content.message}"]
        elif content is None:
            self.is_searching = False
            at_limit = " (the most that are kept)" if len(self.matches) >= MOST_MATCHES else ""
            stopped = [f"stopped, {len(self.matches)} found"]
            self._say("; ".join(self.outcome or stopped) + at_limit)

    def _add(self, found: list[Match]) -> None:
        table = self.query_one(RowTable)
        has_dates = self.size.width >= WIDTH_FOR_DATES
        for match in found:
            row = match.row
            table.add_row(
                fitted_name(str(match.partition), self.size.width // 4, PLACE),
                Text(str(row.offset), PLACE, justify="right"),
                Text(time_text(row.timestamp, has_date=has_dates), "dim"),
                fitted_at_most(
                    content_text(row.key, KEY, match.key_spans),
                    min(MOST_KEY_WIDTH, self.size.width // 5),
                ),
                content_text(row.value, "", match.value_spans, begins_near=True),
            )
        table.fit()
        self.matches += found

    def _say(self, text: str) -> None:
        self.query_one(".status", Static).update(printable_text(text))

    def on_data_table_row_selected(self) -> None:
        """Show the match among the records around it."""
        at = self.query_one(RowTable).cursor_row
        if at < len(self.matches):
            partition, row = self.matches[at].partition, self.matches[at].row
            same = {each.row.offset: each for each in self.matches if each.partition == partition}
            self._opens(partition, row.offset, same)

    def action_stop_or_back(self) -> None:
        """End the search while it runs, else go back."""
        if self.is_searching:
            self._work.end()
        else:
            self.dismiss()
