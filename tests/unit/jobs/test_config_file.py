"""The file of a job: TOML, and mistakes in it by their line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog_jobs.job import UsageError
from tests.unit.jobs.ingest_files import RECORD, SOURCE, TARGET, read

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_not_toml_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"ingest\.toml is not TOML: .*line 2"):
        read(tmp_path, "[source]\nformat = \n")


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    read(tmp_path, "\ufeff" + SOURCE + RECORD + TARGET)
