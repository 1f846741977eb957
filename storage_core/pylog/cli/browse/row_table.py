"""A table of a few thousand rows, with the keys that all tables of the browser have."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

_SECONDS_TO_MEASURE = 0.05


class RowTable(DataTable[Text]):
    """A table with a cursor that is a row. Cells are `Text`, which is never taken for markup."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Open", tooltip="kaskade, VisiData"),
        Binding("down,j", "cursor_down", "Down", show=False, tooltip="lnav, VisiData"),
        Binding("up,k", "cursor_up", "Up", show=False, tooltip="lnav, VisiData"),
        Binding("pagedown,space", "page_down", "Page down", show=False, tooltip="lnav"),
        Binding("pageup,b", "page_up", "Page up", show=False, tooltip="lnav"),
        Binding("home,g", "scroll_top", "First", show=False, tooltip="lnav"),
        Binding("end,G", "scroll_bottom", "Last", show=False, tooltip="lnav"),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, cursor_type="row")

    def fit(self) -> None:
        """Make columns as wide as their cells, after somebody else has changed these."""
        # Textual measures cells when it has nothing else to do; lines that it has drawn before are
        # kept as they were, unless something says that they look different.
        self.set_timer(_SECONDS_TO_MEASURE, self.notify_style_update)
