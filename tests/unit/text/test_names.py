"""A wrong argument is answered with the nearest name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pylog

if TYPE_CHECKING:
    from pathlib import Path


def test_an_argument_that_does_not_exist_is_reported_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(
        TypeError, match=r"^scan\(\) has no argument 'topic'; did you mean 'topics'\?"
    ):
        pylog.scan(tmp_path, topic="orders")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"has no argument 'xyz'\. Its arguments: path, topics, "):
        pylog.scan(tmp_path, xyz=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^read_table\(\) has no argument 'topic'; did you mean"):
        pylog.read_table(tmp_path, "segments", topic="orders")  # type: ignore[call-arg]
