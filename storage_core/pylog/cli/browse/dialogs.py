"""Dialogs of all screens: a line to type, and the keys that work now."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.table import Table
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.screen import Screen


class PromptScreen(ModalScreen[str | None]):
    """Asks for a line, and returns it; None if there is none."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel")]

    def __init__(self, sign: str, about: str, text: str = "") -> None:
        super().__init__()
        self._sign = sign
        self._about = about
        self._text = text

    def compose(self) -> ComposeResult:
        """Yield the line, and above it what may be typed."""
        with Vertical():
            yield Static(Text(self._about, "dim"))
            yield Input(self._text, placeholder=self._sign, compact=True, select_on_focus=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Return what was typed."""
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
