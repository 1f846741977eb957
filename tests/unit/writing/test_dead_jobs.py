"""Files of jobs that died."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from tests.unit.writing.staged_jobs import job_files, job_in, stage

if TYPE_CHECKING:
    from pathlib import Path


def test_files_of_jobs_that_died_are_swept_after_a_week_and_not_before(tmp_path: Path) -> None:
    day = 86_400
    now = time.time()
    for job_id, days in (("dead", 8), ("late", 6), ("half", 8)):
        stage(job_in(tmp_path, job_id), {"value": ["a"]})
        for name in job_files(tmp_path):
            if (tmp_path / name).stat().st_mtime > now - day:
                os.utime(tmp_path / name, (now - days * day,) * 2)
    half = job_in(tmp_path, "half")
    stage(half, {"value": ["b"]})  # another task of it is at work
    assert len(job_files(tmp_path)) == 8
    job = job_in(tmp_path)
    job.commit([stage(job, {"value": ["a"]}, now_ms=int(now * 1_000))])
    assert len(job_files(tmp_path)) == 6
    prefixes = {name[:30] for name in job_files(tmp_path)}
    assert prefixes == {job_in(tmp_path, each).key.file_prefix[:30] for each in ("late", "half")}
