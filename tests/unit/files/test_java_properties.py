from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pylog.files.java_properties import parse_java_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("\n \t\f\n\r\n", {}),
        ("# a=1\n ! b=2\n", {}),
        ("a=1", {"a": "1"}),
        ("a = 1 ", {"a": "1 "}),
        ("  a:1\n", {"a": "1"}),
        ("a 1\n", {"a": "1"}),
        ("a\t:  1\n", {"a": "1"}),
        ("a == 1\n", {"a": "= 1"}),
        ("a\n", {"a": ""}),
        ("=1\n", {"": "1"}),
        ("a=1#2!3\n", {"a": "1#2!3"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2\n", {"a": "2"}),
        ("a=1,\\\n   2\n", {"a": "1,2"}),
        ("a=1\\\n# no comment\n", {"a": "1# no comment"}),
        ("a=1\\\n\nb=2\n", {"a": "1", "b": "2"}),
        ("a=1\\\\\nb=2\n", {"a": "1\\", "b": "2"}),
        ("a=1\\\\\\\n2\n", {"a": "1\\2"}),
        ("a=1\\", {"a": "1"}),
        ("\\\n\na=1\n\\", {"a": "1"}),
        ("\\\n#a=1\nb=2", {"b": "2"}),
        ("# c\\\na=1\n", {"a": "1"}),
        (r"a\ b\=\:c=1", {"a b=:c": "1"}),
        (r"a=\t\n\r\f\q\\\"", {"a": '\t\n\r\fq\\"'}),
        (r"a=\u0041\u00e9\u003d", {"a": "A\u00e9="}),
        (r"\u0061=1", {"a": "1"}),
        (r"a=\ud83d\ude00", {"a": "\U0001f600"}),
        (r"a=\ud83d", {"a": "\ufffd"}),
        (r"a=\\u0041", {"a": r"\u0041"}),
    ],
)
def test_properties_have_the_syntax_of_java(text: str, expected: dict[str, str]) -> None:
    properties = parse_java_properties(text)
    assert {key: each.value for key, each in properties.items()} == expected


@settings(deadline=None)  # busy machines are slow at times
@given(st.text(alphabet=st.sampled_from("ab=: \t\\\n\r#!u004z\u00e9"), max_size=40))
def test_any_text_is_properties_or_a_bad_value(text: str) -> None:
    try:
        parse_java_properties(text)
    except ValueError as error:
        assert "hexadecimal" in str(error)  # noqa: PT017 - no error is fine too


def test_a_property_is_of_the_line_that_it_begins_in() -> None:
    text = "# comment\r\n\na=1\\\n  2\n\\\nb=3\na=4\r c = 5"
    assert parse_java_properties(text) == {"a": ("4", 7), "b": ("3", 6), "c": ("5", 8)}


def test_a_bad_escape_is_of_its_line() -> None:
    with pytest.raises(ValueError, match=r"^line 3: .*hexadecimal"):
        parse_java_properties("a=1\n\nb=\\u12")
