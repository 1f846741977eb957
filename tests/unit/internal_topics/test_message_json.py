from __future__ import annotations

import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylog.internal_topics.message_json import json_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        # What Java's Double.toString gives.
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9_999_999.0, "9999999.0"),
        (10_000_000.0, "1.0E7"),
        (123_456_789.125, "1.23456789125E8"),
        (-1.5e300, "-1.5E300"),
        (4.9e-324, "4.9E-324"),
        (float("nan"), '"NaN"'),
        (float("-inf"), '"-Infinity"'),
        ('q" \\ \x01\x1f\n\t/é\u2028', '"q\\" \\\\ \\u0001\\u001F\\n\\t/é\u2028"'),
        (b"\xff\x00", '"/wA="'),
        (uuid.UUID(int=1), '"AAAAAAAAAAAAAAAAAAAAAQ"'),
        ({"a": [True, None, -1], "b": {}}, '{"a":[true,null,-1],"b":{}}'),
    ],
)
def test_values_are_printed_as_jackson_prints_them(value: object, text: str) -> None:
    assert json_text(value) == text  # type: ignore[arg-type]


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_json_says_what_was_printed(value: object) -> None:
    assert json.loads(json_text(value)) == value  # type: ignore[arg-type]
