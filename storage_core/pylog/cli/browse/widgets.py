"""Widgets of all screens: a table of rows, a line to type, the keys that work now."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.table import Table
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Input, Static

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.screen import Screen


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


class PromptScreen(ModalScreen[str | None]):
    """Asks for a line, and returns it; None if there is none."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel")]

    def __init__(self, sign: str, about: str) -> None:
        super().__init__()
        self._sign = sign
        self._about = about

    def compose(self) -> ComposeResult:
        """Yield the line, and above it what may be typed."""
        with Vertical():
            yield Static(Text(self._about, "dim"))
            yield Input(placeholder=self._sign, compact=True, select_on_focus=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Close the dialog with the typed text."""
        self.dismiss(event.value.strip() or None)


class HelpScreen(ModalScreen[None]):
    """Lists the keys of the screen below it, as they are bound now."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1", "dismiss(None)", "Close")
    ]

    def __init__(self, screen: Screen[object]) -> None:
        super().__init__()
        table = Table(box=None, padding=(0, 1))
        for heading in ("KEY", "DOES", "AS IN"):
            table.add_column(heading)
        keys: dict[tuple[str, str], list[str]] = {}
        for active in screen.active_bindings.values():
            binding = active.binding
            if binding.tooltip:  # only those of ours have it
                names = keys.setdefault((binding.description, binding.tooltip), [])
                names.append(self.app.get_key_display(binding))
        for (description, origin), names in keys.items():
            table.add_row(Text(" ".join(names), "cyan"), description, Text(origin, "dim"))
        self._table = table

    def compose(self) -> ComposeResult:
        """Yield the table."""
        with VerticalScroll():
            yield Static(self._table)
