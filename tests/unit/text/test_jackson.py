from __future__ import annotations

import json
import random
from decimal import Decimal

import pytest

from pylog.text.jackson import jackson_text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": [True, None, "é"]}, '{"b":1,"a":[true,null,"é"]}'),
        ('q" \\ / \t \x01 \x1f \x7f \u2028', '"q\\" \\\\ / \\t \\u0001 \\u001F \x7f \u2028"'),
        ("\\u001f", '"\\\\u001f"'),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.5, "1.5"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (1234567.0, "1234567.0"),
        (12345678.0, "1.2345678E7"),
        (1e10, "1.0E10"),
        (-1.5e300, "-1.5E300"),
        (Decimal("12.50"), "12.50"),
        (2**70, "1180591620717411303424"),
    ],
)
def test_json_is_as_jackson_writes_it(value: object, expected: str) -> None:
    assert jackson_text(value) == expected


def test_numbers_are_read_back() -> None:
    chance = random.Random(3)
    for _ in range(2_000):
        number = chance.choice((-1, 1)) * chance.random() * 10 ** chance.randrange(-300, 300)
        assert json.loads(jackson_text(number)) == number
