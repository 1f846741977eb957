"""Jobs that clean logs, as tests run them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.writing.test_compaction import make_topic

if TYPE_CHECKING:
    from pathlib import Path


def parsed(job: Any, path: Path, *arguments: str) -> argparse.Namespace:  # noqa: ANN401 - a module
    parser = argparse.ArgumentParser()
    job.add_arguments(parser)
    return parser.parse_args([str(path), *arguments])


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    make_topic(tmp_path / "logs", "foo", 200)
    for number in range(20):
        make_topic(tmp_path / "logs", f"small{number}", 120)
    return tmp_path / "logs"
