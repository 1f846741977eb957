"""The records of one log, as what plans a scan needs some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.columnar.arrow_schema import record_schema
from pylog.model import EARLIEST, IsolationLevel
from pylog.reading.checked_windows import ReadOptions
from pylog.reading.damage import DamageReport, ReadMode
from pylog.reading.planner import ScanRequest, plan_tasks
from pylog.reading.reader import TaskReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from pylog.model import OffsetSpec
    from pylog.reading.log_view import LogView


def view_batches(
    view: LogView,
    columns: Iterable[str],
    mode: ReadMode,
    damage: DamageReport,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    start: OffsetSpec = EARLIEST,
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a log, timestamps in ms, as a scan in that mode does."""
    schema = record_schema(columns, timestamp_unit="ms")
    options = ReadOptions(mode=mode)
    planned = DamageReport(is_logged=False) if mode.skips_damage else view.damage
    wanted = ScanRequest(start, isolation=isolation)
    for task in plan_tasks([view.read_as(view.access, planned)], wanted):
        yield from TaskReader(task, schema, options, damage=damage).record_batches()
