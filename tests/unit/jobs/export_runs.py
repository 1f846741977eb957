"""Runs of an export, as tests stage and publish them."""

from __future__ import annotations

from pathlib import Path

from pylog_jobs.export_output import ExportOutput, ExportRun, RunFile
from pylog_jobs.export_ranges import ExportedPartition
from pylog_jobs.record_files import Folder, WrittenFile

PARTITIONS = {
    ("orders", 0): ExportedPartition(12, "RVsaA6ukRsm1uW_Met5mHQ"),
    ("orders", 10): ExportedPartition(0, None),
}


def export_run(number: int) -> ExportRun:
    files = [RunFile("topic=orders/date=2026-11-22/part-0.parquet", 12, 4)]
    return ExportRun(number=number, isolation="read_committed", partitions=PARTITIONS, files=files)


def staged(
    output: ExportOutput, number: int, **partition: str | None
) -> tuple[Folder, WrittenFile]:
    """Write what a task would, and one more file, of an attempt that failed."""
    folder = output.new_folder(number)
    Path(folder.path).mkdir(parents=True)
    path = Path(folder.path) / "part-0.parquet"
    path.write_bytes(b"PAR1")
    path.with_name("part-1.parquet").write_bytes(b"PAR1")
    of_file = partition or {"topic": "orders", "date": "2026-11-22"}
    return folder, WrittenFile(str(path), 12, 4, of_file)


def publish(output: ExportOutput, number: int, **partition: str | None) -> Path:
    folder, file = staged(output, number, **partition)
    return Path(output.publish(folder, export_run(number), [file]))
