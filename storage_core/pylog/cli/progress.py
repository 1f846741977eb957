"""A progress bar on stderr: bytes read of those planned, once the work has taken a second."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

from pylog.locations import name_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    import pyarrow as pa
    import rich.progress

    from pylog.reading.scan_task import ScanTask

DELAY_SECONDS = 1.0

PROGRESS_COLUMNS = ("topic", "partition", "batch")
"""The columns from which `PlannedBytes` tells how far a scan is."""


class PlannedBytes:
    """How many of the bytes to be read lie before the end of a record batch.

    Attributes
    ----------
    total
        Bytes of ``.log`` files that the tasks read.
    """

    def __init__(self, tasks: Iterable[ScanTask]) -> None:
        self.total = 0
        self._bases: dict[tuple[str, int, str], int] = {}
        for task in tasks:
            for piece in task.slices:
                key = (*task.topic_partition, name_of(piece.path))
                self._bases[key] = self.total - piece.start_position
                self.total += piece.size_bytes

    def before_end_of(self, batch: pa.RecordBatch) -> int:
        """Return the bytes up to the end of the batch on disk that gave the last row."""
        last = batch.slice(batch.num_rows - 1)
        origin = last.column("batch")[0].as_py()
        key = (
            last.column("topic")[0].as_py(),
            last.column("partition")[0].as_py(),
            origin["segment"],
        )
        return self._bases[key] + int(origin["position"]) + int(origin["sizeInBytes"])


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

    def show(self, done_bytes: int) -> None:
        """Show that ``done_bytes`` have been read."""
        if self._bar is None:
            if time.monotonic() - self._start < DELAY_SECONDS:
                return
            self._bar = self._begin()
        self._bar.update(self._bar.task_ids[0], completed=done_bytes)

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
