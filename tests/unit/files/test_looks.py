from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from pylog.errors import LogDirectoryError
from pylog.files.looks import LIVE_PAUSES, MOST_LOOKS, Looks, live_pauses

if TYPE_CHECKING:
    from pathlib import Path


def test_a_reader_looks_a_hundred_times_and_then_raises_what_it_was_given_last() -> None:
    looks = Looks()
    count = 0

    def look() -> None:
        nonlocal count
        while True:
            count += 1
            looks.again(LogDirectoryError(f"look {count} was too slow", "/logs"))

    with pytest.raises(LogDirectoryError, match="look 100 was too slow"):
        look()
    assert count == MOST_LOOKS == 100


@pytest.mark.parametrize(
    ("side_file_age", "log_age", "may_be_half_written"),
    [
        (0, 0, True),
        (0, 9_999, True),
        (9_999, 0, True),  # what is mapped into memory changes the file's time late
        (9_999, None, False),
        (9_999, 9_999, False),
        (-9_999, 9_999, True),  # of a host whose clock goes ahead
    ],
)
def test_only_what_has_just_changed_may_be_half_written(
    tmp_path: Path, side_file_age: int, log_age: int | None, *, may_be_half_written: bool
) -> None:
    path = tmp_path / f"{7:020d}.index"
    for each, age in ((path, side_file_age), (path.with_suffix(".log"), log_age)):
        if age is not None:
            each.touch()
            changed = time.time() - age
            os.utime(each, (changed, changed))
    assert tuple(live_pauses(str(path))) == (LIVE_PAUSES if may_be_half_written else ())
