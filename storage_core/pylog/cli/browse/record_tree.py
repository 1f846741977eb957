"""One record as a tree that folds: place and batch, headers, key and value.

A value is shown as JSON, as text or as bytes. Nodes are made when they are unfolded, some hundred
at a time, so that a value of any size is seen at once.
"""

from __future__ import annotations

import json
import textwrap
from enum import StrEnum
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import Tree

from pylog.cli.browse.cells import KEY, PLACE, printable_text, time_text
from pylog.cli.record_view import NULL, shown
from pylog.text.words import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from textual.widgets.tree import TreeNode

    # What is under a node: labels, and what is under these if anything is.
    Branch = tuple[Text, "Branches | None"]
    Branches = Callable[[], Iterator[Branch]]
    Rest = Iterator[Branch]

SHOWN_BYTES = 64 << 10
"""Of a key or value, unless all of it is asked for."""
MOST_BYTES = 16 << 20
_NODES_AT_ONCE = 500
_SHOWN_CHARACTERS = 512  # of a string in JSON; the text has all of it
_HEX_WIDTH, _NARROW_HEX_WIDTH = 16, 8
_WIDTH_FOR_HEX = 78


class ValueView(StrEnum):
    """A way to show the bytes of a key or value."""

    JSON = "json"
    TEXT = "text"
    HEX = "hex"

    @property
    def following(self) -> ValueView:
        """The one after it."""
        views = list(ValueView)
        return views[(views.index(self) + 1) % len(views)]


class RecordTree(Tree[Any]):
    """A record's details."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", "Down", show=False, tooltip="lnav, VisiData"),
        Binding("k", "cursor_up", "Up", show=False, tooltip="lnav, VisiData"),
        Binding("enter", "select_cursor", "Fold", tooltip="kaskade"),
        Binding("space", "select_cursor", "Fold", show=False, tooltip="kaskade"),
        Binding("escape", "screen.table", "Table", tooltip="kaskade"),
        Binding("p", "screen.view", "View", tooltip="lnav's pretty print"),
        Binding("z", "screen.zoom", "Zoom", show=False, tooltip="VisiData's z keys"),
        Binding("g", "scroll_home", "Top", show=False, tooltip="lnav"),
        Binding("G", "scroll_end", "Bottom", show=False, tooltip="lnav"),
    ]

    def __init__(self) -> None:
        super().__init__("")
        self.show_root = False
        self.guide_depth = 2
        self.value_view = ValueView.JSON  # how key and value are shown
        self._record: dict[str, Any] | None = None
        self._most_bytes = SHOWN_BYTES

    def show_record(self, batch: pa.RecordBatch | None, most_bytes: int) -> None:
        """Show the one record of a batch, of key, value and headers at most so many bytes."""
        self._most_bytes = most_bytes
        self._record = None if batch is None else _record_of(batch, most_bytes)
        self._show()

    def show_note(self, *lines: Text) -> None:
        """Show some lines in the place of a record."""
        self._record = None
        self.clear()
        width = max(self.size.width - 2, 20)
        for line in lines:
            for part in textwrap.wrap(line.plain, width):
                self.root.add_leaf(Text(part, line.style))
        self.root.expand()

    def next_view(self) -> None:
        """Show key and value in the next way."""
        self.value_view = self.value_view.following
        self._show()

    def _show(self) -> None:
        self.clear()
        if self._record is not None:
            self._add(self.root, self._sections(self._record), expands=True)
        self.root.expand()

    def _sections(self, record: dict[str, Any]) -> Iterator[Branch]:
        place = printable_text(f"{record['topic']}-{record['partition']}@{record['offset']}", PLACE)
        time = time_text(record["timestamp"])
        kind = {0: "CreateTime", 1: "LogAppendTime"}.get(record["timestampType"], "")
        yield place, None
        yield Text(f"{time} {kind}", "dim"), None
        yield self._content("value", record["value"], record["value_bytes"])
        yield self._content("key", record["key"], record["key_bytes"])
        headers = record["headers"] or []
        yield Text(f"headers ({len(headers)})", "bold"), partial(self._headers, headers)
        batch = record["batch"] or {}
        rows = (
            Text.assemble((f"{name} ", "dim"), printable_text("-" if each is None else str(each)))
            for name, each in batch.items()
        )
        yield Text("batch", "bold"), lambda: ((row, None) for row in rows)

    def _content(self, name: str, content: bytes | None, size: int) -> Branch:
        if content is None:
            return Text.assemble((name, "bold"), f" {NULL}"), None
        about = f" {format_bytes(size)}"
        if len(content) < size:
            more = "l shows more" if self._most_bytes < MOST_BYTES else "the most that is shown"
            about += f", the first {format_bytes(len(content))} here: {more}"
        heading = Text.assemble((name, "bold"), (about, "dim"))
        if self.value_view is ValueView.HEX:
            is_wide = self.size.width >= _WIDTH_FOR_HEX
            width = _HEX_WIDTH if is_wide else _NARROW_HEX_WIDTH
            return heading, partial(_hex_lines, content, width)
        if self.value_view is ValueView.JSON:
            found = _parsed(content)
            if isinstance(found, _JsonObject | list):
                return heading, partial(_members, found)
        return heading, partial(self._text_lines, content)

    def _headers(self, headers: list[tuple[str, bytes | None]]) -> Iterator[Branch]:
        for name, value in headers:
            text = NULL if value is None else shown(value.decode("utf-8", "surrogateescape"))
            yield Text.assemble(printable_text(f"{name} ", KEY), text[:_SHOWN_CHARACTERS]), None

    def _text_lines(self, content: bytes) -> Iterator[Branch]:
        text = content.decode("utf-8", "surrogateescape")
        for line in text.split("\n"):
            for part in self._wrapped(shown(line)):
                yield Text(part), None

    def _wrapped(self, text: str) -> Iterator[str]:
        """Yield the text in lines that fit; wide characters take two columns."""
        width = max(self.size.width - 8, 10)
        at = 0
        while True:
            part = Text(text[at : at + width], end="")
            while part.cell_len > width:
                part.right_crop(max((part.cell_len - width) // 2, 1))
            yield part.plain
            at += max(len(part.plain), 1)
            if at >= len(text):
                return

    def _add(self, node: TreeNode[Any], branches: Rest, *, expands: bool = False) -> None:
        """Add the next nodes under ``node``, and one that stands for the rest."""
        for label, under in islice(branches, _NODES_AT_ONCE):
            if under is None:
                node.add_leaf(label)
                continue
            added = node.add(label, data=under)
            if expands and not label.plain.startswith("batch"):
                self._fill(added)
                added.expand()
        following = next(branches, None)
        if following is not None:
            node.add(Text("… more", "dim"), data=(following, branches))

    def _fill(self, node: TreeNode[Any]) -> None:
        under, node.data = node.data, None
        if callable(under):
            self._add(node, under())
        elif under is not None and node.parent is not None:
            (first, rest), parent = under, node.parent
            node.remove()
            self._add(parent, chain([first], rest))

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[Any]) -> None:
        """Make what is under the node."""
        self._fill(event.node)


def _record_of(batch: pa.RecordBatch, most_bytes: int) -> dict[str, Any]:
    """Return a record's columns, times as a number, and the beginnings of what is large."""
    # Arrow makes datetimes of times, and these end with the year 9999.
    record = {
        name: (column.cast("int64") if name == "timestamp" else column)[0].as_py()
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    for name in ("key", "value"):
        record[f"{name}_bytes"] = len(record[name] or b"")
        record[name] = _cut(record[name], most_bytes)
    headers = record["headers"] or ()
    record["headers"] = [(each["key"], _cut(each["value"], most_bytes)) for each in headers]
    return record


def _cut(content: bytes | None, most_bytes: int) -> bytes | None:
    return None if content is None else content[:most_bytes]


class _JsonObject(NamedTuple):
    """The members of an object, also those of the same name."""

    members: list[tuple[str, Any]]


class _JsonNumber(str):
    """A number as it is written, however many digits it has."""

    __slots__ = ()


def _parsed(content: bytes) -> Any:  # noqa: ANN401 - JSON
    """Return what JSON stands for; None if it is not JSON, or null."""
    try:
        return json.loads(
            content,
            object_pairs_hook=_JsonObject,
            parse_int=_JsonNumber,
            parse_float=_JsonNumber,
            parse_constant=_JsonNumber,
        )
    except (ValueError, RecursionError):
        return None


def _members(container: _JsonObject | list[Any]) -> Iterator[Branch]:
    pairs: Iterable[tuple[object, Any]]
    pairs = container.members if isinstance(container, _JsonObject) else enumerate(container)
    for name, each in pairs:
        label = printable_text(f"{name}"[:_SHOWN_CHARACTERS], PLACE).append(": ", "dim")
        if isinstance(each, _JsonObject):
            about, size = "{…}", len(each.members)
        elif isinstance(each, list):
            about, size = "[…]", len(each)
        else:
            yield label.append_text(_scalar(each)), None
            continue
        yield label.append(f"{about} {size}", "dim"), partial(_members, each)


def _scalar(each: object) -> Text:
    if isinstance(each, _JsonNumber):
        return printable_text(_shortened(each), "yellow")
    if isinstance(each, str):
        return printable_text(json.dumps(_shortened(each), ensure_ascii=False), "green")
    return Text(json.dumps(each), "magenta")


def _shortened(text: str) -> str:
    cut = text[:_SHOWN_CHARACTERS]
    return cut if len(cut) == len(text) else f"{cut}…"


def _hex_lines(content: bytes, width: int) -> Iterator[Branch]:
    for at in range(0, len(content), width):
        part = content[at : at + width]
        text = "".join(chr(each) if 0x20 <= each < 0x7F else "." for each in part)
        yield Text.assemble((f"{at:06x} ", "dim"), part.hex(" ").ljust(width * 3), text), None
