"""How a scan reads its tasks; which records those are does not depend on it, but for damage."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.reading.reader import TaskReader
from pylog.scheduling.worker_threads import WorkerThreads

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from pylog.reading.damage import DamageReport, ReadMode
    from pylog.reading.scan_task import ScanTask
    from pylog.reading.scanned_bytes import ScannedBytes


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOfReading:
    """The arguments of `pylog.scan` that every reader of one scan takes."""

    mode: ReadMode
    window_bytes: int
    max_decompressed_bytes: int
    threads: int

    def reader(
        self,
        task: ScanTask,
        schema: pa.Schema,
        damage: DamageReport,
        scanned: ScannedBytes,
        workers: WorkerThreads | None = None,
    ) -> TaskReader:
        """Return what reads ``task`` in this way; see `TaskReader` for the other parameters."""
        return TaskReader(
            task,
            schema,
            mode=self.mode,
            damage=damage,
            window_bytes=self.window_bytes,
            max_decompressed_bytes=self.max_decompressed_bytes,
            workers=workers,
            scanned=scanned,
        )

    def worker_threads(self) -> AbstractContextManager[WorkerThreads | None]:
        """Return the context of one read's threads; None if the caller's thread does it all."""
        return nullcontext() if self.threads == 1 else WorkerThreads(self.threads)
