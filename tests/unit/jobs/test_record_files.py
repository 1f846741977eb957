"""Files that tasks write: those of tasks that succeeded are in a run, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from pylog_jobs.export_output import ExportOutput
from pylog_jobs.job import JobFailedError
from tests.unit.jobs.export_runs import export_run, publish, staged


def test_a_file_that_no_successful_task_wrote_is_in_no_run(tmp_path: Path) -> None:
    published = publish(ExportOutput(str(tmp_path)), 0)
    assert [each.name for each in published.rglob("*.parquet")] == ["part-0.parquet"]


@pytest.mark.parametrize("content", [None, b"PAR"])
def test_a_driver_that_does_not_see_what_a_task_wrote_publishes_nothing(
    tmp_path: Path, content: bytes | None
) -> None:
    output = ExportOutput(str(tmp_path))
    folder, file = staged(output, 0)
    if content is None:
        Path(file.path).unlink()
    else:
        Path(file.path).write_bytes(content)
    what = "does not see it" if content is None else "sees 3"
    with pytest.raises(JobFailedError, match=rf"wrote 4 bytes to .*, and the driver {what};"):
        output.publish(folder, export_run(0), [file])
    assert output.last_run() is None
