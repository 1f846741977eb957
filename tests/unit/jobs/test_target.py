"""The directory and the topic that an ingest writes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.jobs.ingest_files import RECORD, SOURCE, TARGET, read

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_directory_is_absolute_wherever_the_job_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = read(tmp_path, SOURCE + RECORD + TARGET.replace("/data/logs", "logs"))
    assert config.target.directory == str(tmp_path / "logs")


def test_an_internal_topic_is_a_target_if_that_is_said(tmp_path: Path) -> None:
    text = SOURCE + RECORD + TARGET.replace('"orders"', '"__consumer_offsets"')
    assert read(tmp_path, text + "internal_topics = true\n").target.internal_topics
