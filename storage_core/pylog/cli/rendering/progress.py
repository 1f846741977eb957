"""A progress bar on stderr: bytes read of those planned, once the work has taken a second."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

    import rich.progress

DELAY_SECONDS = 1.0


def is_wanted() -> bool:
    """Whether there is somebody to see a bar, and no output that it would tear."""
    return sys.stderr is not None and sys.stderr.isatty() and not sys.stdout.isatty()


class ProgressBar:
    """A context in which `show` may be called as often as one likes.

    Nothing is shown, and rich is not imported, within the first `DELAY_SECONDS`; leaving the
    context removes the bar. Without a total, as of a pipe, it moves back and forth.
    """

    def __init__(self, description: str, total_bytes: int | None) -> None:
        self._description = description
        self._total_bytes = total_bytes
        self._start = time.monotonic()
        self._bar: rich.progress.Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, done_bytes: int, total_bytes: int | None = None) -> None:
        """Show that ``done_bytes`` have been read, of ``total_bytes`` if that is known by now."""
        if self._bar is None:
            if time.monotonic() - self._start < DELAY_SECONDS:
                return
            self._bar = self._begin()
        total_bytes = self._total_bytes if total_bytes is None else total_bytes
        self._bar.update(self._bar.task_ids[0], completed=done_bytes, total=total_bytes)

    def _begin(self) -> rich.progress.Progress:
        # Not at the head of the file: most runs are over before they need it.
        from rich import progress  # noqa: PLC0415
        from rich.console import Console  # noqa: PLC0415

        bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TaskProgressColumn(),
            progress.DownloadColumn(binary_units=True),
            progress.TransferSpeedColumn(),
            progress.TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        bar.add_task(self._description, total=self._total_bytes)
        bar.start()
        return bar
