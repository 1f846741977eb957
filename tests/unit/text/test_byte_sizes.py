from __future__ import annotations

import pytest

from pylog.text.words import format_bytes


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1.0KiB"),
        (1536, "1.5KiB"),
        (102_297, "99.9KiB"),
        (102_400, "100KiB"),
        (1024**2 - 1, "1.0MiB"),
        (1024**2, "1.0MiB"),
        (236_900_000, "226MiB"),
        (5 * 1024**4, "5.0TiB"),
        (2**63 - 1, "8.0EiB"),
    ],
)
def test_sizes_have_three_digits_and_a_binary_unit(size_bytes: int, text: str) -> None:
    assert format_bytes(size_bytes) == text
