from __future__ import annotations

import pytest

from pylog.errors import LogDirectoryError
from pylog.files.looks import MOST_LOOKS, Looks


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
