from __future__ import annotations

import pytest

from pylog.text.words import counted, named


@pytest.mark.parametrize(
    ("names", "most", "expected"),
    [
        ([], 3, ""),
        (["a"], 3, "a"),
        (["a", "b", "c"], 3, "a, b, c"),
        (["a", "b", "c", "d"], 3, "a, b, c and 1 more"),
        (["a", "b", "c"], 1, "a and 2 more"),
    ],
)
def test_the_first_names_are_listed_and_the_others_counted(
    names: list[str], most: int, expected: str
) -> None:
    assert named(names, most) == expected


def test_a_count_agrees_with_its_noun() -> None:
    assert [counted(number, "record") for number in (0, 1, 2)] == [
        "0 records",
        "1 record",
        "2 records",
    ]
    assert counted(1, "batch", "batches") == "1 batch"
    assert counted(12_345, "batch", "batches", digits=",") == "12,345 batches"
