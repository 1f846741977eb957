"""The browser in this process, driven by Textual's pilot."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

from pylog.cli.browse.app import BrowseApp
from pylog.cli.commands.browse import browse
from pylog.cli.record_options import ChosenRecords, WayOfReading

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.pilot import Pilot

SMALL, LARGE = (80, 24), (200, 60)
_PAUSE_SECONDS = 0.03
_MOST_PAUSES = 1_000
_SAME = 8


def app_of(*arguments: object) -> BrowseApp:
    """Return the browser as the command line would make it."""
    given = browse.make_context("browse", [str(each) for each in arguments]).params

    def take(kind: type[Any]) -> Any:  # noqa: ANN401 - one of `kind`
        return kind(**{each.name: given.pop(each.name) for each in fields(kind)})

    return BrowseApp(take(ChosenRecords), take(WayOfReading))


class Driver:
    """Types keys, and waits for what they lead to."""

    def __init__(self, app: BrowseApp, pilot: Pilot[None]) -> None:
        self.app = app
        self._pilot = pilot

    @property
    def lines(self) -> list[str]:
        """What is on the screen, or in the dialog that is on top of it."""
        return [strip.text for strip in self.app.screen._compositor.render_strips()]

    @property
    def text(self) -> str:
        return "".join(f"{line.rstrip()}\n" for line in self.lines)

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)

    async def type(self, text: str) -> None:
        await self._pilot.press(*(_KEYS.get(each, each) for each in text))

    async def until(self, condition: Callable[[], object]) -> None:
        for _ in range(_MOST_PAUSES):
            await self._pilot.pause(_PAUSE_SECONDS)
            if condition():
                return
        pytest.fail(f"this never came:\n{self.text}")

    async def settled(self) -> str:
        """Return the text when it has stayed the same for a while: tables find their widths."""
        seen: list[str] = []

        def is_same() -> bool:
            seen.append(self.text)
            return len(seen) > _SAME and len(set(seen[-_SAME:])) == 1

        await self.until(is_same)
        return seen[-1]

    async def sees(self, *texts: str) -> None:
        await self.until(lambda: all(each in self.text for each in texts))


_KEYS = {
    " ": "space",
    "$": "dollar_sign",
    "/": "slash",
    ":": "colon",
    "-": "minus",
    "%": "percent_sign",
}


def drive(
    app: BrowseApp, steps: Callable[[Driver], Awaitable[None]], size: tuple[int, int] = SMALL
) -> None:
    """Run the browser, and ``steps`` with it."""

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await steps(Driver(app, pilot))

    asyncio.run(run())
